"""`torch.autograd.forward_ad`: derivatives along the forward pass, which are not written yet.

Invariant: no level is ever entered, so that no tensor has a tangent; asking for one is answered, making one is refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_WHY = "forward-mode differentiation is not available here; use backward() or torch.autograd.functional"


class UnpackedDualTensor(NamedTuple):
    """A tensor, and its tangent where it has one."""

    primal: Any
    tangent: Any


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """A tensor and its tangent: there is none."""
    return UnpackedDualTensor(tensor, None)


def enter_dual_level() -> int:
    """Refused."""
    raise NotImplementedError(f"enter_dual_level: {_WHY}")


def exit_dual_level(*, level: int | None = None) -> None:
    """Refused: no level was entered."""
    raise RuntimeError("Dual level must be a positive number.")


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Refused, in PyTorch's words for a call outside of a level."""
    raise RuntimeError(
        "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
    )


class dual_level:
    """The context of a level; entering it is refused."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None: ...
