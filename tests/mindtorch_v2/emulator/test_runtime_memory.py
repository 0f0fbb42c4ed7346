"""Device memory, pinned memory, copies and fills, as the runtime's documents promise them."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from ctypes import byref, c_size_t, c_void_p
from pathlib import Path

import pytest

from ._emulator import D2D, D2H, DEFAULT, H2D, H2H, Runtime, isolated

FRESH, FREED = b"\xcb", b"\xdd"


class PtrAttributes(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint32),
        ("type", ctypes.c_int32),
        ("page", ctypes.c_uint32),
        ("rsv", ctypes.c_uint32 * 4),
    ]


class PhysicalProp(ctypes.Structure):
    _fields_ = [
        ("handle_type", ctypes.c_int),
        ("allocation_type", ctypes.c_int),
        ("attribute", ctypes.c_int),
        ("device", ctypes.c_uint32),
        ("location_type", ctypes.c_int),
        ("reserve", ctypes.c_uint64),
    ]


@isolated(signal=signal.SIGSEGV)
def test_host_read_of_device_memory_faults(rt: Runtime) -> None:
    rt.start()
    ctypes.string_at(rt.malloc(64), 1)


@isolated(signal=signal.SIGSEGV)
def test_host_write_of_device_memory_faults(rt: Runtime) -> None:
    rt.start()
    ctypes.memset(rt.malloc(64), 0, 1)


@isolated()
def test_fresh_and_freed_memory_are_poisoned(rt: Runtime) -> None:
    rt.start()
    address = rt.malloc(100)
    assert rt.download(address, 100) == FRESH * 100
    rt.upload(address, b"a" * 100)
    rt.ok.aclrtFree(address)
    assert rt.dump(address, 100) == FREED * 100


@isolated()
def test_addresses_are_aligned_and_apart(rt: Runtime) -> None:
    rt.start()
    addresses = sorted(rt.malloc(size) for size in (1, 32, 33, 64, 100, 4096) * 5)
    assert all(address % 64 == 0 for address in addresses)
    assert any(address % 128 for address in addresses)  # no more than is promised
    assert all(after - before >= 64 for before, after in zip(addresses, addresses[1:]))


def leave_addresses(spare: int) -> None:
    """Let this process map `spare` more bytes of addresses, as `ulimit -v` does."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + spare,) * 2)


# Sanitizers keep shadow memory of terabytes among the same addresses, and abort when they may not map more of it.
roomy = pytest.mark.skipif("san.so" in os.environ.get("LD_PRELOAD", ""), reason="sanitizers need addresses")


@roomy
@isolated()
def test_a_device_is_smaller_where_addresses_are_scarce(rt: Runtime) -> None:
    rt.ok.aclInit(None)
    leave_addresses(1 << 30)
    rt.ok.aclrtSetDevice(0)
    free, total = c_size_t(), c_size_t()
    rt.ok.aclrtGetMemInfo(1, byref(free), byref(total))
    assert 1 << 20 < total.value < 1 << 30
    assert rt.aclrtMalloc(byref(c_void_p()), total.value + 1, 0) == 207001
    rt.malloc(1 << 20)


@roomy
@isolated()
def test_a_device_without_addresses_is_refused(rt: Runtime) -> None:
    rt.ok.aclInit(None)
    leave_addresses(20 << 20)
    assert rt.aclrtSetDevice(0) == 207001
    assert "raise its limit (ulimit -v) or lower ASCEND_EMULATOR_MEMORY" in rt.message()


@isolated(ASCEND_EMULATOR_MEMORY="1M")
def test_out_of_memory(rt: Runtime) -> None:
    rt.start()
    made = c_void_p(7)
    assert rt.aclrtMalloc(byref(made), 1 << 20, 0) == 207001  # with its padding it does not fit
    assert "out of memory on device 0: asked 1048576 bytes" in rt.message()
    first = rt.malloc(1 << 19)
    assert rt.aclrtMalloc(byref(made), 1 << 19, 0) == 207001
    rt.ok.aclrtFree(first)
    for _ in range(100):  # resting addresses are no reason to be out of memory
        rt.ok.aclrtFree(rt.malloc((1 << 20) - 64))


@isolated(ASCEND_EMULATOR_MEMORY="1M")
def test_mem_info_counts_padded_sizes(rt: Runtime) -> None:
    rt.start()
    free, total = c_size_t(), c_size_t()
    rt.malloc(1)
    rt.make("aclrtMallocAlign32", 33, 0)
    rt.ok.aclrtGetMemInfo(1, byref(free), byref(total))
    assert (total.value, total.value - free.value) == (1 << 20, 64 + 64)
    rt.ok.aclrtGetMemInfo(0, byref(free), byref(total))  # no DDR on this chip
    assert (free.value, total.value) == (0, 0)


