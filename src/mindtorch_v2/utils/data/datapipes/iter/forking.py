"""One datapipe as several: copies of it (`fork`), or its samples sorted (`demux`).

Invariant: children read one iterator of their source; what one has read and another has not waits in a buffer.
"""

from __future__ import annotations

import copy as copymodule
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from .._hook_iterator import _SnapshotState
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, _check_unpickable_fn


def _no_op(x: Any) -> Any:
    return x


def _checked_count(num_instances: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """Several datapipes that all give the same samples."""

    def __new__(cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: str | None = None) -> Any:
        _checked_count(num_instances)
        if num_instances == 1:
            return datapipe
        container = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(container, i) for i in range(num_instances)]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Several datapipes, each with the samples that a function gives its number for."""

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        _checked_count(num_instances)
        _check_unpickable_fn(classifier_fn)
        container = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(container, i) for i in range(num_instances)]


class _ContainerTemplate(ABC):
    """What children ask of the datapipe that they share."""

    @abstractmethod
    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]: ...

    @abstractmethod
    def is_every_instance_exhausted(self) -> bool: ...

    @abstractmethod
    def reset(self) -> None: ...

    @abstractmethod
    def get_length_by_instance(self, instance_id: int) -> int: ...


class _Shared(IterDataPipe[Any], _ContainerTemplate):
    """The source, its iterator, and which children have stopped."""

    main_datapipe: Any
    num_instances: int
    buffer_size: int
    _datapipe_iterator: Any
    _child_stop: list[bool]

    def _warn_of_unlimited(self, name: str) -> None:
        if self.buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{name}`, please be aware of OOM at random places",
                UserWarning,
                stacklevel=3,
            )

    def _begin(self, instance_id: int) -> bool:
        """Start the source if this child is the first; whether it did."""
        first = self._datapipe_iterator is None and self._child_stop[instance_id]
        if first:
            self._datapipe_iterator = iter(self.main_datapipe)
            self._snapshot_state = _SnapshotState.Iterating
            self._child_stop = [False] * self.num_instances
        return first

    def _clear(self) -> None:
        self._datapipe_iterator = None
        self._child_stop = [True] * self.num_instances

    def _counts(self) -> tuple[Any, ...]:
        return self._valid_iterator_id, self._number_of_samples_yielded


class _ForkerIterDataPipe(_Shared):
    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: str | None = None) -> None:
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        self._warn_of_unlimited("fork")
        known: dict[Any, Any] = {None: _no_op, "shallow": copymodule.copy, "deep": copymodule.deepcopy}
        if copy not in known:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        self.copy_fn = known[copy]
        self._clear()

    def _clear(self) -> None:
        super()._clear()
        self.buffer: deque[Any] = deque()
        self.child_pointers = [0] * self.num_instances
        # The buffer holds samples slowest_ptr + 1 to leading_ptr.
        self.slowest_ptr = 0
        self.leading_ptr = 0
        self.end_ptr: int | None = None

    def __len__(self) -> int:
        return len(self.main_datapipe)

    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        self._begin(instance_id)
        try:
            while not self._child_stop[instance_id]:
                at = self.child_pointers[instance_id] = self.child_pointers[instance_id] + 1
                if at == self.end_ptr:
                    break
                if self.buffer and at <= self.leading_ptr:
                    value = self.buffer[at - self.slowest_ptr - 1]
                else:
                    self.leading_ptr = at
                    try:
                        value = next(self._datapipe_iterator)
                    except StopIteration:
                        self._datapipe_iterator = None
                        self.end_ptr = at
                        break
                    self.buffer.append(value)
                if at == self.slowest_ptr + 1 and min(self.child_pointers) > self.slowest_ptr:
                    self.slowest_ptr = min(self.child_pointers)
                    self.buffer.popleft()
                if 0 <= self.buffer_size < self.leading_ptr - self.slowest_ptr:
                    raise BufferError(
                        f"ForkerIterDataPipe buffer overflow,buffer size {self.buffer_size} is insufficient."
                    )
                yield self.copy_fn(value)
        finally:
            self._child_stop[instance_id] = True
            if all(self._child_stop):
                self._datapipe_iterator = None
                self._cleanup()

    def is_every_instance_exhausted(self) -> bool:
        return self.end_ptr is not None and all(self._child_stop)

    def get_length_by_instance(self, instance_id: int) -> int:
        return len(self.main_datapipe)

    def reset(self) -> None:
        self._clear()

    def __getstate__(self) -> Any:
        state = (self.main_datapipe, self.num_instances, self.buffer_size, self.copy_fn, *self._counts())
        return self._hooked(state)

    def __setstate__(self, state: Any) -> None:
        self.main_datapipe, self.num_instances, self.buffer_size, self.copy_fn, *rest = state
        self._valid_iterator_id, self._number_of_samples_yielded = rest
        self._clear()

    def _cleanup(self) -> None:
        while self.buffer:
            StreamWrapper.close_streams(self.buffer.popleft())

    def __del__(self) -> None:
        if "buffer" in self.__dict__:
            self._cleanup()


class _DemultiplexerIterDataPipe(_Shared):
    def __init__(
        self, datapipe: Any, num_instances: int, classifier_fn: Any, drop_none: bool, buffer_size: int
    ) -> None:
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        self._warn_of_unlimited("demux")
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none
        self._clear()

    def _clear(self) -> None:
        super()._clear()
        self.current_buffer_usage = 0
        self.child_buffers: list[deque[Any]] = [deque() for _ in range(self.num_instances)]
        self.main_datapipe_exhausted = False

    def _find_next(self, instance_id: int) -> Any:
        while True:
            if self.main_datapipe_exhausted or self._child_stop[instance_id]:
                raise StopIteration
            if self._datapipe_iterator is None:
                raise ValueError(
                    "_datapipe_iterator has not been set, likely because this private method is called directly "
                    "without invoking get_next_element_by_instance() first."
                )
            value = next(self._datapipe_iterator)
            number = self.classifier_fn(value)
            if number is None and self.drop_none:
                StreamWrapper.close_streams(value)
                continue
            if number is None or number >= self.num_instances or number < 0:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {self.num_instances - 1}. "
                    f"{number} is returned."
                )
            if number == instance_id:
                return value
            self.child_buffers[number].append(value)
            self.current_buffer_usage += 1
            if 0 <= self.buffer_size < self.current_buffer_usage:
                raise BufferError(
                    f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
                )

    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        if self._begin(instance_id):
            self.main_datapipe_exhausted = False
        try:
            while not self._child_stop[instance_id]:
                if self.child_buffers[instance_id]:
                    self.current_buffer_usage -= 1
                    yield self.child_buffers[instance_id].popleft()
                    continue
                try:
                    value = self._find_next(instance_id)
                except StopIteration:
                    self.main_datapipe_exhausted = True
                    self._datapipe_iterator = None
                    break
                yield value
        finally:
            self._child_stop[instance_id] = True
            if all(self._child_stop):
                self._datapipe_iterator = None
            self._cleanup(instance_id)

    def is_every_instance_exhausted(self) -> bool:
        return self.main_datapipe_exhausted and all(self._child_stop)

    def get_length_by_instance(self, instance_id: int) -> int:
        raise TypeError

    def reset(self) -> None:
        self._clear()

    def __getstate__(self) -> Any:
        state = (self.main_datapipe, self.num_instances, self.buffer_size, self.classifier_fn, self.drop_none)
        return self._hooked((*state, *self._counts()))

    def __setstate__(self, state: Any) -> None:
        self.main_datapipe, self.num_instances, self.buffer_size, self.classifier_fn, self.drop_none, *rest = state
        self._valid_iterator_id, self._number_of_samples_yielded = rest
        self._clear()

    def _cleanup(self, instance_id: int | None = None) -> None:
        for waiting in self.child_buffers if instance_id is None else [self.child_buffers[instance_id]]:
            while waiting:
                StreamWrapper.close_streams(waiting.popleft())

    def __del__(self) -> None:
        if "child_buffers" in self.__dict__:
            self._cleanup()


class _ChildDataPipe(IterDataPipe[Any]):
    """One of several datapipes that share a source. A new iterator of one makes those of all invalid."""

    _is_child_datapipe: bool = True

    def __init__(self, main_datapipe: Any, instance_id: int) -> None:
        if not isinstance(main_datapipe, _ContainerTemplate):
            raise AssertionError("main_datapipe must implement _ContainerTemplate")
        self.main_datapipe: Any = main_datapipe
        self.instance_id = instance_id

    def __iter__(self) -> Iterator[Any]:
        iterator: Iterator[Any] = self.main_datapipe.get_next_element_by_instance(self.instance_id)
        return iterator

    def __len__(self) -> int:
        return int(self.main_datapipe.get_length_by_instance(self.instance_id))

    def _set_main_datapipe_valid_iterator_id(self) -> int | None:
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif main._valid_iterator_id == self._valid_iterator_id:
            # This child begins again, so all do; a child that lags behind only catches up with its number.
            main._valid_iterator_id += 1
            if not main.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and "
                    "each child DataPipe will read from the start again.",
                    UserWarning,
                    stacklevel=2,
                )
            main.reset()
        self._valid_iterator_id = main._valid_iterator_id
        return self._valid_iterator_id

    def _check_valid_iterator_id(self, iterator_id: int | None) -> bool:
        return bool(iterator_id == self._valid_iterator_id == self.main_datapipe._valid_iterator_id)
