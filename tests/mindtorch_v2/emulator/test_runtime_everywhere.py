"""A failure at every call of a life with events, and of one with a communicator: each is told, and nothing is left.

Invariant: which call fails is counted, not chosen, so that a call that is added to a life is tried as well.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_uint32, c_uint64, c_void_p

from ._emulator import Runtime, isolated, load

FAILS = 507000


def with_events(rt: Runtime) -> list[int]:
    """Two streams that wait for each other, events that are asked, reset, timed and waited for."""
    streams, events = [c_void_p(), c_void_p()], [c_void_p() for _ in range(3)]
    codes = [rt.aclrtCreateStream(byref(s)) for s in streams]
    codes.append(rt.aclrtCreateEvent(byref(events[0])))
    codes.append(rt.aclrtCreateEventWithFlag(byref(events[1]), 9))
    codes.append(rt.aclrtCreateEventExWithFlag(byref(events[2]), 1))
    if not any(codes):
        (first, second), (begin, end, plain) = streams, events
        found, time, stamp = c_int(), c_float(), c_uint64()
        codes += [
            rt.aclrtRecordEvent(begin, first),
            rt.aclrtStreamWaitEvent(second, begin),
            rt.aclrtRecordEvent(end, second),
            rt.aclrtStreamWaitEvent(first, end),
            rt.aclrtRecordEvent(plain, first),
            rt.aclrtQueryEventStatus(end, byref(found)),
            rt.aclrtQueryEventWaitStatus(begin, byref(found)),
            rt.aclrtSynchronizeEvent(plain),
            rt.aclrtSynchronizeEventWithTimeout(end, 10000),
            rt.aclrtSynchronizeStream(second),
            rt.aclrtEventElapsedTime(byref(time), begin, end),
            rt.aclrtEventGetTimestamp(end, byref(stamp)),
            rt.aclrtResetEvent(begin, first),
            rt.aclrtSynchronizeStream(first),
        ]
    codes += [rt.aclrtDestroyEvent(e) for e in events if e.value]
    codes += [rt.aclrtDestroyStream(s) for s in streams if s.value]
    return codes


def alone_in_a_group(rt: Runtime) -> list[int]:
    """A communicator of one rank: made, asked, used and destroyed."""
    hccl = load("hccl")
    root, comm, name = ctypes.create_string_buffer(4108), c_void_p(), ctypes.create_string_buffer(128)
    memory, stream, number = [c_void_p(), c_void_p()], c_void_p(), c_uint32()
    codes = [rt.aclrtCreateStream(byref(stream))]
    codes += [rt.aclrtMalloc(byref(m), 32, 0) for m in memory]
    codes.append(hccl.HcclGetRootInfo(root))
    if not any(codes):
        codes.append(hccl.HcclCommInitRootInfo(c_uint32(1), root, c_uint32(0), byref(comm)))
    if comm.value:
        send, receive, count, kind = memory[0], memory[1], c_uint64(8), c_int(4)
        codes += [
            hccl.HcclGetRankSize(comm, byref(number)),
            hccl.HcclGetRankId(comm, byref(number)),
            hccl.HcclGetCommName(comm, name),
            rt.aclrtMemsetAsync(send, 32, 0, 32, stream),
            hccl.HcclAllReduce(send, receive, count, kind, c_int(0), comm, stream),
            hccl.HcclAllGather(send, receive, count, kind, comm, stream),
            hccl.HcclReduceScatter(send, receive, count, kind, c_int(0), comm, stream),
            hccl.HcclBroadcast(send, count, kind, c_uint32(0), comm, stream),
            hccl.HcclBarrier(comm, stream),
            rt.aclrtSynchronizeStream(stream),
        ]
        codes.append(hccl.HcclCommDestroy(comm))
    codes += [rt.aclrtFree(m) for m in memory if m.value]
    if stream.value:
        codes.append(rt.aclrtDestroyStream(stream))
    return codes


def fails_everywhere(rt: Runtime, life: Callable[[Runtime], list[int]]) -> None:
    rt.start()
    rt.ascendEmulatorResetCounters()
    assert set(life(rt)) == {0}
    calls, before = rt.ascendEmulatorCallCount(), rt.leaks()
    assert calls > 15
    told = 0
    for number in range(1, calls + 1):
        rt.ok.ascendEmulatorSetFault(f"*:{number}:{FAILS}".encode())
        codes = life(rt)
        rt.ascendEmulatorClearFaults()
        rt.ok.aclrtSynchronizeDevice()
        told += FAILS in codes
        assert rt.leaks() == before, (number, codes, rt.leaks())
    assert told == calls
    assert set(life(rt)) == {0}
    rt.violations()


@isolated()
def test_events(rt: Runtime) -> None:
    fails_everywhere(rt, with_events)


@isolated()
def test_a_communicator(rt: Runtime) -> None:
    fails_everywhere(rt, alone_in_a_group)
