"""`Memory`: the elements of a tensor side by side, as transports want them.

Invariant: what was received reaches the tensor, whatever its strides, when `done` is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Memory", "splits"]


class Memory:
    """A tensor's elements side by side: the tensor's own memory, or a copy that is written back."""

    __slots__ = ("flat", "tensor")

    def __init__(self, tensor: Any, fill: bool = True) -> None:
        own = tensor.detach()
        self.tensor: Any = None
        if own.is_contiguous():
            self.flat = own.view(-1)
        else:
            self.tensor = own
            self.flat = own.contiguous().view(-1) if fill else own.new_empty(own.numel())

    def done(self) -> None:
        if self.tensor is not None:
            self.tensor.copy_(self.flat.view(self.tensor.shape))


def splits(tensor: Any, sizes: Sequence[int], ranks: int) -> list[int]:
    """How many elements go to each rank."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if not sizes:
        if rows % ranks:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        return [tensor.numel() // ranks] * ranks
    if len(sizes) != ranks:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != rows:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    row = tensor.numel() // rows if rows else 0
    return [int(size) * row for size in sizes]