@isolated()
def test_malloc_refuses_nothing(rt: Runtime) -> None:
    rt.start()
    made = c_void_p()
    assert rt.aclrtMalloc(byref(made), 0, 0) == 100000
    assert rt.aclrtMalloc(None, 8, 0) == 100000
    assert rt.aclrtMallocHost(byref(made), 0) == 100000
    assert rt.aclrtFree(None) == 100000


@isolated()
def test_bad_frees_are_told(rt: Runtime) -> None:
    rt.start()
    address = rt.malloc(64)
    host = rt.make("aclrtMallocHost", 64)
    assert rt.aclrtFree(address + 32) == 107000
    assert rt.aclrtFree(host) == 107000
    assert rt.aclrtFreeHost(address) == 107000
    rt.ok.aclrtFree(address)
    assert rt.aclrtFree(address) == 107000
    assert "freed by aclrtFree" in rt.message()
    inner, pinned, device, double = rt.violations()
    assert inner.startswith("bad-free: aclrtFree") and "byte 32 of the 64 bytes" in inner
    assert "pinned host memory (aclrtMallocHost" in pinned
    assert device.startswith("bad-free: aclrtFreeHost") and "aclrtMalloc, call" in device
    assert double.startswith("double-free") and "made by aclrtMalloc" in double and "freed by aclrtFree" in double
    rt.ok.aclrtFreeHost(host)


@isolated()
def test_freed_addresses_rest(rt: Runtime) -> None:
    rt.start()
    address = rt.malloc(4096)
    rt.ok.aclrtFree(address)
    assert address not in [rt.malloc(4096) for _ in range(50)]
    out = ctypes.create_string_buffer(8)
    assert rt.aclrtMemcpy(out, 8, address, 8, D2H) == 107000
    assert "freed by aclrtFree" in rt.message()
    assert "bad-copy" in rt.violations()[0]


@isolated()
def test_free_while_a_task_needs_it(rt: Runtime) -> None:
    rt.start()
    stream, address, host = rt.stream(), rt.malloc(64), rt.make("aclrtMallocHost", 64)
    rt.ok.ascendEmulatorSlowStream(stream, 50_000)
    rt.ok.aclrtMemcpyAsync(address, 64, host, 64, H2D, stream)
    rt.ok.aclrtFree(address)
    rt.ok.aclrtFreeHost(host)
    device, pinned = rt.violations()
    assert device.startswith("free-while-queued: aclrtFree") and "aclrtMemcpyAsync (call" in device
    assert "of stream 1" in device
    assert pinned.startswith("free-while-queued: aclrtFreeHost")
    assert rt.aclrtSynchronizeStream(stream) == 507015  # the copy met freed memory
    assert "not in a live allocation" in rt.message()


@isolated()
def test_copies_check_their_arguments(rt: Runtime) -> None:
    rt.start()
    address, host = rt.malloc(64), ctypes.create_string_buffer(64)
    assert rt.aclrtMemcpy(None, 0, None, 0, H2D) == 0  # nothing to copy: nothing is looked at
    assert rt.aclrtMemcpy(address, 8, host, 9, H2D) == 107000
    assert rt.aclrtMemcpy(None, 8, host, 8, H2D) == 100000
    assert rt.aclrtMemcpy(address, 8, None, 8, H2D) == 100000
    assert rt.aclrtMemcpy(address, 8, host, 8, 9) == 100000
    assert rt.aclrtMemcpy(address, 65, host, 65, H2D) == 107000
    assert "65 bytes" in rt.message() and "bad-copy" in rt.violations()[0]
    assert rt.aclrtMemcpyAsync(host, 8, host, 8, H2H, None) == 207000
    assert rt.aclrtMemset(address, 8, 0, 9) == 107000
    assert rt.aclrtMemset(None, 8, 0, 8) == 100000
    assert rt.aclrtMemset(None, 8, 0, 0) == 0


@isolated()
def test_copy_kind_must_fit_the_pointers(rt: Runtime) -> None:
    rt.start()
    address, host = rt.malloc(64), ctypes.create_string_buffer(64)
    for dst, src, kind in [(address, host, D2H), (host, address, H2D), (address, address, H2D), (host, host, D2D)]:
        assert rt.aclrtMemcpy(dst, 64, src, 64, kind) == 107000
        assert "copy-kind" in rt.violations()[0]
    rt.ok.aclrtMemcpy(address, 64, host, 64, DEFAULT)
    rt.ok.aclrtMemcpy(host, 64, address, 64, DEFAULT)


