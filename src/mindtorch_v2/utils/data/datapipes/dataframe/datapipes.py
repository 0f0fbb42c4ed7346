"""Steps over data frames: cut into rows, put together, shuffled, filtered, made of rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DFIterDataPipe, IterDataPipe
from . import dataframe_wrapper as frames

__all__ = [
    "ConcatDataFramesPipe",
    "DataFramesAsTuplesPipe",
    "ExampleAggregateAsDataFrames",
    "FilterDataFramesPipe",
    "PerRowDataFramesPipe",
    "ShuffleDataFramesPipe",
]


def _joined(parts: Iterable[Any], size: int | None) -> Iterator[Any]:
    """Frames of `size` parts each; the last may have fewer."""
    buffer: list[Any] = []
    for part in parts:
        buffer.append(part)
        if len(buffer) == size:
            yield frames.concat(buffer)
            buffer = []
    if buffer:
        yield frames.concat(buffer)


@functional_datapipe("_dataframes_as_tuples")
class DataFramesAsTuplesPipe(IterDataPipe[Any]):
    """The rows of all frames."""

    def __init__(self, source_datapipe: Any) -> None:
        super().__init__()
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[Any]:
        for frame in self.source_datapipe:
            yield from frames.iterate(frame)


@functional_datapipe("_dataframes_per_row", enable_df_api_tracing=True)
class PerRowDataFramesPipe(DFIterDataPipe):
    """Frames of one row each."""

    def __init__(self, source_datapipe: Any) -> None:
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[Any]:
        for frame in self.source_datapipe:
            for at in range(len(frame)):
                yield frame[at : at + 1]


@functional_datapipe("_dataframes_concat", enable_df_api_tracing=True)
class ConcatDataFramesPipe(DFIterDataPipe):
    """Frames of `batch` frames each."""

    def __init__(self, source_datapipe: Any, batch: int = 3) -> None:
        self.source_datapipe = source_datapipe
        self.n_batch = batch

    def __iter__(self) -> Iterator[Any]:
        return _joined(self.source_datapipe, self.n_batch)


@functional_datapipe("_dataframes_shuffle", enable_df_api_tracing=True)
class ShuffleDataFramesPipe(DFIterDataPipe):
    """All rows in random order, by Python's generator, in frames of the first one's size."""

    def __init__(self, source_datapipe: Any) -> None:
        self.source_datapipe = source_datapipe

    def __iter__(self) -> Iterator[Any]:
        size, rows = None, []
        for frame in self.source_datapipe:
            length = frames.get_len(frame)
            size = length if size is None else size
            rows += [frames.get_item(frame, at) for at in range(length)]
        random.shuffle(rows)
        yield from _joined(rows, size)


@functional_datapipe("_dataframes_filter", enable_df_api_tracing=True)
class FilterDataFramesPipe(DFIterDataPipe):
    """The rows of which a function is true, in frames of the first one's size."""

    def __init__(self, source_datapipe: Any, filter_fn: Callable[..., Any]) -> None:
        self.source_datapipe = source_datapipe
        self.filter_fn = filter_fn

    def __iter__(self) -> Iterator[Any]:
        size, kept = None, []
        for frame in self.source_datapipe:
            length = len(frame.index)
            size = length if size is None else size
            kept += [frame[at : at + 1] for at in range(length) if self.filter_fn(frame.iloc[at])]
        yield from _joined(kept, size)


@functional_datapipe("_to_dataframes_pipe", enable_df_api_tracing=True)
class ExampleAggregateAsDataFrames(DFIterDataPipe):
    """Frames made of samples, `dataframe_size` rows each."""

    def __init__(self, source_datapipe: Any, dataframe_size: int = 10, columns: Any = None) -> None:
        self.source_datapipe = source_datapipe
        self.columns = columns
        self.dataframe_size = dataframe_size

    def _as_list(self, item: Any) -> list[Any]:
        try:
            return list(item)
        except Exception:  # not iterable: a row of one column
            return [item]

    def __iter__(self) -> Iterator[Any]:
        rows: list[Any] = []
        for item in self.source_datapipe:
            rows.append(self._as_list(item))
            if len(rows) == self.dataframe_size:
                yield frames.create_dataframe(rows, columns=self.columns)
                rows = []
        if rows:
            yield frames.create_dataframe(rows, columns=self.columns)
