"""The vendor's collectives: `libhccl.so` by ctypes, its numbers for dtypes and reductions, and communicators.

Invariant: a function is never called without declared types, nor without its communicator's device current.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

from ... import _dtype as _t
from . import acl_loader, errors, installation, runtime

__all__ = ["Communicator", "DTYPES", "Message", "REDUCED", "REDUCTIONS", "available", "counts", "root_info"]

_I = ctypes.c_int32
_U = ctypes.c_uint32
_UL = ctypes.c_uint64
_P = ctypes.c_void_p

LIBRARY = "libhccl.so"

# name -> arguments; all but the text of a code answer with a code. What joins or leaves waits for other processes.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "HcclGetRootInfo": (_P,),
    "HcclCommInitRootInfo": (_U, _P, _U, _P),
    "HcclCommDestroy": (_P,),
    "HcclGetCommAsyncError": (_P, _P),
    "HcclGetErrorString": (_I,),
    "HcclAllReduce": (_P, _P, _UL, _I, _I, _P, _P),
    "HcclBroadcast": (_P, _UL, _I, _U, _P, _P),
    "HcclReduce": (_P, _P, _UL, _I, _I, _U, _P, _P),
    "HcclReduceScatter": (_P, _P, _UL, _I, _I, _P, _P),
    "HcclReduceScatterV": (_P, _P, _P, _P, _UL, _I, _I, _P, _P),
    "HcclAllGather": (_P, _P, _UL, _I, _P, _P),
    "HcclAllGatherV": (_P, _UL, _P, _P, _P, _I, _P, _P),
    "HcclScatter": (_P, _P, _UL, _I, _U, _P, _P),
    "HcclSend": (_P, _UL, _I, _U, _P, _P),
    "HcclRecv": (_P, _UL, _I, _U, _P, _P),
    "HcclAlltoAll": (_P, _UL, _I, _P, _UL, _I, _P, _P),
    "HcclAlltoAllV": (_P, _P, _P, _I, _P, _P, _P, _I, _P, _P),
    "HcclBatchSendRecv": (_P, _U, _P, _P),
    "HcclBarrier": (_P, _P),
}

# HcclDataType. There is no boolean: its bytes travel as they are, and so do those of eight-bit floats, which only newer
# versions know.
DTYPES: dict[Any, int] = {
    _t.int8: 0,
    _t.int16: 1,
    _t.int32: 2,
    _t.float16: 3,
    _t.float32: 4,
    _t.int64: 5,
    _t.uint64: 6,
    _t.uint8: 7,
    _t.bool: 7,
    _t.float8_e4m3fn: 7,
    _t.float8_e5m2: 7,
    _t.uint16: 8,
    _t.uint32: 9,
    _t.float64: 10,
    _t.bfloat16: 11,
}
# HcclReduceOp, and the dtypes that can be reduced; products exclude two of them.
REDUCTIONS = {"SUM": 0, "PRODUCT": 1, "MAX": 2, "MIN": 3}
REDUCED = (_t.int8, _t.int16, _t.int32, _t.int64, _t.float16, _t.float32, _t.bfloat16)
NO_PRODUCT = (_t.int16, _t.bfloat16)

_ROOT_BYTES = 4108


class Message(ctypes.Structure):
    """HcclSendRecvItem: `kind` is 0 for sending and 1 for receiving."""

    _fields_ = [("kind", _I), ("buffer", _P), ("count", _UL), ("dtype", _I), ("peer", _U)]


def counts(values: list[int]) -> Any:
    """Numbers as the functions for uneven parts take them."""
    return (_UL * len(values))(*values)


class _Loaded:
    """The library of this process, and its functions."""

    library: Any = None
    lock = threading.Lock()
    functions: dict[str, Any] = {}
    # What stands in for a collective while somebody watches.
    around: Any = None


def _path() -> Path | None:
    where = installation.search().found
    folders = () if where is None else where.folders
    return next((folder / LIBRARY for folder in folders if (folder / LIBRARY).is_file()), None)


def available() -> bool:
    """Whether the library is installed; asking loads nothing."""
    try:
        return _path() is not None
    except RuntimeError:  # a mode that nobody knows
        return False


def function(name: str) -> Any:
    """A function of the library with its types."""
    found = _Loaded.functions.get(name)
    if found is None:
        with _Loaded.lock:
            if _Loaded.library is None:
                acl = acl_loader.ensure_acl()  # the library needs the runtime below it
                path = _path()
                if path is None:
                    raise RuntimeError(
                        f"{LIBRARY} is missing in {acl.where.home}: install the communication library (HCCL) of CANN"
                    )
                _Loaded.library = acl_loader._open(path, acl.where)
            address = acl_loader._address(_Loaded.library, name)
            if address is None:
                raise RuntimeError(
                    f"{name} is missing in {LIBRARY}: {acl_loader._advice(acl_loader.ensure_acl().where)}"
                )
            result = ctypes.c_char_p if name == "HcclGetErrorString" else _I
            found = _Loaded.functions[name] = acl_loader._function(address, result, FUNCTIONS[name], True)
    return found


def watch(around: Any) -> None:
    """Have `around(name, collective)` stand in for every collective; None leaves them as they are."""
    _Loaded.around = around


def text_of(code: int) -> str:
    """The vendor's words for a code."""
    said = function("HcclGetErrorString")(code)
    return bytes(said).decode(errors="replace") if said else "unknown error"


