"""Samples in another order."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

from ...sampler import SequentialSampler
from .._decorator import functional_datapipe
from .._shuffled import Shuffled, drawn_seed
from ..datapipe import IterDataPipe
from ..utils.common import no_length

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe[Any]):
    """What a sampler over a datapipe gives."""

    def __init__(
        self, datapipe: Any, sampler: Any = SequentialSampler, sampler_args: Any = None, sampler_kwargs: Any = None
    ) -> None:
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        self.sampler_kwargs["data_source"] = datapipe
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        if isinstance(self.sampler, Sized):
            return len(self.sampler)
        raise no_length(self)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffled, IterDataPipe[Any]):
    """Samples in random order, as far as a buffer reaches."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        super().__init__()
        self._buffer: list[Any] = []
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._start()

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        for x in self.datapipe:
            if len(self._buffer) < self.buffer_size:
                self._buffer.append(x)
                continue
            i = self._rng.randint(0, len(self._buffer) - 1)
            taken, self._buffer[i] = self._buffer[i], x
            yield taken
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self) -> int:
        if isinstance(self.datapipe, Sized):
            return len(self.datapipe)
        raise no_length(self)

    def reset(self) -> None:
        self._buffer = []
        if self._enabled:
            if self._seed is None:
                self._seed = drawn_seed()
            self._rng.seed(self._seed)
            self._seed = None

    def __getstate__(self) -> Any:
        return self._hooked(
            (
                self.datapipe,
                self.buffer_size,
                self._enabled,
                self._seed,
                self._buffer,
                self._rng.getstate(),
                self._valid_iterator_id,
                self._number_of_samples_yielded,
            )
        )

    def __setstate__(self, state: Any) -> None:
        self.datapipe, self.buffer_size, self._enabled, self._seed, self._buffer, numbers, *rest = state
        self._valid_iterator_id, self._number_of_samples_yielded = rest
        self._restore(numbers)

    def __del__(self) -> None:
        self.__dict__.get("_buffer", []).clear()
