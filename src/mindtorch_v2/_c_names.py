"""Names of `torch._C` that only PyTorch's own modules and tests, and what was made after them, ask for."""

from __future__ import annotations

import weakref
from typing import Any

from ._dispatch.keys import PYTHON
from ._dispatch.state import NO_TORCH_FUNCTION, modes, set_modes
from ._ops.rules.pointwise import broadcast_shapes
from ._size import Size
from ._tensor_base import TensorBase


def _infer_size(*args: Any) -> Size:
    """The shape that two shapes broadcast to."""
    if len(args) != 2:
        raise RuntimeError("expected exactly 2 arguments")
    for i, size in enumerate(args):
        if not isinstance(size, Size):
            raise RuntimeError(f"expected a torch.Size as argument {i + 1}")
    return Size(broadcast_shapes(tuple(args[0]), tuple(args[1])))


def _storage_id(arg0: Any) -> int:
    """A number that tensors have in common exactly when they share a storage."""
    if not isinstance(arg0, TensorBase):
        raise TypeError(
            "_storage_id(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. (arg0: torch.Tensor) -> int\n\nInvoked with: {arg0!r}"
        )
    return id(arg0._storage)


class _WeakTensorRef:
    """Asks whether a tensor is still there without keeping it."""

    def __init__(self, tensor: TensorBase) -> None:
        self._ref = weakref.ref(tensor)

    def expired(self) -> bool:
        return self._ref() is None


class _EnableTorchFunction:
    """`__torch_function__` is asked again, inside a block that hid it, from now until this object goes."""

    def __init__(self) -> None:
        self._before: int | None = modes()
        set_modes(self._before & ~(NO_TORCH_FUNCTION | PYTHON << 32))

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None:
        before, self._before = self._before, None
        if before is not None:
            set_modes(before)

    def __del__(self) -> None:
        self.__exit__()


def _nnpack_available() -> bool:
    """Whether NNPACK, a library for convolutions, is there."""
    return False
