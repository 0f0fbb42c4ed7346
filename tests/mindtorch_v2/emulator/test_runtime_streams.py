"""Streams, events and callbacks: order, what waits for what, and what a missing wait shows."""

from __future__ import annotations

import ctypes
import threading
import time
from ctypes import byref, c_float, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

from ._emulator import CALLBACK, D2D, H2D, Runtime, isolated

SYNC, PROGRESS, TIME_LINE = 1, 2, 8


def pinned(rt: Runtime, data: bytes) -> int:
    address = rt.make("aclrtMallocHost", len(data))
    ctypes.memmove(address, data, len(data))
    return address


@isolated()
def test_a_copy_now_does_not_wait_for_streams(rt: Runtime) -> None:
    rt.start()
    stream, address, source = rt.stream(), rt.malloc(4), pinned(rt, b"new!")
    rt.upload(address, b"old!")
    rt.ok.ascendEmulatorSlowStream(stream, 30_000)
    rt.ok.aclrtMemcpyAsync(address, 4, source, 4, H2D, stream)
    assert rt.download(address, 4) == b"old!"
    assert rt.ask("aclrtStreamQuery", c_int, stream) == 1
    assert rt.ascendEmulatorQueueDepth(stream) == 1
    rt.ok.aclrtSynchronizeStream(stream)
    assert rt.download(address, 4) == b"new!"
    assert rt.ask("aclrtStreamQuery", c_int, stream) == 0


@isolated(ASCEND_EMULATOR_DELAY_SEED="7")
def test_delays_show_missing_synchronisation(rt: Runtime) -> None:
    rt.start()
    stream, address = rt.stream(), rt.malloc(4)
    sources = [pinned(rt, number.to_bytes(4, "little")) for number in range(40)]
    stale = 0
    for number, source in enumerate(sources):
        rt.ok.aclrtMemcpyAsync(address, 4, source, 4, H2D, stream)
        stale += rt.download(address, 4) != number.to_bytes(4, "little")
    assert stale > 5
    rt.ok.aclrtSynchronizeStream(stream)
    assert rt.download(address, 4) == (39).to_bytes(4, "little")


@isolated(ASCEND_EMULATOR_DELAY_SEED="3")
def test_a_stream_is_in_order(rt: Runtime) -> None:
    rt.start()
    stream, address = rt.stream(), rt.malloc(200)
    for number in range(100):
        rt.ok.aclrtMemsetAsync(address + number, 100, number, 100, stream)
    rt.ok.aclrtSynchronizeStream(stream)
    assert rt.download(address, 100) == bytes(range(100))


@isolated()
def test_the_null_stream_is_the_contexts_default(rt: Runtime) -> None:
    rt.start()
    address = rt.malloc(4)
    default = rt.make("aclrtCtxGetCurrentDefaultStream")
    rt.ok.ascendEmulatorSlowStream(default, 20_000)
    rt.ok.aclrtMemsetAsync(address, 4, 1, 4, None)
    assert rt.download(address, 4) == b"\xcb" * 4
    rt.ok.aclrtSynchronizeStream(None)
    assert rt.download(address, 4) == b"\x01" * 4
    assert rt.aclrtDestroyStream(default) == 107000
    assert rt.aclrtDestroyStream(None) == 100000


@isolated()
def test_synchronize_device_waits_for_every_stream(rt: Runtime) -> None:
    rt.start()
    address, streams = rt.malloc(12), [rt.stream() for _ in range(3)]
    for number, stream in enumerate(streams):
        rt.ok.ascendEmulatorSlowStream(stream, 10_000 * (number + 1))
        rt.ok.aclrtMemsetAsync(address + 4 * number, 4, number, 4, stream)
    assert rt.aclrtSynchronizeDeviceWithTimeout(1) == 507046
    rt.ok.aclrtSynchronizeDevice()
    assert rt.download(address, 12) == bytes([0] * 4 + [1] * 4 + [2] * 4)


