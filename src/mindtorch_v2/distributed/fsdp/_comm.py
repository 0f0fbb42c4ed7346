"""How `fully_shard` gathers and reduces: the two collectives that a program may give its own form of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from .. import _collectives as collectives


class Comm(ABC):
    """A collective, and where its memory comes from."""

    @abstractmethod
    def allocate(self, size: Sequence[int], *, dtype: Any, device: Any) -> Any:
        """Memory for what is sent or received."""


class AllGather(Comm):
    """Gives everybody the parts of all."""

    @abstractmethod
    def __call__(self, output_tensor: Any, input_tensor: Any, group: Any, async_op: bool = False) -> Any:
        """Begin it; what has `wait`, or None if it is done."""


class ReduceScatter(Comm):
    """Reduces what all have, and gives everybody one part."""

    @abstractmethod
    def __call__(self, output_tensor: Any, input_tensor: Any, group: Any, op: Any, async_op: bool = False) -> Any:
        """Begin it; what has `wait`, or None if it is done."""


class _Plain(Comm):
    """Memory from where all tensors have it."""

    def allocate(self, size: Sequence[int], *, dtype: Any, device: Any) -> Any:
        from ... import empty

        return empty(*size, dtype=dtype, device=device)


class DefaultAllGather(_Plain, AllGather):
    """The group's own."""

    def __call__(self, output_tensor: Any, input_tensor: Any, group: Any, async_op: bool = False) -> Any:
        return collectives.all_gather_single(output_tensor, input_tensor, group, async_op)


class DefaultReduceScatter(_Plain, ReduceScatter):
    """The group's own."""

    def __call__(self, output_tensor: Any, input_tensor: Any, group: Any, op: Any, async_op: bool = False) -> Any:
        return collectives.reduce_scatter_single(output_tensor, input_tensor, op, group, async_op)
