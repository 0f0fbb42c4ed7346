"""Functions of samples."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Sized
from functools import partial
from typing import Any

from ..._utils.collate import default_collate
from .._decorator import functional_datapipe
from ..dataframe import dataframe_wrapper as frames
from ..datapipe import IterDataPipe
from ..utils.common import _check_unpickable_fn, no_length, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[Any]):
    """A function of every sample, or of some of its columns; the result stands in its place or in a column."""

    datapipe: Any
    fn: Callable[..., Any]

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        _check_unpickable_fn(fn)
        self.fn = fn
        self.input_col = input_col
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.output_col = output_col
        validate_input_col(fn, input_col)

    def _apply_fn(self, data: Any) -> Any:
        columns, target = self.input_col, self.output_col
        if columns is None:
            return self.fn(data)
        several = isinstance(columns, (list, tuple))
        result = self.fn(*(data[c] for c in columns)) if several else self.fn(data[columns])
        row = list(data) if isinstance(data, tuple) else data
        if target == -1:
            row.append(result)
        elif target is not None:
            row[target] = result
        elif several:
            row[columns[0]] = result
            for column in sorted(columns[1:], reverse=True):
                del row[column]
        else:
            row[columns] = result
        return tuple(row) if isinstance(data, tuple) else row

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        if isinstance(self.datapipe, Sized):
            return len(self.datapipe)
        raise no_length(self)


def _collate_columns(conversion: Any, item: Any) -> Any:
    """A batch of one data frame as a named tuple, each column by a function of its own."""
    if len(item.items) > 1:
        raise RuntimeError("Only supports one DataFrame per batch")
    frame = item[0]
    columns = frames.get_columns(frame)
    if any(name not in columns for name in conversion):
        raise RuntimeError("Conversion keys mismatch")
    found = {}
    for name in columns:
        if name not in conversion:
            # PyTorch asks TorchArrow for a default, which is not there.
            raise RuntimeError("unable to import default collation function from the TorchArrow")
        if not callable(conversion[name]):
            raise RuntimeError("Collate (DF)DataPipe requires callable as dict values")
        found[str(name)] = conversion[name](frame[name])
    return namedtuple("CollateResult", list(found))(*found.values())


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches as tensors."""

    def __init__(
        self, datapipe: Any, conversion: Any = default_collate, collate_fn: Callable[..., Any] | None = None
    ) -> None:
        function = conversion if collate_fn is None else collate_fn
        super().__init__(datapipe, fn=function if callable(function) else partial(_collate_columns, function))
