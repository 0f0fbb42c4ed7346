"""Loads the vendor's libraries with ctypes and gives their functions explicit types.

Invariant: a function is never called without declared argument and result types. Functions that may wait for the
device release the interpreter's lock; functions that only touch host objects keep it, which is cheaper.
"""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path
from typing import Any

from . import installation
from .installation import Installation

_I = ctypes.c_int32
_U = ctypes.c_uint32
_L = ctypes.c_int64
_UL = ctypes.c_uint64
_P = ctypes.c_void_p
_Z = ctypes.c_size_t
_S = ctypes.c_char_p
_STATUS = ctypes.c_int32

# name -> (result, arguments, may wait). Pointers to results are void pointers: byref() of any type fits.
RUNTIME: dict[str, tuple[Any, tuple[Any, ...], bool]] = {
    "aclInit": (_STATUS, (_S,), True),
    "aclFinalize": (_STATUS, (), True),
    "aclGetRecentErrMsg": (_S, (), False),
    "aclrtGetVersion": (_STATUS, (_P, _P, _P), False),
    "aclsysGetCANNVersion": (_STATUS, (_I, _P), False),
    "aclrtGetSocName": (_S, (), False),
    "aclGetDeviceCapability": (_STATUS, (_U, _I, _P), False),
    "aclrtGetDeviceUtilizationRate": (_STATUS, (_I, _P), False),
    "aclrtSetDevice": (_STATUS, (_I,), True),
    "aclrtResetDevice": (_STATUS, (_I,), True),
    "aclrtResetDeviceForce": (_STATUS, (_I,), True),
    "aclrtGetDevice": (_STATUS, (_P,), False),
    "aclrtGetDeviceCount": (_STATUS, (_P,), True),
    "aclrtSynchronizeDevice": (_STATUS, (), True),
    "aclrtSynchronizeDeviceWithTimeout": (_STATUS, (_I,), True),
    "aclrtSetCurrentContext": (_STATUS, (_P,), False),
    "aclrtGetCurrentContext": (_STATUS, (_P,), False),
    "aclrtSetSysParamOpt": (_STATUS, (_I, _L), False),
    "aclrtGetSysParamOpt": (_STATUS, (_I, _P), False),
    "aclrtCtxSetSysParamOpt": (_STATUS, (_I, _L), False),
    "aclrtCreateStream": (_STATUS, (_P,), True),
    "aclrtCreateStreamWithConfig": (_STATUS, (_P, _U, _U), True),
    "aclrtDestroyStream": (_STATUS, (_P,), True),
    "aclrtDestroyStreamForce": (_STATUS, (_P,), True),
    "aclrtSynchronizeStream": (_STATUS, (_P,), True),
    "aclrtSynchronizeStreamWithTimeout": (_STATUS, (_P, _I), True),
    "aclrtStreamQuery": (_STATUS, (_P, _P), False),
    "aclrtStreamWaitEvent": (_STATUS, (_P, _P), True),
    "aclrtStreamGetId": (_STATUS, (_P, _P), False),
    "aclrtCreateEventWithFlag": (_STATUS, (_P, _U), True),
    "aclrtCreateEventExWithFlag": (_STATUS, (_P, _U), True),
    "aclrtDestroyEvent": (_STATUS, (_P,), True),
    "aclrtRecordEvent": (_STATUS, (_P, _P), True),
    "aclrtQueryEventStatus": (_STATUS, (_P, _P), False),
    "aclrtSynchronizeEvent": (_STATUS, (_P,), True),
    "aclrtSynchronizeEventWithTimeout": (_STATUS, (_P, _I), True),
    "aclrtEventElapsedTime": (_STATUS, (_P, _P, _P), True),
    "aclrtMalloc": (_STATUS, (_P, _Z, _I), True),
    "aclrtMallocAlign32": (_STATUS, (_P, _Z, _I), True),
    "aclrtFree": (_STATUS, (_P,), True),
    "aclrtMallocHost": (_STATUS, (_P, _Z), True),
    "aclrtFreeHost": (_STATUS, (_P,), True),
    "aclrtPointerGetAttributes": (_STATUS, (_P, _P), False),
    "aclrtMemcpy": (_STATUS, (_P, _Z, _P, _Z, _I), True),
    "aclrtMemcpyAsync": (_STATUS, (_P, _Z, _P, _Z, _I, _P), True),
    "aclrtMemset": (_STATUS, (_P, _Z, _I, _Z), True),
    "aclrtMemsetAsync": (_STATUS, (_P, _Z, _I, _Z, _P), True),
    "aclrtGetMemInfo": (_STATUS, (_I, _P, _P), True),
    "aclrtDeviceCanAccessPeer": (_STATUS, (_P, _I, _I), False),
    "aclrtDeviceEnablePeerAccess": (_STATUS, (_I, _U), True),
    "aclrtDeviceDisablePeerAccess": (_STATUS, (_I,), True),
    "aclrtSubscribeReport": (_STATUS, (_UL, _P), True),
    "aclrtUnSubscribeReport": (_STATUS, (_UL, _P), True),
    "aclrtProcessReport": (_STATUS, (_I,), True),
    "aclrtLaunchCallback": (_STATUS, (_P, _P, _I, _P), True),
    "aclrtResetEvent": (_STATUS, (_P, _P), True),
    "aclmdlRICaptureBegin": (_STATUS, (_P, _I), True),
    "aclmdlRICaptureGetInfo": (_STATUS, (_P, _P, _P), False),
    "aclmdlRICaptureEnd": (_STATUS, (_P, _P), True),
    "aclmdlRICaptureTaskGrpBegin": (_STATUS, (_P,), True),
    "aclmdlRICaptureTaskGrpEnd": (_STATUS, (_P, _P), True),
    "aclmdlRICaptureTaskUpdateBegin": (_STATUS, (_P, _P), True),
    "aclmdlRICaptureTaskUpdateEnd": (_STATUS, (_P,), True),
    "aclmdlRIExecuteAsync": (_STATUS, (_P, _P), True),
    "aclmdlRIDestroy": (_STATUS, (_P,), True),
    "aclmdlRIDebugPrint": (_STATUS, (_P,), True),
}

