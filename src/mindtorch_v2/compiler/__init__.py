"""`torch.compiler`: what programs tell and ask PyTorch's compiler. Nothing is compiled here; the answers say so."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any, NoReturn

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "list_backends",
    "load_cache_artifacts",
    "load_compiled_function",
    "nested_compile_region",
    "reset",
    "save_cache_artifacts",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph",
    "wrap_numpy",
]


def compile(*args: Any, **kwargs: Any) -> Any:
    """`torch.compile`."""
    import mindtorch_v2 as torch

    return torch.compile(*args, **kwargs)


def is_compiling() -> bool:
    """False: a program that runs is being run."""
    return False


def is_dynamo_compiling() -> bool:
    return False


def is_exporting() -> bool:
    return False


def _is_non_strict_tracing() -> bool:
    return False


def reset() -> None:
    """Forget what was compiled: nothing."""


def cudagraph_mark_step_begin() -> None:
    """There are no graphs of CUDA."""


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is never compiled; used bare or with arguments."""
    from .._dynamo import decorators

    return decorators.disable(fn, recursive, reason=reason)


def allow_in_graph(fn: Any) -> Any:
    """A function that a tracer would call without looking inside."""
    from .._dynamo import decorators

    return decorators.allow_in_graph(fn)


def assume_constant_result(fn: Any) -> Any:
    from .._dynamo import decorators

    return decorators.assume_constant_result(fn)


def substitute_in_graph(
    original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Any:
    from .._dynamo import decorators

    return decorators.substitute_in_graph(original_fn)


def set_stance(stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None) -> Any:
    """How compiled functions run: eagerly, whatever is chosen."""
    from .._dynamo import decorators

    return decorators.set_stance(stance, skip_guard_eval_unsafe=skip_guard_eval_unsafe, force_backend=force_backend)


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that `torch.compile(backend=...)` takes."""
    from .._dynamo.backends import registry

    return registry.list_backends(exclude_tags)


def get_default_backend() -> Any:
    from .._dynamo.backends import registry

    return registry.get_default_backend()


def set_default_backend(backend: Any) -> None:
    from .._dynamo.backends import registry

    registry.set_default_backend(backend)


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Whether processes agreed on compiling again; they never do here. Gives what was set before."""
    before, _GUARDS[0] = _GUARDS[0], bool(enabled)
    return before


_GUARDS = [False]


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """A function that is compiled once for all its calls: the function itself."""
    return fn if fn is not None else (lambda given: given)


def wrap_numpy(fn: Any) -> Any:
    """A function of NumPy arrays, called with tensors."""
    import functools

    from ..utils._pytree import tree_map_only

    @functools.wraps(fn)
    def wrap(*args: Any, **kwargs: Any) -> Any:
        import numpy

        import mindtorch_v2 as torch

        args, kwargs = tree_map_only(torch.Tensor, lambda t: t.numpy(), (args, kwargs))
        return tree_map_only(numpy.ndarray, torch.as_tensor, fn(*args, **kwargs))

    return wrap


def save_cache_artifacts() -> None:
    """None: nothing was compiled."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """None: there is nobody to use them."""


def load_compiled_function(file: Any, **options: Any) -> NoReturn:
    raise NotImplementedError("torch.compiler.load_compiled_function: nothing is compiled here")


# -- which guards of a compiled function to keep: a list of True and False -------------------------------------------
def skip_all_guards_unsafe(guard_entries: Any) -> list[bool]:
    return [False for _ in guard_entries]


def keep_portable_guards_unsafe(guard_entries: Any) -> list[bool]:
    return [entry.guard_type not in ("ID_MATCH", "CLOSURE_MATCH", "WEAKREF_ALIVE") for entry in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    return [entry.guard_type == "TENSOR_MATCH" for entry in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    return [not entry.orig_guard.source.is_unspecialized_builtin_nn_module() for entry in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    return [not entry.orig_guard.source.is_unspecialized_nn_module() for entry in guard_entries]


def skip_guard_on_globals_unsafe(guard_entries: Any) -> list[bool]:
    return [not entry.is_global for entry in guard_entries]


def __getattr__(name: str) -> Any:
    if name == "config":
        return _import_module(f"{__name__}.config")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
