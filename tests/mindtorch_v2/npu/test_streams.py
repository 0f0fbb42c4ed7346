"""Streams, events and callbacks, as `torch.cuda` has them."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import runtime
from mindtorch_v2._backends.npu.acl_loader import ensure_acl

from .._npu import Emulator, emulator_only

SLOW = 30_000  # microseconds that a task takes longer: enough to see that nobody waited for it


@contextmanager
def work(stream: torch.npu.Stream, tasks: int = 1) -> Iterator[None]:
    """Inside, `stream` has been given tasks that fill device memory; afterwards they are done."""
    runtime.use(stream.device_index)
    acl = ensure_acl()
    address = ctypes.c_void_p()
    assert acl.aclrtMalloc(ctypes.byref(address), 64, 0) == 0
    for _ in range(tasks):
        assert acl.aclrtMemsetAsync(address, 64, 1, 64, stream.npu_stream) == 0
    try:
        yield
    finally:
        runtime.use(stream.device_index)
        assert acl.aclrtSynchronizeStream(stream.npu_stream) == 0
        assert acl.aclrtFree(address) == 0


@pytest.fixture
def slow(emulator: Emulator) -> Iterator[torch.npu.Stream]:
    """A stream whose tasks take their time."""
    stream = torch.npu.Stream()
    runtime.use(0)
    emulator.slow(stream.npu_stream, SLOW)
    yield stream
    runtime.use(0)
    stream.synchronize()
    emulator.slow(stream.npu_stream, 0)


# -- streams ------------------------------------------------------------------------------------------------------


def test_the_default_stream_is_current() -> None:
    assert torch.npu.current_stream() == torch.npu.default_stream()
    assert torch.npu.current_stream().stream_id == 0
    assert torch.npu.default_stream(1).device == torch.device("npu:1")
    assert torch.npu.default_stream(0) != torch.npu.default_stream(1)


def test_streams_are_values() -> None:
    a, b = torch.npu.Stream(), torch.npu.Stream()
    assert a != b and a == a and hash(a) == hash(a) and a != 5 and len({a, b, a}) == 2
    assert a.device == torch.device("npu:0") and torch.npu.Stream("npu:1").device_index == 1
    assert "torch.npu.Stream device=npu:0" in repr(a)


def test_streams_come_from_a_pool_in_turn() -> None:
    made = [torch.npu.Stream(priority=3) for _ in range(64)]
    assert len(set(made)) == 32
    assert made[:32] == made[32:]
    assert len({s.stream_id for s in made}) == 32


def test_priorities_are_clamped() -> None:
    least, greatest = torch.npu.Stream.priority_range()
    assert greatest < least
    assert torch.npu.Stream(priority=greatest - 5).priority == greatest
    assert torch.npu.Stream(priority=least + 5).priority == least


def test_a_stream_of_another_library() -> None:
    from mindtorch_v2.npu import streams

    assert streams.ExternalStream is torch.npu.ExternalStream and streams.Stream is torch.npu.Stream
    torch.npu.init()
    acl, made = ensure_acl(), ctypes.c_void_p()
    runtime.use(1)
    assert acl.aclrtCreateStreamWithConfig(ctypes.byref(made), 0, 0) == 0
    address: Any = made.value
    for stream in (torch.npu.ExternalStream(address, "npu:1"), torch.npu.get_stream_from_external(address, 1)):
        assert isinstance(stream, torch.npu.Stream) and stream.device == torch.device("npu:1")
        assert stream.npu_stream == stream.stream_id == address and stream == torch.npu.ExternalStream(address, 1)
        with torch.npu.stream(stream):
            assert torch.npu.current_stream().npu_stream == address
            t = torch.arange(4.0, device="npu:1") + 1
        torch.npu.default_stream(1).wait_stream(stream)
        assert t.tolist() == [1.0, 2.0, 3.0, 4.0]
        stream.synchronize()
        assert stream.query()
        del t
    # Its life is the other library's: what was done here left nothing that needs it.
    torch.npu.synchronize(1)
    torch.npu.empty_cache()
    runtime.use(1)
    assert acl.aclrtDestroyStream(made) == 0
    wrong: Any
    for wrong, error in (("x", TypeError), (1.5, TypeError), (None, TypeError), (-1, ValueError)):
        with pytest.raises(error):
            torch.npu.ExternalStream(wrong)


def test_stream_context_nests_and_restores() -> None:
    a, b = torch.npu.Stream(), torch.npu.Stream(1)
    with torch.npu.stream(a):
        assert torch.npu.current_stream() == a and torch.npu.current_device() == 0
        with torch.npu.stream(b):
            assert torch.npu.current_stream() == b and torch.npu.current_device() == 1
            assert torch.npu.current_stream(0) == a
            with torch.npu.stream(None):
                assert torch.npu.current_stream() == b
        assert torch.npu.current_stream() == a and torch.npu.current_stream(1) == torch.npu.default_stream(1)
        with a, b, a:
            assert torch.npu.current_stream() == a
        assert torch.npu.current_stream() == a
    assert torch.npu.current_stream() == torch.npu.default_stream() and torch.npu.current_device() == 0


def test_stream_context_restores_after_an_error() -> None:
    with pytest.raises(KeyError), torch.npu.stream(torch.npu.Stream()):
        raise KeyError
    assert torch.npu.current_stream() == torch.npu.default_stream()


def test_set_stream_changes_the_device_too() -> None:
    b = torch.npu.Stream(1)
    torch.npu.set_stream(b)
    assert torch.npu.current_stream() == b and torch.npu.current_device() == 1
    torch.npu.set_stream(torch.npu.default_stream(1))
    torch.npu.set_device(0)


def test_threads_have_their_own_stream_and_device() -> None:
    torch.npu.synchronize(1)
    seen = []

    def other() -> None:
        seen.append((torch.npu.current_device(), torch.npu.current_stream()))
        torch.npu.set_device(1)
        with torch.npu.stream(torch.npu.Stream()):
            seen.append((torch.npu.current_device(), torch.npu.current_stream().device_index))

    with torch.npu.stream(torch.npu.Stream()):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert seen == [(0, torch.npu.default_stream()), (1, 1)]
        assert torch.npu.current_device() == 0


def test_synchronize_and_query() -> None:
    stream = torch.npu.Stream()
    with work(stream, 3):
        stream.synchronize()
        assert stream.query() is True


@emulator_only
def test_query_sees_work_that_is_not_done(slow: torch.npu.Stream) -> None:
    with work(slow):
        assert slow.query() is False
        slow.synchronize()
        assert slow.query() is True


@emulator_only
def test_synchronizing_one_stream_does_not_wait_for_another(slow: torch.npu.Stream) -> None:
    with work(slow):
        torch.npu.default_stream().synchronize()
        assert not slow.query()


@emulator_only
def test_wait_stream_orders_two_streams(slow: torch.npu.Stream) -> None:
    fast = torch.npu.Stream()
    with work(slow):
        worked = slow.record_event()
        fast.wait_stream(slow)
        assert not fast.query()
        fast.synchronize()
        # Not the stream itself: it may still be at what `wait_stream` has put behind the work.
        assert worked.query()


@emulator_only
@pytest.mark.parametrize("seed", range(1, 21))
def test_ordered_streams_give_right_values_under_any_delay(emulator: Emulator, seed: int) -> None:
    emulator.delay_seed(seed)
    first, second = torch.npu.Stream(), torch.npu.Stream()
    a = torch.arange(64.0).npu()
    first.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(first):
        b = a * 2
    second.wait_stream(first)
    with torch.npu.stream(second):
        c = b + 1
    torch.npu.current_stream().wait_stream(second)
    for tensor, stream in ((a, first), (b, second), (c, torch.npu.current_stream())):
        tensor.record_stream(stream)
    del b
    assert (c * 1).cpu().tolist() == [2.0 * i + 1 for i in range(64)]


@emulator_only
def test_device_synchronize_waits_for_every_stream(slow: torch.npu.Stream) -> None:
    with work(slow):
        torch.npu.synchronize()
        assert slow.query()


@emulator_only
def test_waiting_lets_other_threads_run(slow: torch.npu.Stream) -> None:
    """The interpreter's lock is not held while waiting for the device."""
    ticks = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    with work(slow, 3):
        thread.start()
        slow.synchronize()
        stop.set()
        thread.join()
    assert len(ticks) >= 5


