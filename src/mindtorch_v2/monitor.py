"""`torch.monitor`: events that a program logs, and statistics that are logged by windows of time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._C._monitor import STAT_EVENT
from ._C._monitor import Aggregation as Aggregation
from ._C._monitor import Event as Event
from ._C._monitor import EventHandlerHandle as EventHandlerHandle
from ._C._monitor import Stat as Stat
from ._C._monitor import data_value_t as data_value_t
from ._C._monitor import log_event as log_event
from ._C._monitor import register_event_handler as register_event_handler
from ._C._monitor import unregister_event_handler as unregister_event_handler

__all__ = [
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation


class TensorboardEventHandler:
    """Writes statistics to TensorBoard."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for key, value in event.data.items():
                self._writer.add_scalar(key, value, walltime=event.timestamp.timestamp())


class _WaitCounter:
    """Counts the time that is spent inside its guards."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.seconds = 0.0

    @contextmanager
    def guard(self) -> Iterator[None]:
        """A context whose time is counted."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - start
