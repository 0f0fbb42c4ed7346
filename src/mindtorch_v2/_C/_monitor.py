"""`torch._C._monitor`: where PyTorch keeps the classes of `torch.monitor`.

Invariant: an event goes to every handler, in the order in which they were registered, in the thread that logged it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum

STAT_EVENT = "torch.monitor.Stat"
data_value_t = int | float | bool | str


class Aggregation(Enum):
    """What a statistic says of the values of a window."""

    VALUE = 1
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


class Event:
    """Something that happened: a name, a time and values by name."""

    def __init__(self, name: str, timestamp: datetime, data: Mapping[str, data_value_t]) -> None:
        for key, value in data.items():
            if not isinstance(value, (int, float, str)):
                raise TypeError(f"Event(): '{key}' must be an int, float, bool or str, got {type(value).__name__}")
        self.name = name
        self.timestamp = timestamp
        self.data: dict[str, data_value_t] = dict(data)


class EventHandlerHandle:
    """What registering a handler returns."""


_handlers: dict[EventHandlerHandle, Callable[[Event], None]] = {}


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Call a function with every event that is logged."""
    handle = EventHandlerHandle()
    _handlers[handle] = callback
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """No longer call a function."""
    _handlers.pop(handler, None)


def log_event(event: Event) -> None:
    """Give an event to all handlers."""
    if not isinstance(event, Event):
        raise TypeError(f"log_event(): argument 'event' must be an Event, not {type(event).__name__}")
    for handler in list(_handlers.values()):
        handler(event)


class Stat:
    """Numbers of a window of time, logged together when it closes: by time, or after a number of samples."""

    def __init__(
        self, name: str, aggregations: Sequence[Aggregation], window_size: timedelta, max_samples: int = 2**63 - 1
    ) -> None:
        self._values: list[float] = []
        for aggregation in aggregations:
            if not isinstance(aggregation, Aggregation):
                raise TypeError(
                    f"Stat(): argument 'aggregations' must be of Aggregation, got {type(aggregation).__name__}"
                )
        # As in PyTorch, where the last value is not among what a window says.
        self._aggregations = tuple(a for a in aggregations if a is not Aggregation.VALUE)
        self._last: dict[Aggregation, float] = self._summary([])
        self._name = name
        self._seconds = window_size.total_seconds()
        self._max_samples = max_samples
        self._full = False
        self._window = self._now()

    @property
    def name(self) -> str:
        """The name, which values in events begin with."""
        return self._name

    @property
    def count(self) -> int:
        """How many values the open window has."""
        return len(self._values)

    def _now(self) -> int:
        return int(time.monotonic() / self._seconds) if self._seconds > 0 else time.monotonic_ns()

    def add(self, v: float) -> None:
        """Add a value to the open window, after closing one whose time is over."""
        now = self._now()
        if now != self._window:
            self._close()
            self._window, self._full = now, False
        if self._full:
            # The window has all the samples that it may have.
            return
        self._values.append(float(v))
        if len(self._values) >= self._max_samples:
            self._full = True
            self._close()

    def get(self) -> dict[Aggregation, float]:
        """What was said of the last window that closed."""
        return dict(self._last)

    def _summary(self, values: list[float]) -> dict[Aggregation, float]:
        count = len(values)
        found = {
            Aggregation.MEAN: sum(values) / count if count else 0.0,
            Aggregation.COUNT: float(count),
            Aggregation.SUM: float(sum(values)),
            Aggregation.MAX: max(values, default=0.0),
            Aggregation.MIN: min(values, default=0.0),
        }
        return {aggregation: found[aggregation] for aggregation in self._aggregations}

    def _close(self) -> None:
        if not self._values:
            return
        self._last = self._summary(self._values)
        self._values = []
        data = {f"{self._name}.{aggregation.name.lower()}": value for aggregation, value in self._last.items()}
        log_event(Event(STAT_EVENT, datetime.now(), data))  # noqa: DTZ005 (PyTorch's has the local time)

    def __del__(self) -> None:
        # What is left in a window is logged; a statistic that could not be made has none.
        if getattr(self, "_values", None):
            self._close()
