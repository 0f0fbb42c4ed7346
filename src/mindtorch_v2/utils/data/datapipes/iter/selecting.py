"""Some of the samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..dataframe import dataframe_wrapper as frames
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn, validate_input_col

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[Any]):
    """Samples of which, or of some columns of which, a function is true."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., bool], input_col: Any = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        _check_unpickable_fn(filter_fn)
        self.filter_fn = filter_fn
        self.input_col = input_col
        validate_input_col(filter_fn, input_col)

    def _apply_filter_fn(self, data: Any) -> Any:
        if self.input_col is None:
            return self.filter_fn(data)
        if isinstance(self.input_col, (list, tuple)):
            return self.filter_fn(*(data[column] for column in self.input_col))
        return self.filter_fn(data[self.input_col])

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            fits, kept = self._returnIfTrue(data)
            if fits:
                yield kept
            else:
                StreamWrapper.close_streams(data)

    def _returnIfTrue(self, data: Any) -> tuple[bool, Any]:
        """Whether a sample is kept, and what of it: of a data frame the rows for which the answer is true."""
        answer = self._apply_filter_fn(data)
        if frames.is_column(answer):
            rows = [frames.get_item(data, at) for at, fits in enumerate(frames.iterate(answer)) if fits]
            return (True, frames.concat(rows)) if rows else (False, None)
        if not isinstance(answer, bool):
            raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(answer))
        return answer, data
