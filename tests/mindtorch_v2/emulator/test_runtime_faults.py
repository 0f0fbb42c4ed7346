"""Failures: asynchronous ones, injected ones, a lost device, misused handles."""

from __future__ import annotations

import threading
from ctypes import byref, c_int, c_int32, c_size_t, c_void_p

from ._emulator import CALLBACK, D2H, Runtime, isolated


@isolated()
def test_the_nth_call_fails(rt: Runtime) -> None:
    rt.start()
    made = c_void_p()
    rt.malloc(8)
    rt.ok.ascendEmulatorSetFault(b"aclrtMalloc:2:207001")
    assert [rt.aclrtMalloc(byref(made), 8, 0) for _ in range(3)] == [0, 207001, 0]
    assert "aclrtMalloc: injected fault 207001 (call" in rt.message()
    rt.ok.ascendEmulatorSetFault(b"*:2:500000;aclrtMalloc:3:207001")
    assert [rt.aclrtMalloc(byref(made), 8, 0) for _ in range(4)] == [0, 500000, 207001, 0]
    rt.ok.ascendEmulatorSetFault(b"aclrtMalloc:1:207001")
    rt.ascendEmulatorClearFaults()
    rt.malloc(8)
    for wrong in (b"aclrtMalloc", b"aclrtMalloc:0:1", b"aclrtMalloc:1:0", b":1:1", b"aclrtMalloc:1:1:later"):
        assert rt.ascendEmulatorSetFault(wrong) == 100000


@isolated(ASCEND_EMULATOR_FAULT="aclrtCreateStream:1:207008;aclInit:1:500000")
def test_faults_from_the_environment(rt: Runtime) -> None:
    assert rt.aclInit(None) == 500000
    rt.start()
    made = c_void_p()
    assert rt.aclrtCreateStream(byref(made)) == 207008
    rt.ok.aclrtCreateStream(byref(made))


@isolated()
def test_a_release_that_fails_still_releases(rt: Runtime) -> None:
    rt.start()
    address, stream, event = rt.malloc(8), rt.stream(), rt.make("aclrtCreateEvent")
    rt.ok.ascendEmulatorSetFault(b"aclrtFree:1:507000;aclrtDestroyStream:1:507000;aclrtDestroyEvent:1:507000")
    assert [rt.aclrtFree(address), rt.aclrtDestroyStream(stream), rt.aclrtDestroyEvent(event)] == [507000] * 3
    assert rt.leaks() == []


@isolated()
def test_a_pointer_function_answers_null(rt: Runtime) -> None:
    rt.start()
    rt.ok.ascendEmulatorSetFault(b"aclrtCreateStreamConfigHandle:1:500000;aclrtGetSocName:1:500000")
    assert rt.aclrtCreateStreamConfigHandle() is None
    assert rt.aclrtGetSocName() is None


@isolated()
def test_calls_are_counted(rt: Runtime) -> None:
    rt.start()
    rt.ascendEmulatorResetCounters()
    address = rt.malloc(8)
    rt.ok.aclrtMemset(address, 8, 0, 8)
    rt.aclGetRecentErrMsg()
    assert rt.ascendEmulatorCallCount() == 2
    assert rt.ascendEmulatorFunctionCalls(b"aclrtMemset") == 1
    assert rt.ascendEmulatorFunctionCalls(b"aclrtNothing") == 0
    assert rt.ascendEmulatorTotalKernelRuns() == 0


@isolated()
def test_an_asynchronous_failure_waits_for_a_synchronisation(rt: Runtime) -> None:
    rt.start()
    stream, address = rt.stream(), rt.malloc(8)
    rt.ok.ascendEmulatorSetFault(b"aclrtMemsetAsync:2:507015:async")
    for value in (1, 2, 3):  # the launch itself succeeds, and what is queued behind it runs
        rt.ok.aclrtMemsetAsync(address, 8, value, 8, stream)
    assert rt.aclrtSynchronizeStream(stream) == 507015
    message = rt.message()
    assert "aclrtMemsetAsync (call" in message and "task 2 of stream 1" in message and "injected fault" in message
    assert rt.aclrtGetLastError(0) == 507015
    assert rt.download(address, 8) == b"\x03" * 8
    rt.ok.aclrtSynchronizeStream(stream)  # told once


@isolated()
def test_device_and_event_report_it_too(rt: Runtime) -> None:
    rt.start()
    first, second, address, event = rt.stream(), rt.stream(), rt.malloc(8), rt.make("aclrtCreateEvent")
    rt.ok.ascendEmulatorSetFault(b"aclrtMemsetAsync:1:507015:async")
    rt.ok.aclrtMemsetAsync(address, 8, 1, 8, first)
    rt.ok.aclrtSynchronizeStream(second)
    assert rt.aclrtSynchronizeDevice() == 507015
    rt.ok.aclrtRecordEvent(event, first)
    rt.ok.ascendEmulatorSetFault(b"aclrtMemsetAsync:1:507014:async")
    rt.ok.aclrtMemsetAsync(address, 8, 1, 8, first)
    rt.ok.aclrtSynchronizeEvent(event)  # recorded before the failure
    rt.ok.aclrtRecordEvent(event, first)
    assert rt.aclrtSynchronizeEvent(event) == 507014
    rt.ok.aclrtSynchronizeDevice()


