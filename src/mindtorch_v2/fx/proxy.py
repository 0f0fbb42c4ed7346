"""Stand-ins for the values of a program that is traced: what is done to them becomes nodes of a graph.

Invariant: a proxy never has a value; a program that needs one (`if x:`, `for v in x:`) raises `TraceError`.
"""

from __future__ import annotations

import copy
import dis
import enum
import inspect
import logging
import operator
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any

import mindtorch_v2 as torch

from .._operators import OpOverload
from ..utils._pytree import tree_map_
from . import _leaves, config
from . import traceback as fx_traceback
from ._codegen import magic_methods, reflectable_magic_methods
from ._compatibility import compatibility
from ._names import is_python_function, method_name, target_name
from .graph import Graph
from .node import Node, Target, base_types, map_arg

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "MetaProxy",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]

log = logging.getLogger(__name__)


@compatibility(is_backward_compatible=False)
class Scope:
    """The module in whose `forward` a node is made."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


@compatibility(is_backward_compatible=False)
class ScopeContextManager:
    """Inside, `scope` is another one."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._prev_scope = copy.copy(scope)
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exc: object) -> None:
        self._scope.module_path = self._prev_scope.module_path
        self._scope.module_type = self._prev_scope.module_type


# What a new node takes over from the one that runs.
_COPY_META_FIELDS = (
    *("nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id"),
    *("has_backward_hook", "from_node", "quantization_tag", "_numeric_debug_handle", "custom", "partitioner_tag"),
)


@compatibility(is_backward_compatible=True)
class TraceError(ValueError):
    """A program cannot be traced because it asks for a value."""


