"""`make_fx`: the operators that a program runs, below autograd, as a graph.

A mode of `__torch_dispatch__` sees every operator, runs it, and writes a node down; which node a tensor came from is
remembered beside the tensor.

Invariant: tensors that the program did not make are inputs, parameters or constants of the traced module.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import mindtorch_v2 as torch

from ..._operators import OpOverload
from ..._tensor import Tensor
from ..._torch_dispatch import TorchDispatchMode, mode_stack, without_modes
from ...utils import _pytree as pytree
from ...utils.weak import WeakIdKeyDictionary
from .._compatibility import compatibility
from .._lazy_graph_module import _make_graph_module
from .._leaves import recorded
from .._symbolic_trace import PH, Tracer
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..passes.shape_prop import _extract_tensor_metadata
from ..proxy import Proxy

__all__ = [
    "DecompositionInterpreter",
    "PythonKeyTracer",
    "dispatch_trace",
    "get_innermost_proxy_mode",
    "get_proxy_mode",
    "make_fx",
    "maybe_disable_thunkify",
    "maybe_enable_thunkify",
    "py_sym_types",
]

py_sym_types = (torch.SymInt, torch.SymFloat, torch.SymBool)
CONSTANT_NUMEL_LIMIT = 1
_LAST = 9223372036854775807


@compatibility(is_backward_compatible=False)
class PythonKeyTracer(Tracer):
    """Makes the nodes; modules are not looked at, and what a program holds becomes a constant."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.tensor_tracker = WeakIdKeyDictionary()

    def call_module(self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        return attr_val

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, torch.nn.Parameter):
            for name, p in self.root.named_parameters():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
            name = self.get_fresh_qualname("_param_constant")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def unwrap_proxy(self, e: Any) -> Any:
        """What stands for a tensor in the graph: its proxy, if it has one."""
        found = self.tensor_tracker.get(e) if isinstance(e, Tensor) else None
        return e if found is None else found.proxy


class _Tracked:
    """What is known of a tensor: its proxy, and its value if it is a constant."""

    __slots__ = ("constant", "proxy")

    def __init__(self, proxy: Proxy, constant: Any) -> None:
        self.proxy = proxy
        self.constant = constant


def track_tensor(tensor: Any, proxy: Proxy, *, constant: Any, tracer: PythonKeyTracer) -> None:
    """Remember where a tensor came from."""
    tracer.tensor_tracker[tensor] = _Tracked(proxy, constant)


def track_tensor_tree(inner: Any, proxy: Any, *, constant: Any, tracer: PythonKeyTracer) -> Any:
    """Remember where the tensors of a result came from; each element of a tuple gets a node."""
    if isinstance(inner, Tensor):
        track_tensor(inner, proxy, constant=constant, tracer=tracer)
        _describe(proxy, inner)
    elif isinstance(inner, (tuple, list)):
        proxy.node.meta["val"] = tuple(_value(v) for v in inner)
        for i, part in enumerate(inner):
            if isinstance(part, (Tensor, tuple, list)):
                track_tensor_tree(part, proxy[i], constant=None, tracer=tracer)
    return inner


def _value(v: Any) -> Any:
    if not isinstance(v, Tensor):
        return v
    with without_modes(), torch.no_grad():
        return v.detach()


def _describe(proxy: Proxy, t: Any) -> None:
    from ..._subclasses.fake_tensor import FakeTensor

    if isinstance(t, FakeTensor):
        proxy.node.meta["val"] = _value(t)
    proxy.node.meta["tensor_meta"] = _extract_tensor_metadata(t)