@isolated()
def test_the_message_goes_to_the_thread_that_synchronises(rt: Runtime) -> None:
    rt.start()
    stream, address = rt.stream(), rt.malloc(8)
    rt.ok.ascendEmulatorSetFault(b"aclrtMemsetAsync:1:507015:async")
    rt.ok.aclrtMemsetAsync(address, 8, 1, 8, stream)
    context, seen = rt.make("aclrtGetCurrentContext"), []

    def there() -> None:
        rt.ok.aclrtSetCurrentContext(context)
        seen.append((rt.aclrtSynchronizeStream(stream), rt.message()))

    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    assert seen[0][0] == 507015 and "aclrtMemsetAsync" in seen[0][1]
    assert rt.message() == ""


@isolated()
def test_stop_on_failure(rt: Runtime) -> None:
    rt.start()
    stream, other, address = rt.stream(), rt.stream(), rt.malloc(8)
    rt.ok.aclrtSetStreamFailureMode(stream, 1)
    assert rt.aclrtSetStreamFailureMode(stream, 0) == 107000  # once per stream
    assert rt.aclrtSetStreamFailureMode(other, 2) == 100000
    rt.ok.ascendEmulatorSlowStream(stream, 10_000)
    rt.ok.ascendEmulatorSetFault(b"aclrtMemsetAsync:1:507015:async")
    for value in (1, 2):
        rt.ok.aclrtMemsetAsync(address, 8, value, 8, stream)
    assert rt.aclrtSynchronizeStream(stream) == 507015
    assert rt.download(address, 8) == b"\xcb" * 8  # what was queued behind it did not run
    assert rt.aclrtMemsetAsync(address, 8, 3, 8, other) == 507015
    rt.ok.aclrtResetDeviceForce(0)
    rt.ok.aclrtSetDevice(0)
    rt.ok.aclrtMemsetAsync(rt.malloc(8), 8, 3, 8, None)
    rt.ok.aclrtSynchronizeStream(None)


@isolated()
def test_the_exception_callback(rt: Runtime) -> None:
    rt.start()
    codes = []

    @CALLBACK
    def callback(info: int | None) -> None:
        codes.append(rt.aclrtGetErrorCodeFromExceptionInfo(info))

    rt.ok.aclrtSetExceptionInfoCallback(callback)
    rt.ok.ascendEmulatorSetFault(b"aclrtMemsetAsync:1:507015:async")
    rt.ok.aclrtMemsetAsync(rt.malloc(8), 8, 1, 8, None)
    assert rt.aclrtSynchronizeStream(None) == 507015
    assert codes == [507015]
    rt.ok.aclrtSetExceptionInfoCallback(CALLBACK())


@isolated(ASCEND_EMULATOR_DEVICES="2")
def test_a_lost_device(rt: Runtime) -> None:
    rt.start()
    stream, address, host = rt.stream(), rt.malloc(8), rt.make("aclrtMallocHost", 8)
    event, made = rt.make("aclrtCreateEvent"), c_void_p()
    rt.ok.ascendEmulatorSlowStream(stream, 20_000)
    for _ in range(5):
        rt.ok.aclrtMemsetAsync(address, 8, 1, 8, stream)
    rt.ok.aclrtRecordEvent(event, stream)
    rt.ok.ascendEmulatorLoseDevice(0)
    calls = [
        rt.aclrtSynchronizeStream(stream),
        rt.aclrtSynchronizeDevice(),
        rt.aclrtMalloc(byref(made), 8, 0),
        rt.aclrtMemcpy(host, 8, address, 8, D2H),
        rt.aclrtMemcpyAsync(host, 8, address, 8, D2H, stream),
        rt.aclrtSynchronizeEvent(event),
        rt.aclrtSetDevice(0),
        rt.aclrtCreateStream(byref(made)),
        rt.aclrtGetMemInfo(1, byref(c_size_t()), byref(c_size_t())),
    ]
    assert calls == [507010] * len(calls)
    assert "device 0 is lost" in rt.message()
    assert rt.ask("aclrtQueryDeviceStatus", c_int, 0) == 1
    # What is given back is given back, although the code says that the device is lost.
    assert [
        rt.aclrtFree(address),
        rt.aclrtDestroyStream(stream),
        rt.aclrtDestroyEvent(event),
        rt.aclrtFreeHost(host),
    ] == [507010] * 4
    assert rt.leaks() == []
    rt.ok.aclrtSetDevice(1)  # the other one works
    rt.ok.aclrtFree(rt.malloc(8))
    rt.ok.ascendEmulatorRestoreDevice(0)
    rt.ok.aclrtSetDevice(0)
    rt.ok.aclrtFree(rt.malloc(8))


