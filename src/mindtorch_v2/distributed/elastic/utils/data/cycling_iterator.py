"""`torch.distributed.elastic.utils.data.cycling_iterator`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["CyclingIterator"]

_T = TypeVar("_T")


class CyclingIterator(Iterator[_T], Generic[_T]):
    """Goes through `n` epochs; a function gives the iterator of each."""

    def __init__(self, n: int, generator_fn: Callable[[int], Iterator[_T]], start_epoch: int = 0) -> None:
        self._n, self._epoch, self._generator_fn = n, start_epoch, generator_fn
        self._iter = generator_fn(start_epoch)

    def __iter__(self) -> CyclingIterator[_T]:
        return self

    def __next__(self) -> _T:
        while True:
            try:
                return next(self._iter)
            except StopIteration:
                if self._epoch >= self._n - 1:
                    raise
            self._epoch += 1
            self._iter = self._generator_fn(self._epoch)