class HcclError(RuntimeError):
    """A function of the library answered with a code."""

    def __init__(self, name: str, code: int) -> None:
        vendor = errors.vendor_text()
        said = f"; vendor: {vendor}" if vendor else ""
        super().__init__(f"{name} failed: {text_of(code)} (status {code}){said}")
        self.code = code


def _check(name: str, code: int) -> None:
    if code != 0:
        raise HcclError(name, code)


def limit(timeout: timedelta) -> None:
    """Let the library wait for other ranks as long as a group does, unless the environment says otherwise already.

    The library knows one limit for a whole process, so the group that is made first decides.
    """
    seconds = str(max(math.ceil(timeout.total_seconds()), 1))
    for variable in ("HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT"):
        os.environ.setdefault(variable, seconds)


def root_info(device: int) -> bytes:
    """What other ranks need to find this one."""
    runtime.use(device)
    buffer = ctypes.create_string_buffer(_ROOT_BYTES)
    _check("HcclGetRootInfo", function("HcclGetRootInfo")(buffer))
    return buffer.raw


class Communicator:
    """One rank's side of a set of devices that communicate."""

    def __init__(self, device: int, root: bytes, size: int, rank: int) -> None:
        runtime.use(device)
        self.device, self.rank, self.size = device, rank, size
        out = ctypes.c_void_p()
        info = ctypes.create_string_buffer(root, _ROOT_BYTES)
        _check("HcclCommInitRootInfo", function("HcclCommInitRootInfo")(size, info, rank, ctypes.byref(out)))
        self.handle = out.value or 0

    def call(self, name: str, operation: str, stream: int, *arguments: Any) -> None:
        """Queue a collective on a stream; `operation` is what errors of the device call it."""
        runtime.use(self.device)
        errors.record(name, operation, self.device, stream)
        vendor, around = function(name), _Loaded.around
        called = vendor if around is None else around(name, vendor)
        _check(name, called(*arguments, self.handle, stream))

    def error(self) -> int:
        """The code of what went wrong on the device, or 0."""
        if not self.handle:
            return 0
        out = _I(0)
        _check("HcclGetCommAsyncError", function("HcclGetCommAsyncError")(self.handle, ctypes.byref(out)))
        return out.value

    def destroy(self) -> None:
        """Leave; the others' collectives with this rank end with an error."""
        handle, self.handle = self.handle, 0
        if handle and runtime.alive() and self.device not in runtime.STATE.lost:
            runtime.use(self.device)
            function("HcclCommDestroy")(handle)