@isolated()
def test_waiters_learn_that_the_device_is_lost(rt: Runtime) -> None:
    rt.start()
    stream, address = rt.stream(), rt.malloc(8)
    rt.ok.ascendEmulatorSlowStream(stream, 100_000)
    for _ in range(20):
        rt.ok.aclrtMemsetAsync(address, 8, 1, 8, stream)
    timer = threading.Timer(0.05, lambda: rt.ascendEmulatorLoseDevice(0))
    timer.start()
    assert rt.aclrtSynchronizeStream(stream) == 507010
    timer.join()


@isolated()
def test_aborting_a_devices_tasks(rt: Runtime) -> None:
    rt.start()
    stream, address = rt.stream(), rt.malloc(8)
    rt.ok.ascendEmulatorSlowStream(stream, 100_000)
    for _ in range(20):
        rt.ok.aclrtMemsetAsync(address, 8, 1, 8, stream)
    rt.ok.aclrtDeviceTaskAbort(0, 1000)
    assert rt.ask("aclrtStreamQuery", c_int, stream) == 0
    rt.ok.aclrtSynchronizeStream(stream)


@isolated()
def test_misused_handles(rt: Runtime) -> None:
    rt.start()
    stream, event = rt.stream(), rt.make("aclrtCreateEvent")
    assert rt.aclrtDestroyEvent(stream) == 107017
    assert rt.aclrtSynchronizeStream(event) == 107017
    assert rt.aclrtRecordEvent(0x1234, stream) == 107017
    assert rt.aclrtRecordEvent(None, stream) == 100000
    assert "event is NULL" in rt.message()
    rt.ok.aclrtDestroyEvent(event)
    assert rt.aclrtDestroyEvent(event) == 107017
    wrong, other, unknown, double = rt.violations()
    assert wrong.startswith("wrong-handle-type: aclrtDestroyEvent expected aclrtEvent, got aclrtStream")
    assert "made by aclrtCreateStream" in wrong
    assert other.startswith("wrong-handle-type: aclrtSynchronizeStream expected aclrtStream, got aclrtEvent")
    assert unknown.startswith("unknown-handle: aclrtRecordEvent got 0x1234")
    assert double.startswith("double-destroy: aclrtDestroyEvent") and "destroyed by aclrtDestroyEvent, call" in double


@isolated()
def test_a_handle_is_never_the_same_again(rt: Runtime) -> None:
    rt.start()
    seen = set()
    for _ in range(1500):  # slots are reused, handles are not
        event = rt.make("aclrtCreateEvent")
        rt.ok.aclrtDestroyEvent(event)
        seen.add(event)
    assert len(seen) == 1500
    assert rt.aclrtDestroyEvent(min(seen)) == 107017
    assert len(rt.violations()) == 1
    assert rt.ascendEmulatorLiveHandles() == 0


@isolated()
def test_reset_forgets_everything(rt: Runtime) -> None:
    rt.start()
    rt.malloc(8)
    stream = rt.stream()
    rt.ok.aclrtMemsetAsync(rt.malloc(8), 8, 1, 8, stream)
    rt.ok.ascendEmulatorSetFault(b"aclrtMalloc:1:207001")
    rt.ascendEmulatorReset()
    assert (rt.leaks(), rt.ascendEmulatorLiveHandles(), rt.ascendEmulatorCallCount()) == ([], 0, 0)
    assert rt.aclrtGetDevice(byref(c_int32())) == 107002
    rt.start()
    rt.malloc(8)
    assert rt.aclrtSynchronizeStream(stream) == 107017
    assert len(rt.violations()) == 1


def destroy_at_once(rt: Runtime, context: int) -> list[list[int]]:
    event, stream, address = rt.make("aclrtCreateEvent"), rt.stream(), rt.malloc(8)
    gate = threading.Barrier(4)
    codes: list[tuple[int, int, int]] = []

    def destroy() -> None:
        rt.ok.aclrtSetCurrentContext(context)
        gate.wait()
        codes.append((rt.aclrtDestroyEvent(event), rt.aclrtDestroyStream(stream), rt.aclrtFree(address)))

    threads = [threading.Thread(target=destroy) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [sorted(each) for each in zip(*codes)]


@isolated()
def test_only_one_thread_destroys(rt: Runtime) -> None:
    rt.start()
    context = rt.make("aclrtGetCurrentContext")
    for _ in range(10):
        assert destroy_at_once(rt, context) == [[0] + [107017] * 3, [0] + [107017] * 3, [0] + [107000] * 3]
    assert rt.leaks() == []
    rt.violations()