# -- the mode -------------------------------------------------------------------------------------------------------
class ProxyTorchDispatchMode(TorchDispatchMode):
    """Writes down every operator that runs inside."""

    def __init__(
        self,
        tracer: PythonKeyTracer,
        tracing_mode: str,
        pre_dispatch: bool = False,
        _allow_fake_constant: bool = False,
        _error_on_data_dependent_ops: bool = True,
    ) -> None:
        super().__init__()
        self.tracer = tracer
        self.tracing_mode = tracing_mode
        self.pre_dispatch = pre_dispatch
        self._allow_fake_constant = _allow_fake_constant
        self._error_on_data_dependent_ops = _error_on_data_dependent_ops
        self.enable_tracing = True
        self.decomposition_table: dict[Any, Any] = {}

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = tuple(args), kwargs or {}
        if not self.enable_tracing:
            return func(*args, **kwargs)
        rule = self.decomposition_table.get(func)
        if rule is not None:
            with self:
                result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self._recorded(func, args, kwargs)

    def _recorded(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tracer, name = self.tracer, func._opname
        tracked = [self._tracked(t) for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        known = bool(tracked) and all(t is not None and t.constant is not None for t in tracked)
        if name == "_local_scalar_dense":
            first = tracked[0]
            if first is None:
                return func(*args, **kwargs)
            if first.constant is not None:
                with without_modes():
                    return first.constant.item()
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor with {func} - erroring out! "
                "It's likely that this is caused by data-dependent control flow or similar.  It may be possible to "
                "trace this with dynamic shapes; try setting tracing_mode='symbolic' in your make_fx call."
            )
        target, given, named = written(func, args, kwargs)
        given, named = pytree.tree_map_only(Tensor, tracer.unwrap_proxy, (given, named))
        proxy = tracer.create_proxy(
            "call_function", target, given, named, name=tracer.graph._target_to_str(target._opname)
        )
        result = func(*args, **kwargs)
        constant = self._constant(func, args, kwargs, result, known)
        if func._schema.is_mutable:
            for t in tracked:
                if t is not None:
                    t.constant = None
        track_tensor_tree(result, proxy, constant=constant, tracer=tracer)
        return result

    def _tracked(self, t: Any) -> _Tracked | None:
        found: _Tracked | None = self.tracer.tensor_tracker.get(t)
        return found

    def _constant(self, func: Any, args: Any, kwargs: Any, result: Any, known: bool) -> Any:
        """The value of a small tensor that follows from constants alone."""
        if not isinstance(result, Tensor) or result.numel() > CONSTANT_NUMEL_LIMIT:
            return None
        if func._opname == "lift_fresh":
            with without_modes():
                plain: Any = getattr(result, "constant", result)
                return plain.clone() if isinstance(plain, Tensor) else None
        if not known or func._schema.is_mutable or any(a.name == "generator" for a in func._schema.arguments):
            return None

        def value(t: Any) -> Any:
            found = self._tracked(t)
            return t if found is None else found.constant

        given, named = pytree.tree_map_only(Tensor, value, (args, kwargs))
        with without_modes(), torch.no_grad():
            return func(*given, **named)


def written(
    func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A call as PyTorch's schemas have it, where ours say the same in fewer words."""
    name = func._opname
    if name == "lift_fresh":
        return _lift_fresh_copy(), args, kwargs
    if name == "slice":
        full: list[Any] = [*args[1:], *(0, None, None, 1)[len(args) - 1 :]]
        tail = () if full[3] == 1 else (full[3],)
        start, end = 0 if full[1] is None else full[1], _LAST if full[2] is None else full[2]
        return func, (args[0], full[0], start, end, *tail), kwargs
    if func._overloadname == "correction" and "correction" not in kwargs:
        return func, args, {"correction": 1, **kwargs}
    if not any(isinstance(t, Tensor) for t in pytree.tree_leaves(args)):
        names = [a.name for a in func._schema.arguments]
        if "device" in names and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": torch.get_default_device()}
            kwargs = {n: kwargs[n] for n in names if n in kwargs}
    return func, args, kwargs


@functools.cache
def _lift_fresh_copy() -> Any:
    from ..._torch_dispatch import copied_operator

    return copied_operator()


# -- tracing --------------------------------------------------------------------------------------------------------
def _fake_signature(fn: Callable[..., Any], nargs: int) -> Callable[..., Any]:
    """A function of so many arguments, for one whose own are not known by name."""
    names = ", ".join(f"arg{i}" for i in range(nargs))
    made: Callable[..., Any] = eval(f"lambda {names}: fn({names})", {"fn": fn})
    return made


def _signed(f: Any, count: int) -> Any:
    code = getattr(inspect.unwrap(f), "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS:
        return _fake_signature(f, count)
    return f


@compatibility(is_backward_compatible=False)
def dispatch_trace(root: Any, tracer: Tracer, concrete_args: tuple[Any, ...] | None = None) -> GraphModule:
    """The module that a tracer makes of a function."""
    graph: Graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


def wrap_key(f: Any, tensors: Any, tracer: PythonKeyTracer, pre_dispatch: bool) -> Any:
    """A function of proxies that runs `f` with tensors, which the proxies stand for."""
    leaves, _ = pytree.tree_flatten(tensors)

    @functools.wraps(f)
    def wrapped(*proxies: Any) -> Any:
        for tensor, proxy in zip(leaves, pytree.tree_leaves(proxies)):
            if isinstance(tensor, Tensor) and isinstance(proxy, Proxy):
                track_tensor_tree(tensor, proxy, constant=None, tracer=tracer)
        return pytree.tree_map_only(Tensor, tracer.unwrap_proxy, f(*tensors))

    return wrapped


@compatibility(is_backward_compatible=False)
def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Any] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
    proxy_module_inputs: bool = False,
    _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., GraphModule]:
    """A function that takes the arguments of `f` and gives a module with the operators that `f` runs for them.
    `tracing_mode`: "real" runs them, "fake" takes tensors without values."""
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be 'real', 'fake', or 'symbolic', got {tracing_mode!r}")
    for name, value in (
        ("pre_dispatch", pre_dispatch),
        ("record_module_stack", record_module_stack),
        ("proxy_module_inputs", proxy_module_inputs),
    ):
        if value:
            raise NotImplementedError(f"make_fx(): {name}=True is not supported")
    if tracing_mode == "symbolic":
        raise NotImplementedError("make_fx(): tracing_mode='symbolic': there are no symbolic sizes here")

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        tracer = PythonKeyTracer()
        tracer.record_stack_traces = record_stack_traces
        mode = ProxyTorchDispatchMode(tracer, tracing_mode, pre_dispatch, _allow_fake_constant)
        mode.decomposition_table = decomposition_table or {}
        with contextlib.ExitStack() as stack:
            if tracing_mode == "fake":
                args = _faked(args, _allow_non_fake_inputs, stack)
            fn = _signed(f, len(args))
            stack.enter_context(mode)
            made = dispatch_trace(wrap_key(fn, args, tracer, pre_dispatch), tracer, pytree.tree_map(lambda _: PH, args))
        return made

    return wrapped


def _faked(args: tuple[Any, ...], allow_real: bool, stack: contextlib.ExitStack) -> tuple[Any, ...]:
    from ..._guards import detect_fake_mode
    from ..._subclasses.fake_tensor import FakeTensorMode

    mode = detect_fake_mode(args)
    if mode is None:
        mode = FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=allow_real)
    found: tuple[Any, ...] = pytree.tree_map_only(Tensor, mode.from_tensor, args)
    stack.enter_context(mode)
    return found