@isolated()
def test_pageable_copies_finish_and_pinned_ones_do_not(rt: Runtime) -> None:
    rt.start()
    stream, address = rt.stream(), rt.malloc(8)
    pinned, pageable = rt.make("aclrtMallocHost", 8), ctypes.create_string_buffer(b"pageable", 8)
    rt.ok.ascendEmulatorSlowStream(stream, 30_000)
    rt.ok.aclrtMemcpyAsync(address, 8, pageable, 8, H2D, stream)
    assert rt.download(address, 8) == b"pageable"
    ctypes.memmove(pinned, b"pinnedxx", 8)
    rt.ok.aclrtMemcpyAsync(address, 8, pinned, 8, H2D, stream)
    assert rt.download(address, 8) == b"pageable"
    rt.ok.aclrtSynchronizeStream(stream)
    assert rt.download(address, 8) == b"pinnedxx"


@isolated()
def test_registered_memory_is_pinned(rt: Runtime) -> None:
    rt.start()
    memory, address, stream = ctypes.create_string_buffer(64), rt.malloc(64), rt.stream()
    where = ctypes.addressof(memory)
    seen = c_void_p()
    rt.ok.aclrtHostRegister(where, 64, 0, byref(seen))
    assert rt.aclrtHostRegister(where, 64, 0, byref(seen)) == 107000
    rt.ok.ascendEmulatorSlowStream(stream, 30_000)
    rt.ok.aclrtMemcpyAsync(where, 64, address, 64, D2H, stream)
    assert rt.ask("aclrtStreamQuery", ctypes.c_int, stream) == 1
    rt.ok.aclrtSynchronizeStream(stream)
    assert memory.raw == FRESH * 64
    assert rt.aclrtFreeHost(where) == 107000
    assert "bad-free" in rt.violations()[0]
    rt.ok.aclrtHostUnregister(where)


@isolated()
def test_pointer_attributes(rt: Runtime) -> None:
    rt.start()
    host = ctypes.create_string_buffer(8)
    asked = [rt.malloc(8) + 4, rt.make("aclrtMallocHost", 8), ctypes.addressof(host)]
    types = []
    for pointer in asked:
        attributes = PtrAttributes()
        rt.ok.aclrtPointerGetAttributes(pointer, byref(attributes))
        types.append(attributes.type)
    assert types == [1, 0, 2]


@isolated()
def test_rows_with_pitches(rt: Runtime) -> None:
    rt.start()
    address = rt.malloc(32)
    rt.ok.aclrtMemset(address, 32, 0, 32)
    rt.ok.aclrtMemcpy2d(address, 8, b"abcdef", 3, 3, 2, H2D)
    assert rt.download(address, 16) == b"abc\0\0\0\0\0def\0\0\0\0\0"
    out = ctypes.create_string_buffer(6)
    rt.ok.aclrtMemcpy2dAsync(out, 3, address, 8, 3, 2, D2H, None)
    assert out.raw == b"abcdef"
    assert rt.aclrtMemcpy2d(address, 2, b"abcdef", 3, 3, 2, H2D) == 107000


@isolated()
def test_fills(rt: Runtime) -> None:
    rt.start()
    address, stream = rt.malloc(16), rt.stream()
    rt.ok.aclrtMemset(address, 16, 7, 8)
    rt.ok.aclrtMemsetAsync(address + 8, 8, 0x109, 8, stream)
    rt.ok.aclrtSynchronizeStream(stream)
    assert rt.download(address, 16) == b"\x07" * 8 + b"\x09" * 8


@isolated(ASCEND_EMULATOR_DEVICES="2")
def test_copies_between_devices_need_peer_access(rt: Runtime) -> None:
    rt.start(1)
    there = rt.malloc(8)
    rt.upload(there, b"deviceon")
    rt.ok.aclrtSetDevice(0)
    here = rt.malloc(8)
    can, status = ctypes.c_int32(), ctypes.c_int32()
    rt.ok.aclrtDeviceCanAccessPeer(byref(can), 0, 1)
    assert can.value == 1
    assert rt.aclrtMemcpy(here, 8, there, 8, D2D) == 107000
    assert "aclrtDeviceEnablePeerAccess" in rt.message()
    assert rt.aclrtDeviceEnablePeerAccess(0, 0) == 107000
    assert rt.aclrtDeviceEnablePeerAccess(1, 3) == 100000
    rt.ok.aclrtDeviceEnablePeerAccess(1, 0)
    for pair, enabled in (((0, 1), 1), ((1, 0), 0)):  # one direction only
        rt.ok.aclrtDevicePeerAccessStatus(*pair, byref(status))
        assert status.value == enabled
    rt.ok.aclrtMemcpy(here, 8, there, 8, D2D)
    assert rt.download(here, 8) == b"deviceon"