@compatibility(is_backward_compatible=True)
class TracerBase:
    """Makes nodes, and proxies for them."""

    graph: Graph
    # Whether nodes note where they were made.
    record_stack_traces: bool = False
    # Whether calls that write to an argument are refused.
    check_mutable_operations: bool = False
    # Whether `assert x` becomes a node.
    trace_asserts: bool = False
    # Whether buffers are proxies, as parameters are.
    proxy_buffer_attributes: bool = False
    # The method of a module that is traced.
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """A node at the end of the graph; subclasses look at, or change, what is recorded."""
        if kind == "call_function" and self.check_mutable_operations:
            from .operator_schemas import check_for_mutable_operation

            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            current = fx_traceback.get_current_meta()
            if current.get("stack_trace"):
                node.stack_trace = current["stack_trace"]
            for field in _COPY_META_FIELDS:
                if field in current:
                    node.meta[field] = copy.copy(current[field])
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace and not config.do_not_emit_stack_traces:
            frames = self._filter_traceback_frames(traceback.extract_stack())
            if frames:
                node.stack_trace = "".join(frames.format()).strip()
        return node

    def _filter_traceback_frames(self, user_stack_summary: traceback.StackSummary) -> traceback.StackSummary:
        """The frames from the first `forward` on, without those of the tracer."""
        found: list[traceback.FrameSummary] = []
        for i, frame in enumerate(user_stack_summary):
            if frame.name == "forward":
                found = list(user_stack_summary[i:])
                break
        return traceback.StackSummary.from_list([f for f in found if not _leaves.is_own_file(f.filename)])

    def _find_user_frame(self) -> FrameType | None:
        """The frame of the traced program."""
        frame = inspect.currentframe()
        while frame is not None and _leaves.is_own_file(frame.f_code.co_filename):
            frame = frame.f_back
        return frame

    def proxy(self, node: Node) -> Proxy:
        """A proxy for a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any | None = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A proxy for a new node."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(args_, tuple):
            raise AssertionError(f"Expected args_ to be tuple, got {type(args_)}")
        if not isinstance(kwargs_, dict):
            raise AssertionError(f"Expected kwargs_ to be dict, got {type(kwargs_)}")
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        return self.proxy(node) if not proxy_factory_fn else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Any:
        """What a value is as an argument of a node; raises NotImplementedError for what cannot be one."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(elem) for elem in a]
            return type(a)(*parts) if hasattr(a, "_fields") else type(a)(parts)
        if isinstance(a, list):
            return [self.create_arg(elem) for elem in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, OpOverload):
            return a
        if is_dataclass(a):
            given = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", a.__class__, (), given)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, k: Any) -> Any:
        if isinstance(k, str):
            return k

        def refuse(node: Node) -> Any:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")

        key = self.create_arg(k)
        map_arg(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """The truth of a proxy; a subclass may know one."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The elements of a proxy; a subclass may know them."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a proxy, which `**` asks for."""
        return Attribute(obj, "keys")()


@compatibility(is_backward_compatible=True)
class GraphAppendingTracer(TracerBase):
    """The tracer of proxies that are made by hand: nodes are appended to the graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


@compatibility(is_backward_compatible=False)
def assert_fn(x: Any) -> None:
    """What `assert x` of a traced program does when the graph runs."""
    if not x:
        raise AssertionError("Assertion failed")


def _instruction_of_caller(frame: FrameType) -> tuple[list[dis.Instruction], int]:
    """The instructions of a frame and the place of the one it is at."""
    found = list(dis.get_instructions(frame.f_code))
    return found, next((i for i, inst in enumerate(found) if inst.offset >= frame.f_lasti), len(found) - 1)


@compatibility(is_backward_compatible=True)
class Proxy:
    """Stands for the value that a node computes. Functions, methods and operators applied to it become nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        if tracer is None:
            tracer = GraphAppendingTracer(node.graph)
        _leaves.need()
        self.tracer = tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        # Not a node yet: mostly it is called next, as a method.
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        state: dict[str, Any] = {}
        for k, v in self.__dict__.items():
            try:
                state[k] = copy.deepcopy(v, memo)
            except Exception:
                log.warning(
                    "Shallow copy %s of Proxy because it cannot be deepcopied. Proxy is created for node %s",
                    k,
                    self.node.name,
                )
                state[k] = copy.copy(v)
        made = Proxy(state["node"], state["tracer"])
        made.__dict__.update(state)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame: Any = inspect.currentframe()
        found, at = _instruction_of_caller(frame.f_back)
        if found[at].opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(found[at].argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            frame: Any = inspect.currentframe()
            if _is_assertion(frame.f_back):
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    def __getitem__(self, key: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, key), {})

    def keys(self) -> Any:
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want "
            "this call to be recorded, please call torch.fx.wrap('len') at "
            "module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def find_tracer(a: Any) -> None:
            if isinstance(a, cls):
                tracers[a.tracer] = None

        tree_map_(find_tracer, args)
        tree_map_(find_tracer, kwargs)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        method = method_name(orig_method)
        if method is not None:
            return tracer.create_proxy("call_method", method, args, kwargs)
        if is_python_function(orig_method):
            orig_method, args, kwargs = _leaves.completed(orig_method, args, kwargs)
        name = tracer.graph._target_to_str(target_name(orig_method))
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


def _is_assertion(frame: Any) -> bool:
    """Whether the truth that is asked for decides an `assert` statement."""
    found, at = _instruction_of_caller(frame)
    if not found[at].opname.startswith("POP_JUMP") or "IF_TRUE" not in found[at].opname or at + 1 >= len(found):
        return False
    first = found[at + 1]
    return first.opname == "LOAD_ASSERTION_ERROR" or (
        first.opname in ("LOAD_GLOBAL", "LOAD_COMMON_CONSTANT") and first.argval in ("AssertionError", AssertionError)
    )


@compatibility(is_backward_compatible=False)
class MetaProxy(Proxy):
    """A proxy that also works out, without values, what its node gives."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        found = next((a for a in args if isinstance(a, MetaProxy)), None)
        if found is None:
            raise AssertionError("No MetaProxy found in arguments, but one is expected.")
        proxy = super().__torch_function__(orig_method, types, args, kwargs)
        with found.fake_mode:
            values = [a.node.meta["val"] if isinstance(a, Proxy) else a for a in args]
            proxy.node.meta["val"] = orig_method(*values, **kwargs)
        return MetaProxy(proxy.node, proxy.tracer, found.fake_mode)


@compatibility(is_backward_compatible=True)
class Attribute(Proxy):
    """An attribute of a proxy: a node when it is used, or the name of a method when it is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _attribute_node(self: Attribute) -> Node:
    if self._node is None:
        self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
    return self._node


setattr(Attribute, "node", property(_attribute_node))


@compatibility(is_backward_compatible=False)
class ParameterProxy(Proxy):
    """A parameter whose sizes are known, so that a program may ask for them."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: torch.nn.Parameter) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, torch.nn.Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param: Any = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self) -> Any:
        return self.param.size()

    def dim(self) -> Any:
        return self.param.dim()

    @property
    def ndim(self) -> Any:
        return self.param.ndim

    def numel(self) -> Any:
        return self.param.numel()

    def nelement(self) -> Any:
        return self.param.nelement()


def _define(name: str) -> None:
    """Python's operator `name` of a proxy."""

    def impl(*args: Any, **kwargs: Any) -> Proxy:
        proxy: Proxy = args[0].tracer.create_proxy("call_function", getattr(operator, name), args, kwargs)
        return proxy

    impl.__name__ = name
    setattr(Proxy, f"__{name.strip('_')}__", impl)
    if name in reflectable_magic_methods:

        def reflected(self: Proxy, rhs: Any) -> Proxy:
            return self.tracer.create_proxy("call_function", getattr(operator, name), (rhs, self), {})

        reflected.__name__ = reflected.__qualname__ = f"__r{name.strip('_')}__"
        setattr(Proxy, reflected.__name__, reflected)


for _name in magic_methods:
    _define(_name)
