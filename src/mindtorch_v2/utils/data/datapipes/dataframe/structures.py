"""Batches of data frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..datapipe import DataChunk
from . import dataframe_wrapper as frames

__all__ = ["DataChunkDF"]


class DataChunkDF(DataChunk[Any]):
    """A batch whose items are frames: it iterates over their rows, `raw_iterator` over the frames."""

    def __iter__(self) -> Iterator[Any]:
        for frame in self.items:
            yield from frames.iterate(frame)

    def __len__(self) -> int:
        return sum(frames.get_len(frame) for frame in self.items)
