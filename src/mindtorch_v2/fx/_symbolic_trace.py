"""Symbolic tracing: a program is run once with proxies, and what it does to them is written down.

Invariant: what is replaced while a program runs (calls and attributes of modules, wrapped functions) is put back after.
"""

from __future__ import annotations

import builtins
import collections
import copy
import functools
import inspect
import logging
import math
import os
import warnings
from collections.abc import Callable, Iterable
from itertools import chain
from types import CodeType, FunctionType, ModuleType
from typing import Any

import mindtorch_v2 as torch

from .. import _native
from ..nn.modules._walk import quicken
from ..utils import _pytree as pytree
from . import _leaves
from ._codegen import _PyTreeCodeGen, _PyTreeInfo
from ._compatibility import compatibility
from ._lazy_graph_module import _LazyGraphModule, _make_graph_module
from ._names import is_ours, public_module
from ._patching import _maybe_revert_all_patches as _maybe_revert_all_patches
from ._patching import _new_patcher, _Patcher
from .graph import Graph
from .graph_module import GraphModule
from .node import base_types, map_aggregate
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

log = logging.getLogger(__name__)
HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_orig_module_call: Callable[..., Any] = torch.nn.Module.__call__
_orig_module_getattr: Callable[..., Any] = torch.nn.Module.__getattr__
_proxyable_classes: dict[type, None] = {}
_constant_attribute_types = (torch.Tensor, pytree.TreeSpec)


class _State:
    tracing = False


@functools.cache
def is_fx_tracing_warning() -> None:
    log.warning(
        "is_fx_tracing will return true for both fx.symbolic_trace and torch.export. Please use "
        "is_fx_tracing_symbolic_tracing() for specifically fx.symbolic_trace "
        "or torch.compiler.is_compiling() for specifically torch.export/compile."
    )


def is_fx_tracing() -> bool:
    """Whether a program is traced at the moment."""
    is_fx_tracing_warning()
    return _State.tracing


def is_fx_symbolic_tracing() -> bool:
    """Whether a program is traced at the moment."""
    return _State.tracing


def _annotation(fn: Any, name: str) -> Any:
    """The annotation of an argument or of the result; our own, which are texts, as what they name."""
    found = inspect.get_annotations(fn).get(name)
    if not isinstance(found, str) or not is_ours(getattr(fn, "__module__", None) or ""):
        return found
    try:
        found = eval(found, fn.__globals__)
    except NameError:
        # Names for type checkers alone.
        return None
    return None if found is Any else found


@compatibility(is_backward_compatible=True)
class ProxyableClassMeta(type):
    """Metaclass of classes whose construction from proxies becomes a node."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = _find_proxy(args, kwargs) if _State.tracing else None
        if found is not None:
            return found.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def _patch_function(fn: FunctionType, nargs: int) -> FunctionType:
    """The function with `*args` and `**kwargs` as ordinary parameters, so that each can be one proxy."""
    code: CodeType = fn.__code__.replace(
        co_argcount=nargs, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=fn.__code__.co_flags & ~HAS_VARSTUFF
    )
    return FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


def _by_position(fn: Any, code: CodeType) -> Callable[..., Any]:
    """A function that is recorded as a whole, with its keywords as ordinary parameters."""
    if code.co_flags & HAS_VARSTUFF:
        return _patch_function(fn, code.co_argcount + code.co_kwonlyargcount)
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]

    def called(*args: Any) -> Any:
        return fn(*args[: code.co_argcount], **dict(zip(keywords, args[code.co_argcount :])))

    return functools.update_wrapper(called, fn)


@compatibility(is_backward_compatible=False)
class PHBase:
    """Stands in `concrete_args` for a value that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