# Objects and executors: host memory only, except for the two that may have to wait for a run to end.
OBJECTS: dict[str, tuple[Any, tuple[Any, ...], bool]] = {
    "aclCreateTensor": (_P, (_P, _UL, _I, _P, _L, _I, _P, _UL, _P), False),
    "aclInitTensor": (_STATUS, (_P, _P, _UL, _I, _P, _L, _I, _P, _UL, _P), False),
    "aclCreateScalar": (_P, (_P, _I), False),
    "aclCreateIntArray": (_P, (_P, _UL), False),
    "aclCreateFloatArray": (_P, (_P, _UL), False),
    "aclCreateBoolArray": (_P, (_P, _UL), False),
    "aclCreateTensorList": (_P, (_P, _UL), False),
    "aclCreateScalarList": (_P, (_P, _UL), False),
    "aclDestroyTensor": (_STATUS, (_P,), False),
    "aclDestroyScalar": (_STATUS, (_P,), False),
    "aclDestroyIntArray": (_STATUS, (_P,), False),
    "aclDestroyFloatArray": (_STATUS, (_P,), False),
    "aclDestroyBoolArray": (_STATUS, (_P,), False),
    "aclDestroyTensorList": (_STATUS, (_P,), False),
    "aclDestroyScalarList": (_STATUS, (_P,), False),
    "aclGetViewShape": (_STATUS, (_P, _P, _P), False),
    "aclGetStorageShape": (_STATUS, (_P, _P, _P), False),
    "aclGetViewStrides": (_STATUS, (_P, _P, _P), False),
    "aclGetViewOffset": (_STATUS, (_P, _P), False),
    "aclGetFormat": (_STATUS, (_P, _P), False),
    "aclGetDataType": (_STATUS, (_P, _P), False),
    "aclSetRawTensorAddr": (_STATUS, (_P, _P), False),
    "aclGetRawTensorAddr": (_STATUS, (_P, _P), False),
    "aclSetAclOpExecutorRepeatable": (_STATUS, (_P,), False),
    "aclDestroyAclOpExecutor": (_STATUS, (_P,), False),
    "aclSetInputTensorAddr": (_STATUS, (_P, _Z, _P, _P), False),
    "aclSetOutputTensorAddr": (_STATUS, (_P, _Z, _P, _P), False),
    "aclSetTensorAddr": (_STATUS, (_P, _Z, _P, _P), False),
    "aclnnInit": (_STATUS, (_S,), True),
    "aclnnFinalize": (_STATUS, (), True),
}

# Present in newer versions only: a program may not depend on them.
OPTIONAL = (
    "aclsysGetCANNVersion",
    "aclrtMallocAlign32",
    "aclGetDeviceCapability",
    "aclrtResetEvent",
    "aclrtGetDeviceUtilizationRate",
    *(name for name in RUNTIME if name.startswith("aclmdlRI")),
)

SOURCE_IT = "source {home}/set_env.sh in this shell, so that the libraries it depends on are found"


