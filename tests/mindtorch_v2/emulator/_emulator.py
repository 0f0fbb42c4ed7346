"""The emulator's libraries through plain ctypes, with the prototypes of the functions the tests use.

Invariant: nothing here goes through our backend; a prototype is written from the vendor's documents.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from ctypes import (
    CFUNCTYPE,
    POINTER,
    byref,
    c_bool,
    c_char_p,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
CALLBACK = CFUNCTYPE(None, c_void_p)

H2H, H2D, D2H, D2D, DEFAULT = range(5)

_P: dict[str, list[Any]] = {
    "aclInit": [c_char_p],
    "aclFinalize": [],
    "aclFinalizeReference": [POINTER(c_uint64)],
    "aclrtPeekAtLastError": [c_int],
    "aclrtGetLastError": [c_int],
    "aclrtGetVersion": [POINTER(c_int32)] * 3,
    "aclsysGetCANNVersion": [c_int, c_void_p],
    "aclsysGetVersionStr": [c_char_p, c_char_p],
    "aclsysGetVersionNum": [c_char_p, POINTER(c_int32)],
    "aclGetCannAttribute": [c_int, POINTER(c_int32)],
    "aclGetCannAttributeList": [POINTER(POINTER(c_int)), POINTER(c_size_t)],
    "aclGetDeviceCapability": [c_uint32, c_int, POINTER(c_int64)],
    "aclrtSetSysParamOpt": [c_int, c_int64],
    "aclrtGetSysParamOpt": [c_int, POINTER(c_int64)],
    "aclrtCtxSetSysParamOpt": [c_int, c_int64],
    "aclrtCtxGetSysParamOpt": [c_int, POINTER(c_int64)],
    "aclrtSetDevice": [c_int32],
    "aclrtResetDevice": [c_int32],
    "aclrtResetDeviceForce": [c_int32],
    "aclrtGetDevice": [POINTER(c_int32)],
    "aclrtGetDeviceCount": [POINTER(c_uint32)],
    "aclrtGetRunMode": [POINTER(c_int)],
    "aclrtSynchronizeDevice": [],
    "aclrtSynchronizeDeviceWithTimeout": [c_int32],
    "aclrtQueryDeviceStatus": [c_int32, POINTER(c_int)],
    "aclrtDeviceTaskAbort": [c_int32, c_uint32],
    "aclrtGetPrimaryCtxState": [c_int32, POINTER(c_uint32), POINTER(c_int32)],
    "aclrtCreateContext": [POINTER(c_void_p), c_int32],
    "aclrtDestroyContext": [c_void_p],
    "aclrtSetCurrentContext": [c_void_p],
    "aclrtGetCurrentContext": [POINTER(c_void_p)],
    "aclrtCtxGetCurrentDefaultStream": [POINTER(c_void_p)],
    "aclrtDeviceCanAccessPeer": [POINTER(c_int32), c_int32, c_int32],
    "aclrtDeviceEnablePeerAccess": [c_int32, c_uint32],
    "aclrtDeviceDisablePeerAccess": [c_int32],
    "aclrtDevicePeerAccessStatus": [c_int32, c_int32, POINTER(c_int32)],
    "aclrtCreateStream": [POINTER(c_void_p)],
    "aclrtCreateStreamWithConfig": [POINTER(c_void_p), c_uint32, c_uint32],
    "aclrtSetStreamConfigOpt": [c_void_p, c_int, c_void_p, c_size_t],
    "aclrtCreateStreamV2": [POINTER(c_void_p), c_void_p],
    "aclrtDestroyStreamConfigHandle": [c_void_p],
    "aclrtDestroyStream": [c_void_p],
    "aclrtDestroyStreamForce": [c_void_p],
    "aclrtSynchronizeStream": [c_void_p],
    "aclrtSynchronizeStreamWithTimeout": [c_void_p, c_int32],
    "aclrtStreamQuery": [c_void_p, POINTER(c_int)],
    "aclrtStreamWaitEvent": [c_void_p, c_void_p],
    "aclrtStreamGetId": [c_void_p, POINTER(c_int32)],
    "aclrtSetStreamFailureMode": [c_void_p, c_uint64],
    "aclrtSetStreamOverflowSwitch": [c_void_p, c_uint32],
    "aclrtGetStreamOverflowSwitch": [c_void_p, POINTER(c_uint32)],
    "aclrtStreamAbort": [c_void_p],
    "aclrtCreateEvent": [POINTER(c_void_p)],
    "aclrtCreateEventWithFlag": [POINTER(c_void_p), c_uint32],
    "aclrtCreateEventExWithFlag": [POINTER(c_void_p), c_uint32],
    "aclrtDestroyEvent": [c_void_p],
    "aclrtRecordEvent": [c_void_p, c_void_p],
    "aclrtResetEvent": [c_void_p, c_void_p],
    "aclrtQueryEvent": [c_void_p, POINTER(c_int)],
    "aclrtQueryEventStatus": [c_void_p, POINTER(c_int)],
    "aclrtQueryEventWaitStatus": [c_void_p, POINTER(c_int)],
    "aclrtSynchronizeEvent": [c_void_p],
    "aclrtSynchronizeEventWithTimeout": [c_void_p, c_int32],
    "aclrtEventElapsedTime": [POINTER(c_float), c_void_p, c_void_p],
    "aclrtEventGetTimestamp": [c_void_p, POINTER(c_uint64)],
    "aclrtMalloc": [POINTER(c_void_p), c_size_t, c_int],
    "aclrtMallocAlign32": [POINTER(c_void_p), c_size_t, c_int],
    "aclrtMallocCached": [POINTER(c_void_p), c_size_t, c_int],
    "aclrtFree": [c_void_p],
    "aclrtFreeWithDevSync": [c_void_p],
    "aclrtMallocHost": [POINTER(c_void_p), c_size_t],
    "aclrtFreeHost": [c_void_p],
    "aclrtHostRegister": [c_void_p, c_uint64, c_int, POINTER(c_void_p)],
    "aclrtHostUnregister": [c_void_p],
    "aclrtPointerGetAttributes": [c_void_p, c_void_p],
    "aclrtMemcpy": [c_void_p, c_size_t, c_void_p, c_size_t, c_int],
    "aclrtMemcpyAsync": [c_void_p, c_size_t, c_void_p, c_size_t, c_int, c_void_p],
    "aclrtMemcpy2d": [c_void_p, c_size_t, c_void_p, c_size_t, c_size_t, c_size_t, c_int],
    "aclrtMemcpy2dAsync": [c_void_p, c_size_t, c_void_p, c_size_t, c_size_t, c_size_t, c_int, c_void_p],
    "aclrtMemset": [c_void_p, c_size_t, c_int32, c_size_t],
    "aclrtMemsetAsync": [c_void_p, c_size_t, c_int32, c_size_t, c_void_p],
    "aclrtGetMemInfo": [c_int, POINTER(c_size_t), POINTER(c_size_t)],
    "aclrtReserveMemAddress": [POINTER(c_void_p), c_size_t, c_size_t, c_void_p, c_uint64],
    "aclrtReleaseMemAddress": [c_void_p],
    "aclrtMallocPhysical": [POINTER(c_void_p), c_size_t, c_void_p, c_uint64],
    "aclrtFreePhysical": [c_void_p],
    "aclrtMapMem": [c_void_p, c_size_t, c_size_t, c_void_p, c_uint64],
    "aclrtUnmapMem": [c_void_p],
    "aclrtMemGetAllocationGranularity": [c_void_p, c_int, POINTER(c_size_t)],
    "aclrtIpcMemGetExportKey": [c_void_p, c_size_t, c_char_p, c_size_t, c_uint64],
    "aclrtSubscribeReport": [c_uint64, c_void_p],
    "aclrtUnSubscribeReport": [c_uint64, c_void_p],
    "aclrtProcessReport": [c_int32],
    "aclrtLaunchCallback": [CALLBACK, c_void_p, c_int, c_void_p],
    "aclrtLaunchHostFunc": [c_void_p, CALLBACK, c_void_p],
    "aclrtSubscribeHostFunc": [c_uint64, c_void_p],
    "aclrtProcessHostFunc": [c_int32],
    "aclrtUnSubscribeHostFunc": [c_uint64, c_void_p],
    "aclrtSetExceptionInfoCallback": [CALLBACK],
    "aclrtSetDeviceSatMode": [c_int],
    "aclrtGetDeviceSatMode": [POINTER(c_int)],
    "aclrtGetOverflowStatus": [c_void_p, c_size_t, c_void_p],
    "aclrtResetOverflowStatus": [c_void_p],
    "aclmdlRICaptureBegin": [c_void_p, c_int],
    "aclmdlRICaptureGetInfo": [c_void_p, POINTER(c_int), POINTER(c_void_p)],
    "aclmdlRICaptureEnd": [c_void_p, POINTER(c_void_p)],
    "aclmdlRICaptureThreadExchangeMode": [POINTER(c_int)],
    "aclmdlRICaptureTaskGrpBegin": [c_void_p],
    "aclmdlRICaptureTaskGrpEnd": [c_void_p, POINTER(c_void_p)],
    "aclmdlRICaptureTaskUpdateBegin": [c_void_p, c_void_p],
    "aclmdlRICaptureTaskUpdateEnd": [c_void_p],
    "aclmdlRIExecuteAsync": [c_void_p, c_void_p],
    "aclmdlRIExecute": [c_void_p, c_int32],
    "aclmdlRIDestroy": [c_void_p],
    "aclmdlRIDebugPrint": [c_void_p],
    "ascendEmulatorSetFault": [c_char_p],
    "ascendEmulatorLoseDevice": [c_int],
    "ascendEmulatorRestoreDevice": [c_int],
    "ascendEmulatorSlowStream": [c_void_p, c_uint32],
    "ascendEmulatorConfigure": [c_char_p, c_char_p],
    "ascendEmulatorDumpMemory": [c_uint64, c_uint64, c_void_p],
}
_OTHER: dict[str, tuple[Any, list[Any]]] = {
    "aclGetRecentErrMsg": (c_char_p, []),
    "aclrtGetSocName": (c_char_p, []),
    "aclDataTypeSize": (c_size_t, [c_int]),
    "aclFloat16ToFloat": (c_float, [ctypes.c_uint16]),
    "aclFloatToFloat16": (ctypes.c_uint16, [c_float]),
    "aclrtCreateStreamConfigHandle": (c_void_p, []),
    "aclrtGetErrorCodeFromExceptionInfo": (c_uint32, [c_void_p]),
    "ascendEmulatorClearFaults": (None, []),
    "ascendEmulatorCallCount": (c_uint64, []),
    "ascendEmulatorFunctionCalls": (c_uint64, [c_char_p]),
    "ascendEmulatorKernelRuns": (c_uint64, [c_char_p]),
    "ascendEmulatorTotalKernelRuns": (c_uint64, []),
    "ascendEmulatorResetCounters": (None, []),
    "ascendEmulatorViolations": (c_uint64, [c_char_p, c_size_t]),
    "ascendEmulatorClearViolations": (None, []),
    "ascendEmulatorLeaks": (c_uint64, [c_char_p, c_size_t]),
    "ascendEmulatorClearLeaks": (None, []),
    "ascendEmulatorLiveHandles": (c_uint64, []),
    "ascendEmulatorLiveBytes": (c_uint64, [c_int]),
    "ascendEmulatorQueueDepth": (c_int64, [c_void_p]),
    "ascendEmulatorSetDelaySeed": (None, [c_uint64]),
    "ascendEmulatorSetNoop": (None, [c_bool]),
    "ascendEmulatorReset": (None, []),
}


@functools.cache
def folder() -> Path:
    """Where the libraries are: MINDTORCH_EMULATOR_LIB (a sanitised build, say), the source tree, or the package."""
    given = os.environ.get("MINDTORCH_EMULATOR_LIB")
    if given:
        return Path(given)
    source = ROOT / "src" / "mindtorch_v2" / "_emulator" / "lib64"
    if (source / "libascend_emulator.so").exists():
        return source
    import mindtorch_v2

    return Path(mindtorch_v2.__file__).parent / "_emulator" / "lib64"


@functools.cache
def load(name: str) -> ctypes.CDLL:
    """A library by its name without `lib` and `.so`; every function this file knows and it exports is typed."""
    library = ctypes.CDLL(str(folder() / f"lib{name}.so"))
    known = {function: (c_int32, arguments) for function, arguments in _P.items()} | _OTHER
    for function, (result, arguments) in known.items():
        symbol = getattr(library, function, None)
        if symbol is not None:
            symbol.restype, symbol.argtypes = result, arguments
    return library


class Runtime:
    """The runtime library; `rt.aclrtX(...)` answers the code, `rt.ok.aclrtX(...)` insists on 0."""

    def __init__(self, name: str = "acl_rt") -> None:
        self._runtime = load(name)
        self._control = load("ascend_emulator")
        self.ok = _Insisting(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._control if name.startswith("ascendEmulator") else self._runtime, name)

    def start(self, device: int = 0) -> None:
        self.ok.aclInit(None)
        self.ok.aclrtSetDevice(device)

    def message(self) -> str:
        text = self.aclGetRecentErrMsg()
        return text.decode() if text else ""

    def make(self, function: str, *arguments: Any) -> int:
        """The handle or address a function gives out through its first argument."""
        made = c_void_p()
        getattr(self.ok, function)(byref(made), *arguments)
        assert made.value
        return made.value

    def ask(self, function: str, kind: Any, *arguments: Any) -> Any:
        """The value a function gives out through its last argument."""
        value = kind()
        getattr(self.ok, function)(*arguments, byref(value))
        return value.value

    def malloc(self, size: int) -> int:
        return self.make("aclrtMalloc", size, 0)

    def stream(self) -> int:
        return self.make("aclrtCreateStream")

    def upload(self, address: int, data: bytes) -> None:
        self.ok.aclrtMemcpy(address, len(data), data, len(data), H2D)

    def download(self, address: int, size: int) -> bytes:
        """With aclrtMemcpy, which waits for no stream."""
        out = ctypes.create_string_buffer(size)
        self.ok.aclrtMemcpy(out, size, address, size, D2H)
        return out.raw

    def dump(self, address: int, size: int) -> bytes:
        out = ctypes.create_string_buffer(size)
        assert self.ascendEmulatorDumpMemory(address, size, out) == 0
        return out.raw

    def _lines(self, name: str) -> list[str]:
        buffer = ctypes.create_string_buffer(1 << 16)
        count = getattr(self, name)(buffer, len(buffer))
        lines = buffer.value.decode().splitlines()
        assert len(lines) == count or len(buffer.value) == len(buffer) - 1
        return lines

    def violations(self, clear: bool = True) -> list[str]:
        lines = self._lines("ascendEmulatorViolations")
        if clear:
            self.ascendEmulatorClearViolations()
        return lines

    def leaks(self) -> list[str]:
        return self._lines("ascendEmulatorLeaks")


class _Insisting:
    def __init__(self, runtime: Runtime) -> None:
        self._of = runtime

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._of, name)

        def call(*arguments: Any) -> None:
            code = function(*arguments)
            assert code == 0, f"{name} answered {code}: {self._of.message()}"

        return call


Body = Callable[[Runtime], None]


def isolated(signal: int = 0, says: str = "", **environment: str) -> Callable[[Body], Callable[[], None]]:
    """A test that runs in a process of its own, with settings from the environment, and must leave no violation unread.

    `signal`: the process must die of it. `says`: stderr must contain it.
    """

    def wrap(body: Body) -> Callable[[], None]:
        @functools.wraps(body)
        def test() -> None:
            kept = {k: v for k, v in os.environ.items() if not k.startswith(("ASCEND_EMULATOR", "ASCEND_RT"))}
            command = [sys.executable, "-m", __name__, body.__module__, body.__name__]
            settings = kept | environment
            done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=120)
            assert done.returncode == -signal, done.stdout + done.stderr
            assert says in done.stderr, done.stderr

        del test.__wrapped__  # pytest would ask for a fixture `rt`
        test.body = body  # type: ignore[attr-defined]
        return test

    return wrap


def main() -> None:
    module, name = sys.argv[1:]
    runtime = Runtime()
    getattr(importlib.import_module(module), name).body(runtime)
    assert runtime.violations() == []


if __name__ == "__main__":
    main()