@isolated()
def test_waits_with_a_limit(rt: Runtime) -> None:
    rt.start()
    stream, address, event = rt.stream(), rt.malloc(4), rt.make("aclrtCreateEvent")
    rt.ok.ascendEmulatorSlowStream(stream, 100_000)
    rt.ok.aclrtMemsetAsync(address, 4, 1, 4, stream)
    rt.ok.aclrtRecordEvent(event, stream)
    assert rt.aclrtSynchronizeStreamWithTimeout(stream, 5) == 507046
    assert rt.aclrtSynchronizeEventWithTimeout(event, 5) == 507047
    assert rt.aclrtSynchronizeStreamWithTimeout(stream, -2) == 107000
    rt.ok.aclrtSynchronizeStreamWithTimeout(stream, 5000)
    rt.ok.aclrtSynchronizeEventWithTimeout(event, 0)


@isolated()
def test_destroying_a_stream_waits_for_its_work(rt: Runtime) -> None:
    rt.start()
    stream, address = rt.stream(), rt.malloc(4)
    rt.ok.ascendEmulatorSlowStream(stream, 30_000)
    rt.ok.aclrtMemsetAsync(address, 4, 1, 4, stream)
    rt.ok.aclrtDestroyStream(stream)
    assert rt.download(address, 4) == b"\x01" * 4
    assert rt.aclrtMemsetAsync(address, 4, 1, 4, stream) == 107017
    message = rt.message()
    assert "made by aclrtCreateStream" in message and "destroyed by aclrtDestroyStream" in message
    assert "use-after-destroy" in rt.violations()[0]


@isolated()
def test_abort_discards_what_is_queued(rt: Runtime) -> None:
    rt.start()
    stream, address = rt.stream(), rt.malloc(4)
    rt.ok.aclrtMemset(address, 4, 0, 4)
    rt.ok.ascendEmulatorSlowStream(stream, 20_000)
    for value in (1, 2, 3):
        rt.ok.aclrtMemsetAsync(address, 4, value, 4, stream)
    answers: list[int] = []
    context = rt.make("aclrtGetCurrentContext")

    def wait() -> None:
        rt.ok.aclrtSetCurrentContext(context)
        answers.append(rt.aclrtSynchronizeStream(stream))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.005)
    rt.ok.aclrtStreamAbort(stream)
    thread.join()
    assert answers == [107023]
    assert rt.download(address, 4) in (b"\0" * 4, b"\x01" * 4)
    rt.ok.aclrtMemsetAsync(address, 4, 9, 4, stream)
    rt.ok.aclrtSynchronizeStream(stream)
    assert rt.download(address, 4) == b"\x09" * 4


@isolated()
def test_stream_options(rt: Runtime) -> None:
    rt.start()
    made, flag = c_void_p(), c_uint32(9)
    assert rt.aclrtCreateStreamWithConfig(byref(made), 8, 0) == 100000
    rt.ok.aclrtCreateStreamWithConfig(byref(made), 7, 3)
    other = rt.stream()
    assert rt.ask("aclrtStreamGetId", c_int32, made) != rt.ask("aclrtStreamGetId", c_int32, other)
    rt.ok.aclrtSetStreamOverflowSwitch(made, 1)
    rt.ok.aclrtGetStreamOverflowSwitch(made, byref(flag))
    assert flag.value == 1
    config = rt.aclrtCreateStreamConfigHandle()
    priority = c_uint32(3)
    rt.ok.aclrtSetStreamConfigOpt(config, 3, byref(priority), 4)
    assert rt.aclrtSetStreamConfigOpt(config, 3, byref(priority), 8) == 100000
    third = rt.make("aclrtCreateStreamV2", config)
    rt.ok.aclrtDestroyStreamConfigHandle(config)
    for stream in (made, other, third):
        rt.ok.aclrtDestroyStream(stream)
    assert rt.leaks() == []


@isolated(ASCEND_EMULATOR_CHIP="310B")
def test_streams_run_out(rt: Runtime) -> None:
    rt.start()
    made = c_void_p()
    streams = [rt.stream() for _ in range(512)]
    assert rt.aclrtCreateStream(byref(made)) == 207008
    rt.ok.aclrtDestroyStream(streams[0])
    rt.ok.aclrtCreateStream(byref(made))