class Acl:
    """The loaded libraries. A function of the tables above is an attribute, made when first asked for."""

    def __init__(self, where: Installation) -> None:
        self.where = where
        assert where.runtime is not None and where.nnopbase is not None
        self.emulator: Any = None
        if where.kind == "emulator":
            self.emulator = _open(where.home / installation.EMULATOR_CORE, where)
        self.runtime = _open(where.runtime, where)
        self.nnopbase = _open(where.nnopbase, where)
        # Opened as the search for a symbol reaches them: most programs need one or two of them.
        self._unopened = list(where.operators)
        self._operators: list[tuple[Path, Any]] = []
        self._symbols: dict[str, int | None] = {}
        self._functions: dict[str, Any] = {}
        self._lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        if name not in RUNTIME and name not in OBJECTS:
            raise AttributeError(f"'{name}' is not in the tables of acl_loader; see Acl.prototype for operators")
        function = self.fn(name)
        self.__dict__[name] = function
        return function

    def fn(self, name: str) -> Any:
        """A runtime or object function with its types; a library that lacks it is named."""
        found = self._functions.get(name)
        if found is None:
            result, arguments, waits = RUNTIME[name] if name in RUNTIME else OBJECTS[name]
            library = self.runtime if name in RUNTIME else self.nnopbase
            address = _address(library, name)
            if address is None:
                raise RuntimeError(f"{name} is missing in {library._name}: {_advice(self.where)}")
            found = _function(address, result, arguments, waits)
            self._functions[name] = found
        return found

    def has(self, name: str) -> bool:
        """Whether a runtime or object function exists in this version."""
        return _address(self.runtime if name in RUNTIME else self.nnopbase, name) is not None

    def symbol(self, name: str) -> int | None:
        """The address of an operator function, from the first operator library that has it."""
        if name in self._symbols:
            return self._symbols[name]
        with self._lock:
            address = None
            for _, library in self._operators:
                address = _address(library, name)
                if address is not None:
                    break
            while address is None and self._unopened:
                path = self._unopened[0]
                library = _open(path, self.where)
                self._operators.append((path, library))
                del self._unopened[0]
                address = _address(library, name)
            self._symbols[name] = address
            return address

    def prototype(self, name: str, restype: Any, argtypes: tuple[Any, ...], blocking: bool) -> Any:
        """An operator function with its types; one that no library has is named."""
        address = self.symbol(name)
        if address is None:
            libraries = ", ".join(p.name for p in self.where.operators)
            raise RuntimeError(
                f"{name} is missing: none of {libraries} in {self.where.home} has it; {_advice(self.where)}"
            )
        return _function(address, restype, argtypes, blocking)


def _advice(where: Installation) -> str:
    if where.kind == "emulator":
        return "the emulator does not offer this function"
    return "install a CANN version that has it (python -m mindtorch_v2 doctor lists what is missing)"


def _open(path: Path, where: Installation) -> Any:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        hint = _why(path, str(error), where)
        raise RuntimeError(f"{path} cannot be loaded: {error}; {hint}") from None


def _why(path: Path, text: str, where: Installation) -> str:
    if "invalid ELF header" in text or "file too short" in text:
        return "the file is damaged: install the package again"
    if "wrong ELF class" in text or "cannot open shared object file: Exec format" in text or "ELF file" in text:
        return f"it was built for another machine than {installation.architecture()}: install the package for this one"
    if where.kind == "emulator":
        return "build the package again"
    if "libascend_hal" in text or "libdrv" in text:
        return "the device driver is missing or not on LD_LIBRARY_PATH: install it or add its lib64/driver folder"
    return SOURCE_IT.format(home=where.home)


def _address(library: Any, name: str) -> int | None:
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


def _function(address: int, result: Any, arguments: tuple[Any, ...], waits: bool) -> Any:
    kind = ctypes.CFUNCTYPE if waits else ctypes.PYFUNCTYPE
    return kind(result, *arguments)(address)


class Loaded:
    """The one set of libraries of this process."""

    acl: Acl | None = None
    lock = threading.Lock()


def ensure_acl() -> Acl:
    """The vendor's libraries, loaded once; where they cannot be, an error names what is missing and what to do."""
    acl = Loaded.acl
    if acl is None:
        with Loaded.lock:
            acl = Loaded.acl
            if acl is None:
                acl = Acl(_complete(installation.search()))
                Loaded.acl = acl
    return acl


def loaded() -> Acl | None:
    """The libraries if they are loaded already."""
    return Loaded.acl


def _complete(found: installation.Search) -> Installation:
    where = found.found
    if where is None:
        raise RuntimeError(f"no NPU can be used: {nothing_found(found)}")
    missing = where.missing()
    if missing:
        raise RuntimeError(
            f"the {where.kind} libraries in {where.home} (from {where.source}) are incomplete: missing "
            f"{', '.join(missing)}; install the package again or name another home in ASCEND_HOME_PATH"
        )
    return where


def nothing_found(found: installation.Search) -> str:
    """Why there is no installation, and the next thing to do."""
    if found.mode == "off":
        return "MINDTORCH_NPU=off switches it off; unset it"
    looked = "; ".join(f"{place}: {what}" for place, what in found.looked)
    if found.mode == "emulator":
        return f"the emulator is not built ({looked}); build the package again"
    if os.environ.get("ASCEND_HOME_PATH") or os.environ.get("ASCEND_TOOLKIT_HOME"):
        return f"{looked}; source set_env.sh of the CANN installation you want"
    return (
        "no CANN installation was found; install CANN and source its set_env.sh, or use the emulator with "
        "MINDTORCH_NPU=emulator or torch.npu.use_emulator()"
    )
