"""Initialisation, devices, contexts, threads, forks, and what the chip says of itself."""

from __future__ import annotations

import ctypes
import os
import signal
import tempfile
import threading
from ctypes import byref, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from ._emulator import Runtime, isolated


def on_thread(function: Any) -> Any:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(function()))
    thread.start()
    thread.join()
    return answers[0]


@isolated()
def test_init_is_counted(rt: Runtime) -> None:
    left = c_uint64()
    assert rt.aclFinalize() == 100037
    assert [rt.aclInit(None), rt.aclInit(b"")] == [0, 100002]
    assert [rt.aclFinalizeReference(byref(left)), left.value] == [0, 1]
    assert [rt.aclFinalizeReference(byref(left)), left.value] == [0, 0]
    assert rt.aclFinalizeReference(byref(left)) == 100037
    assert [rt.aclInit(None), rt.aclInit(None), rt.aclFinalize(), rt.aclFinalize()] == [0, 100002, 0, 100037]


@isolated()
def test_init_reads_its_file(rt: Runtime) -> None:
    assert rt.aclInit(b"/nowhere/acl.json") == 100003
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(" no json")
        file.flush()
        assert rt.aclInit(file.name.encode()) == 100003
        file.seek(0)
        file.write('{"dump": {}}')
        file.flush()
        assert rt.aclInit(file.name.encode()) == 0


@isolated()
def test_before_init(rt: Runtime) -> None:
    made, device = c_void_p(), c_int32()
    assert rt.aclrtSetDevice(0) == 100001
    assert rt.aclrtMalloc(byref(made), 8, 0) == 100001
    assert rt.aclrtCreateContext(byref(made), 0) == 100001
    assert "aclInit has not been called" in rt.message()
    assert rt.aclrtGetDevice(byref(device)) == 107002
    assert rt.ask("aclrtGetDeviceCount", c_uint32) == 1  # asking is allowed


@isolated()
def test_a_new_thread_has_no_context(rt: Runtime) -> None:
    rt.start()
    made = c_void_p()
    device = c_int32()
    calls = [
        lambda: rt.aclrtMalloc(byref(made), 8, 0),
        lambda: rt.aclrtCreateStream(byref(made)),
        lambda: rt.aclrtCreateEvent(byref(made)),
        lambda: rt.aclrtSynchronizeDevice(),
        lambda: rt.aclrtMallocHost(byref(made), 8),
        lambda: rt.aclrtGetDevice(byref(device)),
        lambda: rt.aclrtMemset(8, 8, 0, 8),
    ]
    for call in calls:
        assert on_thread(call) == 107002

    def with_device() -> int:
        rt.ok.aclrtSetDevice(0)
        return int(rt.aclrtMalloc(byref(made), 8, 0))

    assert on_thread(with_device) == 0


@isolated()
def test_messages_belong_to_a_thread_and_are_told_once(rt: Runtime) -> None:
    rt.start()
    made = c_void_p()
    assert rt.aclGetRecentErrMsg() is None
    assert rt.aclrtMalloc(byref(made), 0, 0) == 100000
    assert rt.aclrtSetDevice(99) == 107001
    assert on_thread(rt.aclGetRecentErrMsg) is None
    assert rt.message().splitlines() == ["aclrtSetDevice: no device 99; 1 device is visible", "aclrtMalloc: size is 0"]
    assert rt.aclGetRecentErrMsg() is None
    assert rt.aclrtPeekAtLastError(0) == 107001
    assert on_thread(lambda: rt.aclrtPeekAtLastError(0)) == 0
    assert [rt.aclrtGetLastError(0), rt.aclrtGetLastError(0)] == [107001, 0]


@isolated(ASCEND_EMULATOR_DEVICES="2")
def test_threads_share_a_devices_default_context(rt: Runtime) -> None:
    rt.start(1)
    context = rt.make("aclrtGetCurrentContext")

    def there() -> tuple[int, int]:
        rt.ok.aclrtSetDevice(1)
        return rt.make("aclrtGetCurrentContext"), rt.ask("aclrtGetDevice", c_int32)

    assert on_thread(there) == (context, 1)
    rt.ok.aclrtSetDevice(0)
    assert rt.make("aclrtGetCurrentContext") != context
    rt.ok.aclrtSetCurrentContext(context)
    assert rt.ask("aclrtGetDevice", c_int32) == 1