@compatibility(is_backward_compatible=False)
class PHWithMeta(PHBase):
    """The same, with attributes that the input's node gets."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


@compatibility(is_backward_compatible=True)
class Tracer(TracerBase):
    """Tracer(autowrap_modules=(math,), autowrap_functions=())

    Traces modules and functions. Subclasses say which modules stay calls (`is_leaf_module`), what becomes of values
    that are no proxies (`create_arg`), and more.
    """

    _qualname_counter: dict[str, int] = collections.defaultdict(int)

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        found = chain.from_iterable(m.__dict__.items() for m in autowrap_modules)
        self._autowrap_function_ids: set[int] = {
            id(value) for name, value in found if not name.startswith("_") and callable(value)
        }
        self._autowrap_function_ids.update(id(f) for f in autowrap_functions)
        self._autowrap_search: list[ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[torch.nn.Module, str] | None = None
        self.root_module_name: str = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}
        self.root: Any

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that the traced module has no attribute of."""
        name = f"{prefix}0"
        if not hasattr(self.root, name):
            self._qualname_counter[prefix] = 0
            return name
        i = self._qualname_counter[prefix]
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        self._qualname_counter[prefix] = i + 1
        return f"{prefix}{i}"

    # -- values -----------------------------------------------------------------------------------------------------
    def create_arg(self, a: Any) -> Any:
        """What a value is as an argument of a node. Parameters, buffers and modules are found again by their path; a
        tensor that has none is kept in the module."""
        if isinstance(a, torch.nn.Parameter):
            for name, p in self.root.named_parameters():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        held: Iterable[tuple[str, Any]] = ()
        if isinstance(a, torch.Tensor):
            held = self.root.named_buffers()
        elif isinstance(a, torch.nn.Module):
            held = self.root.named_modules()
        for name, value in held:
            if a is value:
                return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", a.__class__, tuple(self.create_arg(elem) for elem in a), {})
        if isinstance(a, _constant_attribute_types):
            qualname = self.tensor_attrs.get(a)
            if not qualname:
                kind = "_tensor_constant" if isinstance(a, torch.Tensor) else "_tree_spec_constant"
                qualname = self.tensor_attrs[a] = self.get_fresh_qualname(kind)
                setattr(self.root, qualname, a)
            return self.create_node("get_attr", qualname, (), {})
        if type(a) in _proxyable_classes:
            qualname = self.get_fresh_qualname(f"_{a.__class__.__name__}_constant_")
            setattr(self.root, qualname, a)
            return self.create_node("get_attr", qualname, (), {})
        return super().create_arg(a)

    # -- modules ----------------------------------------------------------------------------------------------------
    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        """Whether a module stays a call: those of `torch.nn` do, except `Sequential`."""
        home = m.__module__
        if is_ours(home):
            home = public_module(home)
        return home.startswith(("torch.nn", "torch.ao.nn")) and not isinstance(m, torch.nn.Sequential)

    def path_of_module(self, mod: torch.nn.Module) -> str:
        """The path of a module inside the traced one."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, p in self.root.named_modules():
            if mod is p:
                found: str = name
                return found
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: torch.nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A module is called: a node if it is a leaf, else its `forward` is traced."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls > 0 else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            if self.is_leaf_module(m, path):
                result: Any = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            last, _ = self.module_stack.popitem(last=True)
            if last != key:
                raise AssertionError(f"Unexpected key {last}, expected {key}")
        return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """An attribute of a module is asked for: a parameter becomes a proxy, the same each time."""
        if isinstance(attr_val, torch.nn.Parameter):
            found = self._held(attr_val, self.root.named_parameters(), parameter_proxy_cache)
            if found is not None:
                return found
        if self.proxy_buffer_attributes and isinstance(attr_val, torch.Tensor):
            found = self._held(attr_val, self.root.named_buffers(), parameter_proxy_cache)
            if found is not None:
                return found
        return attr_val

    def _held(self, value: Any, held: Iterable[tuple[str, Any]], cache: dict[str, Any]) -> Any:
        name = next((n for n, p in held if p is value), None)
        if name is None:
            return None
        if name not in cache:
            options: dict[str, Any] = {}
            if "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                made = functools.partial(self._parameter_proxy, name, value)
                options["proxy_factory_fn"] = made if self.param_shapes_constant else None
            cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
        return cache[name]

    def _parameter_proxy(self, name: str, value: Any, node: Any) -> Proxy:
        return ParameterProxy(self, node, name, value)

    # -- inputs -----------------------------------------------------------------------------------------------------
    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: dict[str, Any] | tuple[Any, ...] | None = None
    ) -> tuple[Any, list[Any]]:
        """Nodes for the parameters of a function; gives a function that takes proxies for them, and those."""
        fn = _leaves.as_written(inspect.unwrap(root_fn))
        code = fn.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = iter(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            next(names)
            args.append(self.root)
        signature = inspect.signature(fn)
        if isinstance(concrete_args, tuple) and concrete_args and code.co_flags & HAS_VARSTUFF and total == 1:
            for i, given in enumerate(concrete_args):
                args.append(self._input(f"input_{i}", (), given))
            return root_fn, args
        arg_names = [next(names) for _ in range(is_module, total)]
        if isinstance(concrete_args, tuple):
            if len(arg_names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(arg_names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(arg_names, concrete_args))
        args.extend(self._proxy_placeholder(name, concrete_args, signature, fn) for name in arg_names)
        if code.co_kwonlyargcount > 0 or code.co_flags & HAS_VARSTUFF:
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self._proxy_placeholder("*" + next(names), concrete_args, signature, fn))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self._proxy_placeholder("**" + next(names), concrete_args, signature, fn))
            root_fn = _patch_function(root_fn, len(args)) if fn is root_fn else _by_position(root_fn, code)
        flat, in_spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        return self._flattening(root_fn, in_spec, list(code.co_varnames[:total])), flat

    def _flattening(self, root_fn: Any, in_spec: Any, names: list[str]) -> Any:
        """A function of flat inputs, for one of structured inputs."""
        codegen = self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, in_spec, None))

        def flatten_fn(*args):  # type: ignore[no-untyped-def]
            result = root_fn(*pytree.tree_unflatten(list(args), in_spec))
            flat, out_spec = pytree.tree_flatten(result)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return flat

        return flatten_fn

    def _input(self, name: str, default: tuple[Any, ...], given: Any) -> Proxy:
        out = self.create_proxy("placeholder", name, default, {})
        if isinstance(given, PHBase) and given is not PH:
            _transfer_attrs(fr=given, to=out.node)
        return out

    def _proxy_placeholder(self, name: str, concrete_args: Any, sig: inspect.Signature, fn: Any) -> Any:
        default: tuple[Any, ...] = ()
        if name[0] != "*":
            value = sig.parameters[name].default
            default = () if value is inspect.Parameter.empty else (value,)
        if concrete_args is None or name not in concrete_args:
            return self.create_proxy("placeholder", name, default, {}, type_expr=_annotation(fn, name))
        count = 0

        def replace(x: Any) -> Any:
            nonlocal count
            count += 1
            out = self._input(f"{name}_{count}", default, x)
            if isinstance(x, PHBase):
                return out
            if type(x) is bool or (type(x) in base_types and type(x) is not torch.Tensor):
                torch._assert(out == x, f"{name} has been specialized to have value {x} but got another value")
            elif x is None:
                message = f"{name} has been specialized to have value None but got another value"
                self.create_proxy("call_function", _assert_is_none, (out, message), {})
            else:
                warnings.warn(
                    f"Was not able to add assertion to guarantee correct input {name} to "
                    "specialized function. It is up to the user to make sure that your inputs match the "
                    "inputs you specialized the function with.",
                    stacklevel=2,
                )
            return x

        return pytree.tree_map(replace, concrete_args[name])

    # -- tracing ----------------------------------------------------------------------------------------------------
    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """The graph of a module or function. `concrete_args`: values that are no inputs, by parameter."""
        before = _State.tracing
        _State.tracing = True
        try:
            with _leaves.recorded():
                return self._trace(root, concrete_args)
        finally:
            _State.tracing = before

    def _trace(self, root: Any, concrete_args: Any) -> Graph:
        is_module = isinstance(root, torch.nn.Module)
        if is_module:
            # Generating code looks at values; inside a trace they would be proxies.
            _LazyGraphModule.force_recompile(root)
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            fn: Any = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {mod: name for name, mod in root.named_modules()}
        else:
            self.root = torch.nn.Module()
            fn = root
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        if hasattr(fn, "__code__"):
            code = fn.__code__
            self.graph._co_fields = {
                "co_name": code.co_name,
                "co_filename": code.co_filename,
                "co_firstlineno": code.co_firstlineno,
            }
        self.tensor_attrs: dict[Any, str] = {}
        self._collect_tensors(self.root, ())
        if not isinstance(fn, (FunctionType, _native.Overridable)):
            raise AssertionError(f"Expected FunctionType, got {type(fn)}")
        fn_globals = fn.__globals__ if isinstance(fn, FunctionType) else inspect.unwrap(fn).__globals__
        fn, args = self.create_args_for_root(fn, is_module, concrete_args)
        try:
            with _new_patcher() as patcher:
                self._patch_modules(patcher)
                _patch_wrapped_functions(patcher)
                _autowrap_check(patcher, fn_globals, self._autowrap_function_ids)
                for module in self._autowrap_search:
                    _autowrap_check(patcher, module.__dict__, self._autowrap_function_ids)
                returned = _annotation(inspect.unwrap(fn), "return")
                result = fn(*args)
                self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=returned)
        finally:
            quicken(torch.nn.Module)
        self.submodule_paths = None
        return self.graph

    def _collect_tensors(self, m: torch.nn.Module, path: tuple[str, ...]) -> None:
        """Tensors that are plain attributes of modules, by path."""
        for name, value in m.__dict__.items():
            if isinstance(value, _constant_attribute_types):
                self.tensor_attrs[value] = ".".join((*path, name))
        for name, child in m.named_children():
            self._collect_tensors(child, (*path, name))

    def _patch_modules(self, patcher: _Patcher) -> None:
        """Calls of modules, and their parameters, come to this tracer."""
        cache: dict[str, Any] = {}

        @functools.wraps(_orig_module_getattr)
        def module_getattr(mod: torch.nn.Module, attr: str) -> Any:
            return self.getattr(attr, _orig_module_getattr(mod, attr), cache)

        @functools.wraps(_orig_module_call)
        def module_call(mod: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(mod, *args, **kwargs)

            space = getattr(getattr(mod, "forward", mod), "__globals__", {})
            _autowrap_check(patcher, space, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        patcher.patch_method(torch.nn.Module, "__getattr__", module_getattr, deduplicate=False)
        patcher.patch_method(torch.nn.Module, "__call__", module_call, deduplicate=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = Tracer.__new__(Tracer)
        for name, value in self.__dict__.items():
            # Modules cannot be copied.
            made.__dict__[name] = copy.copy(value) if name == "_autowrap_search" else copy.deepcopy(value, memo)
        return made


# -- wrapped functions ----------------------------------------------------------------------------------------------
# Globals to wrap: by the dict of their module, and name.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
if os.environ.get("FX_PATCH_GETITEM") == "1":
    _wrapped_methods_to_patch.append((torch.Tensor, "__getitem__"))


def _find_proxy(*objects_to_search: Any) -> Proxy | None:
    """A proxy in a structure."""
    found: list[Proxy] = []
    map_aggregate(objects_to_search, lambda x: found.append(x) if isinstance(x, Proxy) else None)
    return found[-1] if found else None


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", orig_fn, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return orig_fn(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    for (_, name), space in _wrapped_fns_to_patch.copy().items():
        orig_fn = getattr(builtins, name) if name not in space and hasattr(builtins, name) else space[name]
        patcher.patch(space, name, _create_wrapped_func(orig_fn))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Wrap the functions that are wrapped wherever they are seen."""
    if not patcher.visit_once(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.patch(frame_dict, name, _create_wrapped_func(value))


@compatibility(is_backward_compatible=True)
def wrap(fn_or_name: Any) -> Any:
    """Keep a function of the calling module, given or by name, as a call in traces of that module."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    current: Any = inspect.currentframe()
    frame = current.f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


@compatibility(is_backward_compatible=True)
def symbolic_trace(root: Any, concrete_args: Any = None) -> GraphModule:
    """A module with the graph of `root`, a module or function. `concrete_args` fixes parameters; in it `fx.PH` stands
    for what stays an input."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


@wrap
def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)