@compatibility(is_backward_compatible=False)
class DecompositionInterpreter(Interpreter):
    """Writes a module's operators into a new graph, those of a table in terms of others."""

    def __init__(
        self, module: GraphModule, new_graph: Graph, decomposition_table: dict[Any, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.tracer = PythonKeyTracer()
        self.tracer.graph = new_graph
        self.tracer.tensor_attrs = {}
        self.tracer.root = module
        self.mode = ProxyTorchDispatchMode(self.tracer, "real")
        self.mode.decomposition_table = decomposition_table or {}

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = super().placeholder(target, args, kwargs)
        proxy = Proxy(self.new_graph.placeholder(target), self.tracer)
        return track_tensor_tree(value, proxy, constant=None, tracer=self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = super().get_attr(target, args, kwargs)
        proxy = Proxy(self.new_graph.get_attr(target), self.tracer)
        return track_tensor_tree(value, proxy, constant=None, tracer=self.tracer)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = super().output(target, args, kwargs)
        self.new_graph.output(pytree.tree_map(lambda v: self.tracer.create_arg(self.tracer.unwrap_proxy(v)), result))
        return result

    def run(self, *args: Any, **kwargs: Any) -> Any:
        with recorded(), self.mode:
            return super().run(*args, **kwargs)


# -- questions ------------------------------------------------------------------------------------------------------
def get_innermost_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The innermost mode that writes operators down."""
    return next((m for m in reversed(mode_stack()) if isinstance(m, ProxyTorchDispatchMode)), None)


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode that writes operators down."""
    return get_innermost_proxy_mode()


@contextlib.contextmanager
def disable_proxy_modes_tracing() -> Iterator[None]:
    """Inside, nothing is written down."""
    mode = get_innermost_proxy_mode()
    before = mode.enable_tracing if mode is not None else True
    if mode is not None:
        mode.enable_tracing = False
    try:
        yield
    finally:
        if mode is not None:
            mode.enable_tracing = before


@contextlib.contextmanager
def maybe_disable_thunkify() -> Iterator[None]:
    """Nothing is put off here."""
    yield


@contextlib.contextmanager
def maybe_enable_thunkify() -> Iterator[None]:
    """Nothing is put off here."""
    yield


def get_isolated_graphmodule(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tracing_mode: str = "real", **options: Any
) -> GraphModule:
    """The module of a function, traced apart from what is traced at the moment."""
    flat, spec = pytree.tree_flatten((args, kwargs))

    def unflattened(*values: Any) -> Any:
        given, named = pytree.tree_unflatten(values, spec)
        return func(*given, **named)

    with disable_proxy_modes_tracing():
        return make_fx(unflattened, tracing_mode=tracing_mode, **options)(*flat)
