"""Samples in random order, which makes a datapipe that is iterated over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._shuffled import Shuffled, drawn_seed
from ..datapipe import IterDataPipe, MapDataPipe

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(Shuffled, IterDataPipe[Any]):
    """The samples at given indices in random order."""

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._start()
        self._shuffled_indices: list[Any] = self.indices

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            for i in self.indices:
                yield self.datapipe[i]
        else:
            while self._shuffled_indices:
                yield self.datapipe[self._shuffled_indices.pop()]

    def reset(self) -> None:
        if self._enabled and self._seed is None:
            self._seed = drawn_seed()
        self._rng.seed(self._seed)
        self._seed = None
        self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getstate__(self) -> Any:
        return self._hooked(
            (
                self.datapipe,
                self.indices,
                self._enabled,
                self._seed,
                self._rng.getstate(),
                self._shuffled_indices,
                self._valid_iterator_id,
                self._number_of_samples_yielded,
            )
        )

    def __setstate__(self, state: Any) -> None:
        self.datapipe, self.indices, self._enabled, self._seed, numbers, self._shuffled_indices, *rest = state
        self._valid_iterator_id, self._number_of_samples_yielded = rest
        self._restore(numbers)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
