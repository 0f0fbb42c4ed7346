"""Batches and groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from .._batches import Batches
from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe
from ..utils.common import _check_unpickable_fn

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(Batches, IterDataPipe[Any]):
    """Samples in lists of `batch_size`."""

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for x in self.datapipe:
            batch.append(x)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """What is in batches, so many levels deep; -1 for all of them."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element: Any, unbatch_level: int) -> Iterator[Any]:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if unbatch_level == 0 or (unbatch_level == -1 and not isinstance(element, list)):
            yield element
        elif isinstance(element, list):
            for item in element:
                yield from self._dive(item, unbatch_level if unbatch_level == -1 else unbatch_level - 1)
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[Any]):
    """Samples that have the same key, as far as a buffer reaches."""

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        _check_unpickable_fn(group_key_fn)
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size = None
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
            self.guaranteed_group_size = group_size
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
            self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining = drop_remaining
        self.wrapper_class: Any = DataChunk
        self._clear()

    def _clear(self) -> None:
        self.curr_buffer_size = 0
        self.buffer_elements: defaultdict[Any, list[Any]] = defaultdict(list)

    def _remove_biggest_key(self) -> Any:
        """Take the largest group out of a full buffer; None if it is too small and may be dropped."""
        key = max(self.buffer_elements, key=lambda k: len(self.buffer_elements[k]))
        group = self.buffer_elements[key]
        least = self.guaranteed_group_size
        if least is not None and len(group) < least and not self.drop_remaining:
            raise RuntimeError("Failed to group items", str(group))
        self.curr_buffer_size -= len(group)
        del self.buffer_elements[key]
        return group if least is None or len(group) >= least else None

    def _wrapped(self, key: Any, group: list[Any]) -> Any:
        made = self.wrapper_class(group)
        return (key, made) if self.keep_key else made

    def __iter__(self) -> Iterator[Any]:
        for x in self.datapipe:
            key = self.group_key_fn(x)
            self.buffer_elements[key].append(x)
            self.curr_buffer_size += 1
            if self.group_size is not None and self.group_size == len(self.buffer_elements[key]):
                yield self._wrapped(key, self.buffer_elements[key])
                self.curr_buffer_size -= len(self.buffer_elements[key])
                del self.buffer_elements[key]
            if self.curr_buffer_size == self.max_buffer_size:
                group = self._remove_biggest_key()
                if group is not None:
                    # The key is that of the sample that filled the buffer, as in PyTorch.
                    yield self._wrapped(key, group)
        for key in tuple(self.buffer_elements):
            group = self.buffer_elements.pop(key)
            self.curr_buffer_size -= len(group)
            yield self._wrapped(key, group)

    def reset(self) -> None:
        self._clear()

    _FIELDS = (
        "datapipe group_key_fn keep_key max_buffer_size group_size guaranteed_group_size drop_remaining "
        "wrapper_class _valid_iterator_id _number_of_samples_yielded"
    ).split()

    def __getstate__(self) -> Any:
        return self._hooked(tuple(getattr(self, name) for name in self._FIELDS))

    def __setstate__(self, state: Any) -> None:
        for name, value in zip(self._FIELDS, state):
            setattr(self, name, value)
        self._clear()

    def __del__(self) -> None:
        self.__dict__.get("buffer_elements", {}).clear()