# -- events -------------------------------------------------------------------------------------------------------


def test_an_event_never_recorded_is_done() -> None:
    event = torch.npu.Event()
    event.synchronize()
    event.wait()
    assert event.query() and event.device is None and "uninitialized" in repr(event)


@emulator_only
def test_event_marks_a_place_in_a_stream(slow: torch.npu.Stream) -> None:
    with work(slow):
        event = slow.record_event()
        assert not event.query() and event.device == torch.device("npu:0")
        event.synchronize()
        assert event.query()


@emulator_only
def test_recording_again_moves_the_mark(slow: torch.npu.Stream) -> None:
    event = torch.npu.Event()
    event.record()
    event.synchronize()
    with work(slow):
        event.record(slow)
        assert not event.query()


@emulator_only
def test_wait_event_orders_two_streams(slow: torch.npu.Stream) -> None:
    fast = torch.npu.Stream()
    with work(slow):
        event = slow.record_event()
        fast.wait_event(event)
        assert not fast.query()
        del event  # the wait that was queued stays
        fast.synchronize()
        # The event is over; the stream says so a moment later.
        end = time.monotonic() + 5
        while not slow.query() and time.monotonic() < end:
            time.sleep(0.001)
        assert slow.query()


def test_event_uses_the_current_stream() -> None:
    stream = torch.npu.Stream(1)
    event = torch.npu.Event()
    with torch.npu.stream(stream):
        event.record()
        event.wait()
    assert event.device == torch.device("npu:1")
    event.synchronize()