# -- events ----------------------------------------------------------------------------------------------------------


@isolated()
def test_a_stream_waits_for_an_event_of_another(rt: Runtime) -> None:
    rt.start()
    first, second, a, b = rt.stream(), rt.stream(), rt.malloc(4), rt.malloc(4)
    event = rt.make("aclrtCreateEventExWithFlag", SYNC)
    rt.ok.ascendEmulatorSlowStream(first, 30_000)
    rt.ok.aclrtMemsetAsync(a, 4, 5, 4, first)
    rt.ok.aclrtRecordEvent(event, first)
    rt.ok.aclrtStreamWaitEvent(second, event)
    rt.ok.aclrtMemcpyAsync(b, 4, a, 4, D2D, second)
    rt.ok.aclrtDestroyEvent(event)  # allowed while it is pending
    rt.ok.aclrtSynchronizeStream(second)
    assert rt.download(b, 4) == b"\x05" * 4


@isolated()
def test_a_wait_keeps_the_record_it_saw(rt: Runtime) -> None:
    rt.start()
    first, second, slow = rt.stream(), rt.stream(), rt.stream()
    address, event = rt.malloc(4), rt.make("aclrtCreateEvent")
    rt.ok.aclrtRecordEvent(event, first)
    rt.ok.aclrtStreamWaitEvent(second, event)
    rt.ok.ascendEmulatorSlowStream(slow, 200_000)
    rt.ok.aclrtRecordEvent(event, slow)  # the last record wins for those who ask from now on
    started = time.monotonic()
    rt.ok.aclrtMemsetAsync(address, 4, 1, 4, second)
    rt.ok.aclrtSynchronizeStream(second)
    assert time.monotonic() - started < 0.15
    assert rt.ask("aclrtQueryEvent", c_int, event) == 1
    rt.ok.aclrtSynchronizeEvent(event)
    assert rt.ask("aclrtQueryEvent", c_int, event) == 0


@isolated()
def test_the_queries_have_opposite_senses(rt: Runtime) -> None:
    rt.start()
    stream, event = rt.stream(), rt.make("aclrtCreateEvent")
    rt.ok.ascendEmulatorSlowStream(stream, 30_000)
    rt.ok.aclrtRecordEvent(event, stream)
    assert (rt.ask("aclrtQueryEvent", c_int, event), rt.ask("aclrtQueryEventStatus", c_int, event)) == (1, 0)
    rt.ok.aclrtSynchronizeEvent(event)
    assert (rt.ask("aclrtQueryEvent", c_int, event), rt.ask("aclrtQueryEventStatus", c_int, event)) == (0, 1)
    assert rt.ask("aclrtQueryEventWaitStatus", c_int, event) == 0


@isolated()
def test_events_never_recorded(rt: Runtime) -> None:
    rt.start()
    extended, plain = rt.make("aclrtCreateEventExWithFlag", SYNC), rt.make("aclrtCreateEventWithFlag", SYNC)
    assert rt.ask("aclrtQueryEventStatus", c_int, extended) == 1
    assert rt.ask("aclrtQueryEventStatus", c_int, plain) == 0
    rt.ok.aclrtStreamWaitEvent(None, extended)
    rt.ok.aclrtSynchronizeEvent(extended)
    assert rt.aclrtStreamWaitEvent(None, plain) == 107000
    assert "wait-before-record" in rt.violations()[0]
    assert rt.aclrtSynchronizeEvent(plain) == 107000


@isolated()
def test_extended_events_are_not_for_the_old_functions(rt: Runtime) -> None:
    rt.start()
    event, status = rt.make("aclrtCreateEventExWithFlag", SYNC), c_int()
    assert rt.aclrtQueryEvent(event, byref(status)) == 107000
    assert rt.aclrtResetEvent(event, None) == 107000
    assert rt.aclrtQueryEventWaitStatus(event, byref(status)) == 107000
    assert [line.split(":")[0] for line in rt.violations()] == ["extended-event"] * 3


