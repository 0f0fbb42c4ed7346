"""What pipes of batches share, whether samples are asked for in order or by index."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from .datapipe import DataChunk
from .utils.common import no_length


class Batches:
    """Samples of `datapipe` in lists of `batch_size`."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __len__(self) -> int:
        if not isinstance(self.datapipe, Sized):
            raise no_length(self)
        n = len(self.datapipe)
        return n // self.batch_size if self.drop_last else (n + self.batch_size - 1) // self.batch_size
