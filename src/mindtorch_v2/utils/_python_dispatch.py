"""`torch.utils._python_dispatch`: modes below autograd, and helpers for tensors that wrap others.

Invariant: a thin face of `_torch_dispatch`, which implements modes and handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .._dispatch.op import Op
from .._tensor_base import TensorBase
from .._torch_dispatch import TorchDispatchMode, mode_stack, takes_over, without_modes

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode."""
    stack = mode_stack()
    return stack[-1] if stack else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """All modes, the innermost last."""
    return list(mode_stack())


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    return any(include_infra_modes or not mode.is_infra_mode() for mode in mode_stack())


@contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """Inside, no mode is asked; subclasses still are."""
    with without_modes() as taken:
        yield taken


@contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[TorchDispatchMode]:
    """Inside, the innermost mode is off."""
    if k is not None:
        raise NotImplementedError(f"_pop_mode_temporarily(): argument 'k' must be None, got {k}")
    with without_modes(1) as taken:
        yield taken[0]


# -- wrapper subclasses -------------------------------------------------------------------------------------------
def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether `t` wraps other tensors and says how it comes apart and together again."""
    cls = t if isinstance(t, type) else type(t)
    return (
        issubclass(cls, TensorBase)
        and takes_over(cls)
        and hasattr(cls, "__tensor_flatten__")
        and hasattr(cls, "__tensor_unflatten__")
    )


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """The same kind of wrapper around `callback(name, inner)` of each inner tensor."""
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if tuple(made.shape) != tuple(outer_size) or tuple(made.stride()) != tuple(outer_stride):
        raise AssertionError(
            f"expected return value from {type(t)}__tensor_unflatten__() to have shape equal to "
            f"{outer_size} and stride {outer_stride}, but got: {tuple(made.shape)} and "
            f"{made.stride()}"
        )
    return made


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What a handler of wrapper subclasses returns: the given tensors where the schema says so, sharing where it does.

    In-place and `out=` operators give back the very tensor they wrote; the result of a view shares its input's storage
    object, as the memory inside does.
    """
    op: Op = func._op
    given = {a.name: value for a, value in zip(op.schema.args, args)}
    given.update(kwargs or {})
    arguments = [given.get(a.name) for a in op.schema.args]
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    if op.is_view:
        for t in outs:
            if isinstance(t, TensorBase) and isinstance(arguments[0], TensorBase):
                _share(arguments[0], t)
        return out
    written = [value for a, value in zip(op.schema.args, arguments) if a.mutates]
    returned = [r for r in op.schema.returns if r.mutates]
    if not written or not returned:
        return out
    if len(returned) != len(op.schema.returns):
        raise RuntimeError(f"Unsupported schema: {func._schema}. Some results are written arguments, others are not.")
    return written[0] if len(returned) == 1 else type(out)(written)


def _share(source: TensorBase, view: TensorBase) -> None:
    if type(source) is not type(view):
        raise AssertionError(f"expected a view of {type(source).__name__} to be one itself, got {type(view).__name__}")
    view._storage = source._storage