@isolated()
def test_setting_a_device_is_counted(rt: Runtime) -> None:
    rt.start()
    rt.ok.aclrtSetDevice(0)
    address = rt.malloc(8)
    rt.ok.aclrtResetDevice(0)
    rt.ok.aclrtFree(address)  # still there
    active, flags = c_int32(), c_uint32()
    rt.ok.aclrtGetPrimaryCtxState(0, byref(flags), byref(active))
    assert active.value == 1
    rt.ok.aclrtResetDevice(0)
    made = c_void_p()
    assert rt.aclrtMalloc(byref(made), 8, 0) == 107002
    assert rt.aclrtResetDevice(0) == 107002
    rt.ok.aclrtGetPrimaryCtxState(0, byref(flags), byref(active))
    assert active.value == 0
    rt.ok.aclrtSetDevice(0)
    rt.ok.aclrtSetDevice(0)
    rt.malloc(8)
    rt.ok.aclrtResetDeviceForce(0)
    assert rt.aclrtMalloc(byref(made), 8, 0) == 107002


@isolated()
def test_a_context_reset_by_another_thread(rt: Runtime) -> None:
    rt.start()
    on_thread(lambda: rt.aclrtResetDevice(0))
    made = c_void_p()
    assert rt.aclrtMalloc(byref(made), 8, 0) == 107002
    assert "destroyed by aclrtResetDevice" in rt.message()


@isolated()
def test_explicit_contexts(rt: Runtime) -> None:
    rt.start()
    default, stream = rt.make("aclrtGetCurrentContext"), rt.stream()
    context = rt.make("aclrtCreateContext", 0)
    assert rt.make("aclrtGetCurrentContext") == context  # it is current at once
    assert rt.aclrtSynchronizeStream(stream) == 107003
    assert rt.aclrtDestroyStream(stream) == 107003
    address = rt.malloc(8)
    assert rt.aclrtMemsetAsync(address, 8, 0, 8, stream) == 107003
    rt.ok.aclrtFree(address)
    assert rt.aclrtDestroyContext(default) == 107000
    assert "aclrtResetDevice" in rt.message()
    rt.ok.aclrtDestroyContext(context)
    made = c_void_p()
    assert rt.aclrtCreateStream(byref(made)) == 107002
    assert rt.aclrtDestroyContext(context) == 107017
    assert rt.aclrtSetCurrentContext(context) == 107017
    assert [line.split(":")[0] for line in rt.violations()] == ["double-destroy", "use-after-destroy"]
    rt.ok.aclrtSetCurrentContext(default)
    rt.ok.aclrtDestroyStream(stream)


@isolated()
def test_a_device_reset_finds_what_was_forgotten(rt: Runtime) -> None:
    rt.start()
    rt.stream()
    rt.make("aclrtCreateContext", 0)
    rt.ok.aclrtResetDevice(0)
    assert [line.split()[0] for line in rt.leaks()] == ["aclrtContext", "aclrtStream"]
    rt.ok.aclFinalize()
    assert len(rt.leaks()) == 2
    rt.ascendEmulatorClearLeaks()
    assert rt.leaks() == []


@isolated()
def test_device_ids_are_checked(rt: Runtime) -> None:
    rt.start()
    made = c_void_p()
    for device in (-1, 1, 1000):
        assert rt.aclrtSetDevice(device) == 107001
        assert rt.aclrtCreateContext(byref(made), device) == 107001
    assert rt.aclrtResetDevice(7) == 107001


@isolated(ASCEND_EMULATOR_DEVICES="8", ASCEND_RT_VISIBLE_DEVICES="2,5,5,6")
def test_visible_devices(rt: Runtime) -> None:
    assert rt.ask("aclrtGetDeviceCount", c_uint32) == 2  # stops at the first that does not ascend
    rt.start(1)
    assert rt.aclrtSetDevice(2) == 107001
    assert rt.ask("aclrtGetDevice", c_int32) == 1