@isolated()
def test_flags_say_what_an_event_can_do(rt: Runtime) -> None:
    rt.start()
    made, ms = c_void_p(), c_float()
    assert rt.aclrtCreateEventWithFlag(byref(made), 0x4) == 100000
    timed, waited = rt.make("aclrtCreateEventWithFlag", TIME_LINE), rt.make("aclrtCreateEventWithFlag", SYNC)
    for event in (timed, waited):
        rt.ok.aclrtRecordEvent(event, None)
        rt.ok.aclrtSynchronizeEvent(event)
    assert rt.aclrtStreamWaitEvent(None, timed) == 107000
    assert "ACL_EVENT_SYNC" in rt.message()
    assert rt.aclrtEventElapsedTime(byref(ms), timed, waited) == 107006
    assert "ACL_EVENT_TIME_LINE" in rt.message()


@isolated()
def test_elapsed_time(rt: Runtime) -> None:
    rt.start()
    stream, start, end = rt.stream(), rt.make("aclrtCreateEvent"), rt.make("aclrtCreateEvent")
    ms = c_float()
    assert rt.aclrtEventElapsedTime(byref(ms), start, end) == 107006
    rt.ok.aclrtRecordEvent(start, stream)
    rt.ok.aclrtSynchronizeEvent(start)
    rt.ok.ascendEmulatorSlowStream(stream, 40_000)
    rt.ok.aclrtRecordEvent(end, stream)
    assert rt.aclrtEventElapsedTime(byref(ms), start, end) == 507006
    rt.ok.aclrtSynchronizeEvent(end)
    rt.ok.aclrtEventElapsedTime(byref(ms), start, end)
    assert 40 <= ms.value < 4000
    assert rt.aclrtEventElapsedTime(byref(ms), end, start) == 107007
    assert rt.ask("aclrtEventGetTimestamp", c_uint64, end) > rt.ask("aclrtEventGetTimestamp", c_uint64, start)


@isolated()
def test_reset_makes_an_event_unrecorded(rt: Runtime) -> None:
    rt.start()
    event = rt.make("aclrtCreateEvent")
    rt.ok.aclrtRecordEvent(event, None)
    rt.ok.aclrtResetEvent(event, None)
    rt.ok.aclrtSynchronizeStream(None)
    assert rt.ask("aclrtQueryEvent", c_int, event) == 1


# -- callbacks -------------------------------------------------------------------------------------------------------


def reader(rt: Runtime, stream: int, stop: threading.Event) -> threading.Thread:
    """A thread that processes a stream's callbacks, as clients have it."""
    context = rt.make("aclrtGetCurrentContext")
    ready = threading.Event()

    def loop() -> None:
        rt.ok.aclrtSetCurrentContext(context)
        rt.ok.aclrtSubscribeReport(threading.get_ident(), stream)
        ready.set()
        while not stop.is_set():
            assert rt.aclrtProcessReport(20) in (0, 100036)
        rt.ok.aclrtUnSubscribeReport(threading.get_ident(), stream)

    thread = threading.Thread(target=loop)
    thread.start()
    ready.wait()
    return thread


@isolated()
def test_callbacks_run_on_the_subscribed_thread(rt: Runtime) -> None:
    rt.start()
    stream, stop, seen = rt.stream(), threading.Event(), []

    @CALLBACK
    def callback(data: int | None) -> None:
        time.sleep(0.01)
        seen.append((data, threading.get_ident()))

    assert rt.aclrtLaunchCallback(callback, 1, 1, stream) == 107015
    thread = reader(rt, stream, stop)
    assert rt.aclrtSubscribeReport(threading.get_ident(), stream) == 100033
    for data in (1, 2, 3):
        rt.ok.aclrtLaunchCallback(callback, data, 1, stream)
    rt.ok.aclrtSynchronizeStream(stream)  # blocking callbacks are part of the stream's order
    assert seen == [(1, thread.ident), (2, thread.ident), (3, thread.ident)]
    stop.set()
    thread.join()
    assert rt.aclrtProcessReport(1) == 100035


