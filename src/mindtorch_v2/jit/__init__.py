"""`torch.jit`: scripts and traces of PyTorch. There is no script compiler here: programs run as the Python they are.

Invariant: a function returns what it was given where that computes the same; what needs a compiled script (its file,
its graph) raises and says what to use instead.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module as _import_module
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from .. import _absent
from .._jit_internal import _drop, _isinstance, _overload, _overload_method, export, ignore, is_scripting, unused  # noqa: F401 (public)
from ..futures import Future
from ..nn import Module

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "save",
    "script",
    "script_if_tracing",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

T = TypeVar("T")
_builtin_isinstance = builtins.isinstance
_WHY = (
    "torch.jit.{name}: there is no TorchScript here; programs run as the Python they are. Save state_dict() with "
    "torch.save, and build the module from its class"
)
globals().update(
    _absent.refusing(
        __name__,
        "save load export_opnames save_jit_module_to_flatbuffer jit_module_from_flatbuffer _get_trace_graph "
        "last_executed_optimized_graph",
        NotImplementedError,
        _WHY,
    )
)
globals().update(_absent.classes(__name__, "CompilationUnit RecursiveScriptClass", _WHY))


class Error(RuntimeError):
    """An exception that a script raised."""


class TracerWarning(Warning):
    """What a trace warns of."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do not show those that come from PyTorch's own modules."""
        from warnings import filterwarnings

        filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")
        filterwarnings("ignore", "torch::jit::fuser::cuda")


class ScriptWarning(Warning):
    """What the script compiler warns of."""


class TracingCheckError(Exception):
    """A trace that computes something else."""


class Attribute(NamedTuple):
    """A value with the type that a script gives it."""

    value: Any
    type: Any


class _NoInstances(type):
    """Of classes that only a script compiler makes instances of."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(_WHY.replace("{name}", cls.__name__))


class ScriptFunction(metaclass=_NoInstances):
    """A compiled function: nothing is an instance."""


class ScriptMethod(metaclass=_NoInstances):
    """A compiled method: nothing is an instance."""

    __module__ = __name__.rpartition(".")[0]


class ScriptModule(Module):
    """The base of modules whose methods are marked with `script_method`; here a module like any other."""

    def save(self, f: Any, **kwargs: Any) -> None:
        raise NotImplementedError(_WHY.replace("{name}", "ScriptModule.save"))


class RecursiveScriptModule(ScriptModule, metaclass=_NoInstances):
    """A compiled module: nothing is an instance."""


class TracedModule(ScriptModule, metaclass=_NoInstances):
    """A traced module: nothing is an instance."""


class TopLevelTracedModule(TracedModule):
    """A traced module: nothing is an instance."""


# -- functions, modules ---------------------------------------------------------------------------------------------
def script(
    obj: T,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Callable[[str], Any] | None = None,
    example_inputs: Any = None,
) -> T:
    """The function, class or module itself: what a script computes is what the Python computes."""
    if optimize is not None:
        raise TypeError("torch.jit.script: `optimize` is not supported; use `with torch.jit.optimized_execution()`")
    return obj


def script_method(fn: T) -> T:
    return fn


def trace(
    func: T,
    example_inputs: Any = None,
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> T:
    """The function or module itself; unlike a trace it still takes every branch that its arguments call for."""
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    return func


def trace_module(mod: T, inputs: dict[str, Any], optimize: None = None, **kwargs: Any) -> T:
    """The module itself."""
    if type(inputs) is not dict:
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    return mod


def script_if_tracing(fn: T) -> T:
    """The function itself: nothing is traced."""
    return fn


_script_if_tracing = script_if_tracing


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """The module itself, in evaluation mode; its parameters stay parameters."""
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    return mod


def optimize_for_inference(mod: T, other_methods: list[str] | None = None) -> T:
    """The module itself."""
    return mod


def interface(obj: T) -> T:
    """The class itself."""
    if not _builtin_isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    return obj


def annotate(the_type: Any, the_value: T) -> T:
    """The value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether a value fits a type with parameters."""
    return _isinstance(obj, target_type)


def _unwrap_optional(x: T | None) -> T:
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


# -- tasks: run where they are started --------------------------------------------------------------------------------
def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """A future of `func(*args, **kwargs)`, which outside of a script runs now."""
    result: Future[Any] = Future()
    result.set_result(func(*args, **kwargs))
    return result


def wait(future: Future[Any]) -> Any:
    if future is None:
        raise RuntimeError("Future can't be None")
    return future.wait()


_fork, _wait = fork, wait


# -- questions, switches ----------------------------------------------------------------------------------------------
def is_tracing() -> bool:
    """False: nothing is traced."""
    return False


class _Fusion:
    on = False


def enable_onednn_fusion(enabled: bool) -> None:
    """Kept, for who asks; there is nothing that fuses scripts."""
    _Fusion.on = bool(enabled)


def onednn_fusion_enabled() -> bool:
    return _Fusion.on


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Gives back PyTorch's default; there is nothing that fuses scripts."""
    for kind, depth in strategy:
        if kind not in ("STATIC", "DYNAMIC"):
            raise ValueError(f"FusionBehavior must be STATIC or DYNAMIC, got {kind}")
        int(depth)
    return [("STATIC", 2), ("DYNAMIC", 10)]


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """No change: the program is Python."""
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """No change: there is nothing that fuses scripts."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3", "none"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


class strict_fusion:
    """A context of scripts; outside of one it does nothing, as PyTorch warns."""

    def __init__(self) -> None:
        from .._warn import warn

        warn("Only works in script mode")

    def __enter__(self) -> None:
        return None

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        return None


# The import at the top leaves something else under the submodule's name.
for _name in ("annotations", "_recursive", "_state"):
    _import_module(f"{__name__}.{_name}")
