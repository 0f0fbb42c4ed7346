"""`torch.monitor`: events and statistics, as PyTorch logs them."""

from __future__ import annotations

import importlib
import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from .._subject import subject

NOW = datetime.now(timezone.utc)


def _logged(library: Any) -> list[Any]:
    monitor = importlib.import_module(f"{library.__name__}.monitor")
    kinds = monitor.Aggregation
    seen: list[Any] = []
    handle = monitor.register_event_handler(lambda event: seen.append((event.name, dict(event.data))))
    said: list[Any] = []
    try:
        every = (kinds.VALUE, kinds.MEAN, kinds.COUNT, kinds.SUM, kinds.MAX, kinds.MIN)
        stat = monitor.Stat("loss", every, timedelta(hours=100), 3)
        for value in (1, 4, 2.5, 7):
            stat.add(value)
            said.append((stat.name, stat.count, sorted((k.name, v) for k, v in stat.get().items())))
        del stat
        short = monitor.Stat("short", [kinds.SUM], timedelta(milliseconds=1))
        short.add(2)
        time.sleep(0.01)
        short.add(3)
        said.append((short.count, sorted((k.name, v) for k, v in short.get().items())))
        del short
        monitor.Stat("none", [kinds.SUM], timedelta(hours=1))
        monitor.log_event(monitor.Event("mine", NOW, {"text": "a", "whole": 1, "real": 1.5}))
    finally:
        monitor.unregister_event_handler(handle)
    monitor.log_event(monitor.Event("late", NOW, {}))
    return [said, seen]


@pytest.mark.oracle
def test_events_and_statistics(oracle: Any) -> None:
    assert _logged(subject) == _logged(oracle)


def test_wrong_arguments() -> None:
    monitor: Any = subject.monitor
    for wrong in (
        lambda: monitor.Event("x", NOW, {"a": [1]}),
        lambda: monitor.Stat("a", [3], timedelta(seconds=1)),
        lambda: monitor.log_event(3),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_a_counter_of_waiting() -> None:
    with subject.monitor._WaitCounter("key").guard():
        pass
