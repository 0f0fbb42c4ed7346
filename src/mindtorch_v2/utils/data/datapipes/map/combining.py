"""Several datapipes as one."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe

__all__ = ["ConcaterMapDataPipe", "ZipperMapDataPipe"]


def _checked(datapipes: tuple[Any, ...]) -> tuple[Any, ...]:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(part, MapDataPipe) for part in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(isinstance(part, Sized) for part in datapipes):
        raise TypeError("Expected all inputs to be `Sized`")
    return datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe[Any]):
    """One after another."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = _checked(datapipes)

    def __getitem__(self, index: Any) -> Any:
        offset = 0
        for part in self.datapipes:
            if index - offset < len(part):
                return part[index - offset]
            offset += len(part)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(part) for part in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe[Any]):
    """Tuples of one sample of each."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = _checked(datapipes)

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        found = []
        for part in self.datapipes:
            try:
                found.append(part[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {part}.") from error
        return tuple(found)

    def __len__(self) -> int:
        return min(len(part) for part in self.datapipes)
