"""Batches."""

from __future__ import annotations

from typing import Any

from .._batches import Batches
from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe

__all__ = ["BatcherMapDataPipe"]


@functional_datapipe("batch")
class BatcherMapDataPipe(Batches, MapDataPipe[Any]):
    """Samples in lists of `batch_size`."""

    def __getitem__(self, index: Any) -> Any:
        batch: list[Any] = []
        try:
            for i in range(index * self.batch_size, (index + 1) * self.batch_size):
                batch.append(self.datapipe[i])
        except IndexError as error:
            if self.drop_last or not batch:
                raise IndexError(f"Index {index} is out of bound.") from error
        return self.wrapper_class(batch)
