"""`torch.autograd.forward_ad`: derivatives along the forward pass, with dual tensors.

Invariant: at most one level is open here, as in PyTorch; `torch.func` nests levels of its own. What operators do with
tangents is `_autograd.forward`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .._autograd.forward import bar, enter_level, leave_level, put_dual, tangent_of
from .._core_operators import CORE
from .._dispatch.keys import FORWARD, NESTED, SPARSE
from .._dispatch.state import modes, set_modes
from .._tensor_base import TensorBase, is_dual
from .grad_mode import _Decorator

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_HIDDEN = int(FORWARD) << 32

# The level that is open, -1 if none is, and the one of `_autograd.forward` behind it.
_current_level = -1
_entered: list[tuple[int, int, frozenset[int]]] = []


def _checked(level: int, where: str) -> int:
    """The level of `_autograd.forward` behind the given one."""
    if not _entered:
        raise RuntimeError(
            "Trying to access a forward AD level with an invalid index. This index was either not created or is "
            "already deleted."
        )
    if level != 0:
        raise RuntimeError(f"Invalid level given to {where}")
    return _entered[-1][0]


class UnpackedDualTensor(NamedTuple):
    """A tensor, and its tangent where it has one."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Open a level; inside, tensors may have tangents."""
    global _current_level
    if _entered:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _entered.append(enter_level())
    _current_level = 0
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level; tangents made in it are gone."""
    global _current_level
    wanted = _current_level if level is None else level
    if wanted != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if wanted < 0:
        raise RuntimeError("Dual level must be a positive number.")
    leave_level(_entered.pop())
    _current_level = -1


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A view of `tensor` that carries `tangent`."""
    wanted = _current_level if level is None else level
    if wanted < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for what, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {value.dtype}")
    seen = tensor if tensor._keys & SPARSE else CORE.view.call((tensor, tensor._shape))
    return put_dual(seen, tangent, _checked(wanted, "_make_dual"))


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """A view of the value, without a tangent at the level, and the tangent; None where there is none."""
    wanted = _current_level if level is None else level
    if wanted < 0:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    if not is_dual(tensor) and not tensor._keys & NESTED:
        return UnpackedDualTensor(primal_of(tensor), None)
    tangent = tangent_of(tensor, _checked(wanted, "_fw_primal"))
    return UnpackedDualTensor(primal_of(tensor), tangent)


def primal_of(tensor: Any) -> Any:
    """A view of the value, without any tangent."""
    if tensor._keys & SPARSE:
        return tensor if not tensor._keys & NESTED else tensor._without_tangents()
    with _set_fwd_grad_enabled(False):
        seen = CORE.alias.call((tensor,))
    bar(seen)
    return seen


class dual_level(_Decorator):
    """The context of a level: tensors may have tangents inside, and none of them afterwards."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()


def _is_fwd_grad_enabled() -> bool:
    """Whether operators of this thread compute tangents."""
    return not modes() & _HIDDEN


class _set_fwd_grad_enabled(_Decorator):
    """Whether operators compute tangents; takes effect at once, and ends with the block."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.prev = modes() & _HIDDEN
        set_modes(modes() & ~_HIDDEN if mode else modes() | _HIDDEN)

    def clone(self) -> Any:
        return type(self)(self.mode)

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None:
        set_modes((modes() & ~_HIDDEN) | self.prev)