@isolated()
def test_reserved_addresses_and_physical_memory(rt: Runtime) -> None:
    rt.start()
    granule = 2 << 20
    prop = PhysicalProp(attribute=1, device=0, location_type=1)
    assert rt.ask("aclrtMemGetAllocationGranularity", c_size_t, byref(prop), 0) == granule
    space = rt.make("aclrtReserveMemAddress", 4 * granule, 0, None, 0)
    first = rt.make("aclrtMallocPhysical", granule, byref(prop), 0)
    second = rt.make("aclrtMallocPhysical", granule, byref(prop), 0)
    rt.ok.aclrtMapMem(space, granule, 0, first, 0)
    rt.ok.aclrtMapMem(space + granule, granule, 0, second, 0)
    rt.ok.aclrtMapMem(space + 3 * granule, granule, 0, first, 0)
    rt.upload(space + granule - 4, b"straddle")  # windows that follow each other are one range
    assert rt.download(space + 4 * granule - 4, 4) == b"stra"  # and memory mapped twice is seen twice
    assert rt.aclrtMemcpy(space + 2 * granule, 4, b"hole", 4, H2D) == 107000
    assert "no memory mapped" in rt.message() and "bad-copy" in rt.violations()[0]
    assert rt.aclrtReleaseMemAddress(space) == 107000
    assert rt.aclrtMapMem(space, granule, 0, first, 0) == 107000
    rt.ok.aclrtFreePhysical(first)  # goes with its last window
    assert rt.aclrtFreePhysical(first) == 107017
    assert "double-destroy" in rt.violations()[0]
    assert rt.ascendEmulatorLiveBytes(0) == 3 * granule
    for window in (0, 1, 3):
        rt.ok.aclrtUnmapMem(space + window * granule)
    rt.ok.aclrtFreePhysical(second)
    rt.ok.aclrtReleaseMemAddress(space)
    free, total = c_size_t(), c_size_t()
    rt.ok.aclrtGetMemInfo(1, byref(free), byref(total))
    assert free.value == total.value
    assert rt.leaks() == []


@isolated()
def test_sharing_between_processes_is_refused_by_name(rt: Runtime) -> None:
    rt.start()
    key = ctypes.create_string_buffer(65)
    assert rt.aclrtIpcMemGetExportKey(rt.malloc(8), 8, key, 65, 0) == 207000
    assert "aclrtIpcMemGetExportKey" in rt.message()


@isolated()
def test_leaks_are_listed(rt: Runtime) -> None:
    rt.start()
    address = rt.malloc(77)
    stream = rt.stream()
    assert rt.ascendEmulatorLiveBytes(0) == 77
    assert rt.ascendEmulatorLiveHandles() == 1
    assert [("77 bytes" in line, "aclrtStream" in line) for line in rt.leaks()] == [(False, True), (True, False)]
    rt.ok.aclrtFree(address)
    rt.ok.aclrtDestroyStream(stream)
    rt.ok.aclrtResetDevice(0)
    rt.ok.aclFinalize()
    assert rt.leaks() == []


@isolated(says="leak: 77 bytes", ASCEND_EMULATOR_REPORT="1")
def test_leaks_are_kept_after_finalize(rt: Runtime) -> None:
    rt.start()
    rt.malloc(77)
    rt.make("aclrtCreateEvent")
    rt.ok.aclrtResetDevice(0)
    rt.ok.aclFinalize()
    leaks = rt.leaks()
    assert any("77 bytes" in line and "aclrtMalloc, call 3" in line for line in leaks)
    assert any("aclrtEvent" in line and "made by aclrtCreateEvent" in line for line in leaks)


@isolated(ASCEND_EMULATOR_DEVICES="2")
def test_a_stream_reaches_only_its_device_and_peers(rt: Runtime) -> None:
    rt.start(1)
    there, host = rt.malloc(8), rt.make("aclrtMallocHost", 8)
    rt.ok.aclrtSetDevice(0)
    assert rt.aclrtMemcpyAsync(there, 8, host, 8, H2D, None) == 107000
    rt.ok.aclrtMemsetAsync(there, 8, 1, 8, None)
    assert rt.aclrtSynchronizeStream(None) == 507015
    assert "is memory of device 1 and the stream is of device 0" in rt.message()
    rt.ok.aclrtDeviceEnablePeerAccess(1, 0)
    rt.ok.aclrtMemsetAsync(there, 8, 1, 8, None)
    rt.ok.aclrtSynchronizeStream(None)
