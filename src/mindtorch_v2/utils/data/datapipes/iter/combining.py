"""Several datapipes as one."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import no_length
from .forking import DemultiplexerIterDataPipe as DemultiplexerIterDataPipe
from .forking import ForkerIterDataPipe as ForkerIterDataPipe
from .forking import _ChildDataPipe as _ChildDataPipe
from .forking import _ContainerTemplate as _ContainerTemplate
from .forking import _DemultiplexerIterDataPipe as _DemultiplexerIterDataPipe
from .forking import _ForkerIterDataPipe as _ForkerIterDataPipe

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


def _lengths(datapipe: Any) -> list[int]:
    if all(isinstance(part, Sized) for part in datapipe.datapipes):
        return [len(part) for part in datapipe.datapipes]
    raise no_length(datapipe)


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe[Any]):
    """One after another."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(part, IterDataPipe) for part in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for part in self.datapipes:
            yield from part

    def __len__(self) -> int:
        return sum(_lengths(self))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe[Any]):
    """One sample of each in turn, until the shortest ends."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes
        self.buffer: list[Any] = []

    def __iter__(self) -> Iterator[Any]:
        iterators = [iter(part) for part in self.datapipes]
        while iterators:
            for iterator in iterators:
                try:
                    self.buffer.append(next(iterator))
                except StopIteration:
                    self.buffer.clear()
                    return
            yield from self.buffer
            self.buffer.clear()

    def __len__(self) -> int:
        return min(_lengths(self)) * len(self.datapipes)

    def reset(self) -> None:
        self.buffer = []

    def __getstate__(self) -> Any:
        return self._hooked((self.datapipes, self._valid_iterator_id, self._number_of_samples_yielded))

    def __setstate__(self, state: Any) -> None:
        self.datapipes, self._valid_iterator_id, self._number_of_samples_yielded = state
        self.buffer = []

    def __del__(self) -> None:
        self.__dict__.get("buffer", []).clear()


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe[Any]):
    """Tuples of one sample of each."""

    def __init__(self, *datapipes: Any) -> None:
        if not all(isinstance(part, IterDataPipe) for part in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*(iter(part) for part in self.datapipes))

    def __len__(self) -> int:
        return min(_lengths(self))