def test_an_event_stays_on_its_device() -> None:
    event, there = torch.npu.Event(), torch.npu.Stream(1)
    event.record(torch.npu.Stream(0))
    with pytest.raises(RuntimeError, match="npu:0 does not match recording stream's device npu:1"):
        event.record(there)


@emulator_only
def test_elapsed_time(slow: torch.npu.Stream) -> None:
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    with work(slow, 0):
        start.record(slow)
        end.record(slow)
        with pytest.raises(RuntimeError, match="must be completed"):
            start.elapsed_time(end)
        end.synchronize()
        assert SLOW / 1000 * 0.8 < start.elapsed_time(end) < 5000
        assert end.elapsed_time(start) == -start.elapsed_time(end)


def test_elapsed_time_needs_timing_and_marks() -> None:
    plain, timed = torch.npu.Event(), torch.npu.Event(enable_timing=True)
    with pytest.raises(ValueError, match="enable_timing=True"):
        plain.elapsed_time(timed)
    with pytest.raises(ValueError, match="must be recorded"):
        timed.elapsed_time(torch.npu.Event(enable_timing=True))


def test_events_between_processes_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="interprocess"):
        torch.npu.Event(interprocess=True)


@emulator_only
def test_events_are_used_again(emulator: Emulator) -> None:
    for _ in range(3):
        torch.npu.Event().record()
    before = emulator.calls("aclrtCreateEventExWithFlag")
    for _ in range(50):
        torch.npu.Event().record()
    assert emulator.calls("aclrtCreateEventExWithFlag") == before
    torch.npu.synchronize()


# -- callbacks ----------------------------------------------------------------------------------------------------


def test_callbacks_run_in_order_when_the_stream_gets_there() -> None:
    stream, seen = torch.npu.Stream(), []
    with work(stream):
        for i in range(5):
            stream.add_callback(lambda i=i: seen.append((i, threading.current_thread().name)))
        stream.synchronize()
    assert seen == [(i, "npu-callbacks") for i in range(5)]


@emulator_only
def test_what_follows_waits_for_a_callback() -> None:
    stream, release, seen = torch.npu.Stream(), threading.Event(), []
    stream.add_callback(lambda: seen.append(release.wait(5)))
    event = stream.record_event()
    time.sleep(0.02)
    assert not event.query()
    release.set()
    event.synchronize()
    assert seen == [True]


def test_callbacks_on_the_default_stream_of_two_devices() -> None:
    seen = []
    for index in (0, 1):
        torch.npu.default_stream(index).add_callback(lambda index=index: seen.append(index))
        torch.npu.synchronize(index)
    assert seen == [0, 1]


def test_an_exception_in_a_callback_is_told_and_the_stream_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    told, stream, seen = [], torch.npu.Stream(), []
    monkeypatch.setattr("sys.unraisablehook", lambda what: told.append(what.exc_type))

    def fails() -> None:
        raise KeyError("in the callback")

    stream.add_callback(fails)
    stream.add_callback(lambda: seen.append(1))
    stream.synchronize()
    assert told == [KeyError] and seen == [1]


def test_a_callback_must_be_callable() -> None:
    with pytest.raises(TypeError, match="callable"):
        torch.npu.Stream().add_callback(5)


# -- failures -----------------------------------------------------------------------------------------------------


@emulator_only
@pytest.mark.parametrize(
    "function, call",
    [
        ("aclrtSynchronizeStream", lambda s, e: s.synchronize()),
        ("aclrtStreamQuery", lambda s, e: s.query()),
        ("aclrtRecordEvent", lambda s, e: e.record(s)),
        ("aclrtStreamWaitEvent", lambda s, e: e.wait(s)),
        ("aclrtQueryEventStatus", lambda s, e: e.query()),
        ("aclrtSynchronizeEvent", lambda s, e: e.synchronize()),
        ("aclrtSynchronizeDevice", lambda s, e: torch.npu.synchronize()),
        ("aclrtLaunchCallback", lambda s, e: s.add_callback(print)),
    ],
)
def test_a_vendor_call_that_fails_is_named_and_the_next_succeeds(
    emulator: Emulator, function: str, call: object
) -> None:
    stream, event = torch.npu.Stream(), torch.npu.Event()
    event.record(stream)
    stream.synchronize()
    emulator.fault(f"{function}:1:507000")
    with pytest.raises(torch.npu.AclError, match=f"{function} failed.*507000") as caught:
        call(stream, event)  # type: ignore[operator]
    assert caught.value.code == 507000
    call(stream, event)  # type: ignore[operator]
    stream.synchronize()