@isolated()
def test_a_callback_may_not_block_the_stream(rt: Runtime) -> None:
    rt.start()
    stream, stop, go = rt.stream(), threading.Event(), threading.Event()

    @CALLBACK
    def callback(data: int | None) -> None:
        go.wait(10)

    thread = reader(rt, stream, stop)
    rt.ok.aclrtLaunchCallback(callback, None, 0, stream)
    rt.ok.aclrtSynchronizeStream(stream)  # although the callback still waits
    go.set()
    stop.set()
    thread.join()


@isolated()
def test_callbacks_must_not_wait_or_allocate(rt: Runtime) -> None:
    rt.start()
    stream, codes = rt.stream(), []
    made = c_void_p()

    @CALLBACK
    def function(data: int | None) -> None:
        codes.append(rt.aclrtSynchronizeStream(stream))
        codes.append(rt.aclrtMalloc(byref(made), 8, 0))

    rt.ok.aclrtLaunchHostFunc(stream, function, None)
    rt.ok.aclrtSynchronizeStream(stream)
    assert codes == [107000, 107000]
    assert [line.split(":")[0] for line in rt.violations()] == ["call-in-callback"] * 2


@isolated()
def test_host_functions_block_the_stream(rt: Runtime) -> None:
    rt.start()
    stream, address, seen = rt.stream(), rt.malloc(4), []
    rt.ok.aclrtMemset(address, 4, 0, 4)

    @CALLBACK
    def function(data: int | None) -> None:
        time.sleep(0.02)
        seen.append((data, rt.dump(address, 1)))

    rt.ok.aclrtLaunchHostFunc(stream, function, 42)
    rt.ok.aclrtMemsetAsync(address, 4, 1, 4, stream)
    rt.ok.aclrtSynchronizeStream(stream)
    assert seen == [(42, b"\0")]


@isolated()
def test_overflow_status_is_clean(rt: Runtime) -> None:
    rt.start()
    address = rt.malloc(64)
    rt.ok.aclrtGetOverflowStatus(address, 64, None)
    rt.ok.aclrtSynchronizeStream(None)
    assert rt.download(address, 64) == bytes(64)
    rt.ok.aclrtResetOverflowStatus(None)
    assert rt.ask("aclrtGetDeviceSatMode", c_int) == 1
    assert rt.aclrtSetDeviceSatMode(0) == 207000


@isolated(ASCEND_EMULATOR_DELAY_SEED="11")
def test_many_threads_and_streams(rt: Runtime) -> None:
    rt.start()
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            rt.ok.aclrtSetDevice(0)
            for _ in range(10):
                stream, address = rt.stream(), rt.malloc(256)
                host = rt.make("aclrtMallocHost", 256)
                event = rt.make("aclrtCreateEventExWithFlag", SYNC)
                rt.ok.aclrtMemsetAsync(address, 256, number, 256, stream)
                rt.ok.aclrtMemcpyAsync(host, 256, address, 256, 2, stream)
                rt.ok.aclrtRecordEvent(event, stream)
                rt.ok.aclrtSynchronizeEvent(event)
                assert ctypes.string_at(host, 256) == bytes([number]) * 256
                rt.ok.aclrtDestroyEvent(event)
                rt.ok.aclrtDestroyStream(stream)
                rt.ok.aclrtFree(address)
                rt.ok.aclrtFreeHost(host)
            rt.ok.aclrtResetDevice(0)
        except BaseException as problem:  # for the main thread to tell
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert rt.leaks() == []
    free, total = c_size_t(), c_size_t()
    rt.ok.aclrtGetMemInfo(1, byref(free), byref(total))
    assert free.value == total.value


@isolated()
def test_the_process_may_end_with_work_queued(rt: Runtime) -> None:
    rt.start()
    for _ in range(4):
        stream, address = rt.stream(), rt.malloc(8)
        rt.ok.ascendEmulatorSlowStream(stream, 1000)
        for value in range(1000):
            rt.ok.aclrtMemsetAsync(address, 8, value % 256, 8, stream)