@isolated(ASCEND_RT_VISIBLE_DEVICES="x")
def test_no_visible_devices(rt: Runtime) -> None:
    assert rt.ask("aclrtGetDeviceCount", c_uint32) == 0
    assert rt.aclrtGetSocName() is None
    rt.ok.aclInit(None)
    assert rt.aclrtSetDevice(0) == 107001


@isolated()
def test_a_forked_child_is_refused(rt: Runtime) -> None:
    rt.start()
    stream, address = rt.stream(), rt.malloc(8)
    rt.ok.aclrtMemsetAsync(address, 8, 0, 8, stream)
    rt.ok.aclrtSynchronizeStream(stream)
    child = os.fork()
    if child == 0:
        made = c_void_p()
        codes = [
            rt.aclrtMalloc(byref(made), 8, 0),
            rt.aclrtSynchronizeStream(stream),
            rt.aclrtFree(address),
            rt.aclInit(None),
            rt.aclrtSetDevice(0),
        ]
        os._exit(0 if codes == [507000] * 5 and "forked" in rt.message() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    rt.ok.aclrtFree(address)


@isolated()
def test_a_child_forked_before_init_is_fine(rt: Runtime) -> None:
    assert rt.ask("aclrtGetDeviceCount", c_uint32) == 1
    child = os.fork()
    if child == 0:
        rt.start()
        rt.malloc(8)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@isolated(signal=signal.SIGABRT, says="violation: double-free", ASCEND_EMULATOR_VIOLATIONS="abort")
def test_a_violation_can_end_the_process(rt: Runtime) -> None:
    rt.start()
    address = rt.malloc(8)
    rt.ok.aclrtFree(address)
    rt.aclrtFree(address)


def version(rt: Runtime) -> tuple[str, ...]:
    fields = [
        ("version", ctypes.c_char * 128),
        ("major", ctypes.c_char * 64),
        ("minor", ctypes.c_char * 64),
        ("release", ctypes.c_char * 64),
        ("patch", ctypes.c_char * 64),
        ("reserved", ctypes.c_char * 128),
    ]
    kind = type("Version", (ctypes.Structure,), {"_fields_": fields})
    asked: Any = kind()
    rt.ok.aclsysGetCANNVersion(0, byref(asked))
    return tuple(getattr(asked, name).decode() for name in ("version", "major", "minor", "release"))


@isolated()
def test_versions(rt: Runtime) -> None:
    assert version(rt) == ("8.5.0", "8", "5", "0")
    text, number = ctypes.create_string_buffer(128), c_int32()
    rt.ok.aclsysGetVersionStr(b"runtime", text)
    rt.ok.aclsysGetVersionNum(b"runtime", byref(number))
    assert (text.value, number.value) == (b"8.5.0", 80500000)
    assert rt.aclsysGetVersionStr(b"pizza", text) == 100000
    parts = [c_int32() for _ in range(3)]
    rt.ok.aclrtGetVersion(*map(byref, parts))
    assert parts[0].value == 1


@isolated(ASCEND_EMULATOR_CANN_VERSION="8.1.RC1")
def test_another_version(rt: Runtime) -> None:
    assert version(rt) == ("8.1.RC1", "8", "1", "RC1")


def chip(rt: Runtime) -> tuple[bytes, int, int]:
    return (
        rt.aclrtGetSocName(),
        rt.ask("aclGetCannAttribute", c_int32, 1),
        rt.ask("aclGetDeviceCapability", c_int64, 0, 0),
    )


@isolated()
def test_the_chip(rt: Runtime) -> None:
    assert chip(rt) == (b"Ascend910B2", 1, 24)
    attributes, count = ctypes.POINTER(c_int)(), c_size_t()
    rt.ok.aclGetCannAttributeList(byref(attributes), byref(count))
    assert attributes[: count.value] == [0, 1, 2]


@isolated(ASCEND_EMULATOR_CHIP="910A")
def test_the_chip_910a(rt: Runtime) -> None:
    assert chip(rt)[:2] == (b"Ascend910A", 0)


@isolated(ASCEND_EMULATOR_CHIP="310P")
def test_the_chip_310p(rt: Runtime) -> None:
    assert chip(rt)[:2] == (b"Ascend310P3", 0)
    rt.start()
    free, total = c_size_t(), c_size_t()
    rt.ok.aclrtGetMemInfo(0, byref(free), byref(total))  # DDR
    assert total.value > 0
    assert rt.aclrtSetStreamFailureMode(None, 0) == 207000


@isolated(
    says='ASCEND_EMULATOR_CHIP: chip="TPU" cannot be read',
    ASCEND_EMULATOR_CHIP="TPU",
    ASCEND_EMULATOR_MEMORY="2 pizzas",
    ASCEND_EMULATOR_FAULT="aclrtMalloc:x:1",
)
def test_settings_that_cannot_be_read(rt: Runtime) -> None:
    assert rt.aclrtGetSocName() == b"Ascend910B2"


@isolated()
def test_configure(rt: Runtime) -> None:
    rt.ok.ascendEmulatorConfigure(b"devices", b"3")
    rt.ok.ascendEmulatorConfigure(b"memory", b"4M")
    assert rt.ascendEmulatorConfigure(b"colour", b"red") == 100000
    assert rt.ascendEmulatorConfigure(b"memory", b"red") == 100000
    assert rt.ask("aclrtGetDeviceCount", c_uint32) == 3
    rt.start(2)
    free, total = c_size_t(), c_size_t()
    rt.ok.aclrtGetMemInfo(1, byref(free), byref(total))
    assert total.value == 4 << 20
    assert rt.ascendEmulatorConfigure(b"devices", b"4") == 100002
    rt.ascendEmulatorReset()
    assert rt.ask("aclrtGetDeviceCount", c_uint32) == 1
    rt.start()


@isolated()
def test_options(rt: Runtime) -> None:
    rt.start()
    value = c_int64()
    assert rt.ask("aclrtGetSysParamOpt", c_int64, 0) == 0
    rt.ok.aclrtSetSysParamOpt(0, 1)
    assert rt.ask("aclrtGetSysParamOpt", c_int64, 0) == 1
    assert rt.aclrtCtxGetSysParamOpt(0, byref(value)) == 107021
    rt.ok.aclrtCtxSetSysParamOpt(0, 1)
    assert rt.ask("aclrtCtxGetSysParamOpt", c_int64, 0) == 1
    assert rt.aclrtSetSysParamOpt(9, 1) == 100000
    assert rt.aclrtSetSysParamOpt(1, 2) == 100000


@isolated()
def test_halves_and_sizes(rt: Runtime) -> None:
    import numpy as np

    every = np.arange(1 << 16, dtype=np.uint16)
    halves = every.view(np.float16).astype(np.float32)
    for code, value in zip(every[::7].tolist(), halves[::7].tolist()):
        if value == value:
            assert rt.aclFloat16ToFloat(code) == value
            assert rt.aclFloatToFloat16(value) == code
    rng = np.random.default_rng(0)
    floats = (rng.standard_normal(2000) * 10.0 ** rng.integers(-9, 6, 2000)).astype(np.float32)
    for value in floats.tolist():
        with np.errstate(over="ignore"):
            assert rt.aclFloatToFloat16(value) == int(np.float16(np.float32(value)).view(np.uint16))
    sizes = {0: 4, 1: 2, 2: 1, 3: 4, 4: 1, 6: 2, 7: 2, 8: 4, 9: 8, 10: 8, 11: 8, 12: 1, 16: 8, 17: 16, 27: 2, -1: 0}
    assert {code: rt.aclDataTypeSize(code) for code in sizes} == sizes


@isolated()
def test_both_runtime_libraries_share_one_device(rt: Runtime) -> None:
    other = Runtime("ascendcl")
    rt.start()
    address = other.malloc(8)
    rt.upload(address, b"together")
    assert other.download(address, 8) == b"together"
    assert other.aclInit(None) == 100002
    assert rt.ascendEmulatorFunctionCalls(b"aclInit") == 2
