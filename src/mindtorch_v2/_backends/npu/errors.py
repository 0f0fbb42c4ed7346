"""What a failing vendor call becomes: an exception that names the operator, the code and the line that launched it.

The native module remembers recent launches in a ring, because a kernel's failure is reported by a later
synchronisation. Invariant: remembering a launch keeps no frame and no tensor alive.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from ... import _native
from ..._mypyc import mypyc_attr

NAMES: Final[dict[int, str]] = {
    100000: "invalid parameter",
    100001: "not initialised",
    100002: "initialised twice",
    100003: "invalid file",
    100024: "operator not found",
    100026: "unsupported data type",
    100033: "subscribed twice",
    100034: "stream not subscribed",
    100035: "thread not subscribed",
    100036: "waiting for a callback timed out",
    100037: "finalised twice",
    100039: "a link-time stub library was loaded",
    148049: "invalid operator package path",
    148051: "resources were not cleared",
    200000: "out of host memory",
    200001: "interface not supported",
    200002: "invalid device",
    200003: "address not aligned",
    200004: "resource does not match",
    200005: "invalid resource handle",
    200006: "feature not supported",
    300000: "storage over limit",
    500000: "internal error",
    500001: "failure",
    500002: "graph engine failure",
    500003: "runtime failure",
    500004: "driver failure",
    500005: "profiling failure",
    107000: "invalid parameter",
    107001: "invalid device",
    107002: "no current device in this thread",
    107003: "stream of another context",
    107006: "event has no timestamp",
    107007: "timestamps in reverse order",
    107008: "address not aligned",
    107011: "stream subscription failed",
    107012: "thread subscription failed",
    107015: "stream has no callback registered",
    107016: "invalid kind of memory",
    107017: "invalid handle",
    107018: "invalid kind of allocation",
    107019: "waiting timed out",
    107020: "task timed out",
    107021: "system parameter not set",
    107022: "tasks of the device were aborted",
    107023: "stream was aborted",
    107024: "a captured stream depends on work outside the capture",
    107025: "a captured stream was not joined",
    107026: "the graph is being captured",
    107027: "the stream is being captured",
    107028: "the event was captured",
    107029: "the stream is not being captured",
    107030: "not possible in this mode of capture",
    107031: "the default stream cannot be captured",
    107033: "wrong state of a task group",
    207000: "feature not supported",
    207001: "out of device memory",
    207002: "memory could not be freed",
    207003: "AI core overflow",
    207004: "no device",
    207005: "out of resources",
    207006: "no permission",
    207007: "out of events",
    207008: "out of streams",
    207012: "over limit",
    207015: "initialised twice",
    207016: "overflow",
    207017: "overflow",
    207018: "out of device memory",
    507000: "internal error",
    507001: "task scheduler error",
    507004: "stream not complete",
    507006: "event not complete",
    507010: "the device lost its heartbeat",
    507013: "DMA error",
    507014: "AI core timed out",
    507015: "AI core exception",
    507017: "AI CPU timed out",
    507018: "AI CPU exception",
    507033: "device setup failed",
    507034: "vector core timed out",
    507035: "vector core exception",
    507046: "synchronising the stream timed out",
    507047: "synchronising the event timed out",
    507053: "device memory error",
    507054: "uncorrectable device memory error",
    507899: "driver error",
    507901: "connection to the device closed",
    161001: "null parameter",
    161002: "invalid parameter",
    361001: "runtime error",
    561000: "inner error",
    561001: "shape inference failed",
    561002: "tiling failed",
    561003: "kernel not found",
    561101: "no executor could be made",
    561102: "executor not handed over",
    561103: "inner null pointer",
    561104: "wrong number of attributes",
    561105: "conflicting keys",
    561106: "invalid implementation mode",
    561107: "operator package path not found",
    561108: "operator description not readable",
    561109: "operator description incomplete",
    561110: "operator description malformed",
    561111: "operator description has a wrong data type",
    561112: "kernel package not found",
}

OUT_OF_MEMORY: Final = (207001, 207018)
# After these the device answers nothing sensible until it is reset.
LOST: Final = (507010, 507053, 507054, 507901)
RUNTIME_ERROR: Final = 361001
# Raised by a kernel that ran, so the launch to blame lies in the past; a timeout is not in itself its fault.
ASYNCHRONOUS: Final = (
    207003,
    207016,
    207017,
    507000,
    507001,
    507010,
    507013,
    507014,
    507015,
    507017,
    507018,
    507034,
    507035,
    507053,
    507054,
    507901,
)


@mypyc_attr(native_class=False)
class AcceleratorError(RuntimeError):
    """`torch.AcceleratorError`: something failed on a device; `error_code` is the device's number for it."""

    error_code: int


@mypyc_attr(native_class=False)
class AclError(AcceleratorError):
    """A vendor function answered with a code."""

    def __init__(self, message: str, code: int, function: str, vendor: str) -> None:
        super().__init__(message)
        self.code = self.error_code = code
        self.function = function
        self.vendor = vendor

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.code, self.function, self.vendor)


@mypyc_attr(native_class=False)
class OutOfMemoryError(RuntimeError):
    """`torch.OutOfMemoryError`: the device's memory does not suffice, after everything cached was given back."""


# The names users know them by.
setattr(AclError, "__module__", "mindtorch_v2.npu")
setattr(OutOfMemoryError, "__module__", "mindtorch_v2")
setattr(AcceleratorError, "__module__", "mindtorch_v2")

# Code that is no program's: the package's files, and the functions it makes from schemas.
# Asked of the package, because a compiled module does not know its own file.
_OURS: Final = (os.path.dirname(sys.modules["mindtorch_v2"].__file__ or "") + os.sep, "<torch.")
_getframe: Final[Any] = sys._getframe
_native.vendor_ours(_OURS)
_record: Final[Any] = _native.vendor_record
_launches: Final[Any] = _native.vendor_launches
# How many launches are remembered.
SIZE: Final = 4096
# By device and stream: launches before this one, counted from the first, are known to have succeeded.
_SETTLED: Final[dict[tuple[int, int], int]] = {}


def record(function: str, operator: str, device: int, stream: int) -> None:
    """Remember a launch and where in the user's program it was made."""
    _record(function, operator, device, stream)


def line_of(code: Any, offset: int) -> str:
    """`file:line` of an instruction."""
    if code is None:
        return "unknown line"
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            line = number
            break
    return f"{code.co_filename}:{line}"


def here() -> str:
    """`file:line` of the user's program this thread is at."""
    frame: Any = _getframe()
    while frame is not None:
        code: Any = frame.f_code
        name: str = code.co_filename
        if not name.startswith(_OURS):
            return line_of(code, frame.f_lasti)
        frame = frame.f_back
    return "unknown line"


def settle(device: int, stream: int) -> None:
    """Everything launched on a stream has succeeded. Stream -1 stands for all of them."""
    count: int = _launches()
    if stream < 0:
        for key in [k for k in _SETTLED if k[0] == device]:
            del _SETTLED[key]
    _SETTLED[(device, stream)] = count


def launches(device: int, stream: int) -> list[tuple[str, str, str]]:
    """(function, operator, file:line) of the launches on a stream since it last succeeded, newest first; stream -1
    stands for all streams of the device."""
    out: list[tuple[str, str, str]] = []
    count: int = _launches()
    everywhere = _SETTLED.get((device, -1), 0)
    for n in range(count - 1, max(count - SIZE, everywhere, 0) - 1, -1):
        try:
            made: Any = _launches(n)
        except IndexError:  # other threads have launched so many since
            break
        where: int = made[3]
        if made[2] != device or (stream >= 0 and where != stream) or n < _SETTLED.get((device, where), 0):
            continue
        out.append((made[0], made[1], line_of(made[4], made[5])))
    return out


def name_of(code: int) -> str:
    return NAMES.get(code, "unknown code")


def vendor_text() -> str:
    """What the vendor says about the last failures of this thread; asking clears it."""
    from .acl_loader import loaded

    acl = loaded()
    if acl is None:
        return ""
    text = acl.aclGetRecentErrMsg()
    return "" if text is None else bytes(text).decode(errors="replace").strip()


def check(code: int, function: str, operator: str = "") -> None:
    """Raise if a vendor function, called for an operator if one is known, did not answer 0."""
    if code != 0:
        fail(code, function, operator)


def fail(code: int, function: str, operator: str = "") -> None:
    """The exception of a call that failed by itself."""
    vendor = vendor_text()
    said = f"\n  vendor: {vendor}" if vendor else ""
    called = f"{function} failed for {operator}" if operator else f"{function} failed"
    error = AclError(f"{called}: {name_of(code)} (status {code}){said}\n  called at {here()}", code, function, vendor)
    note_loss(code, str(error))
    raise error


# Called with the device after a wait that ended well: something may have failed on another stream than the waited one.
WAITED: Final[list[Any]] = []


def check_waited(code: int, function: str, device: int, stream: int, operator: str = "") -> None:
    """After waiting for a stream (-1: the whole device): settle its launches, or blame one of them. `operator` is what
    needed the wait."""
    if code == 0:
        settle(device, stream)
        for look in list(WAITED):
            look(device)
    else:
        blame(code, function, device, stream, operator)


def blame(code: int, function: str, device: int, stream: int, operator: str = "") -> None:
    """The exception of a kernel that failed some time ago, with the launch that the vendor's text names."""
    if code not in ASYNCHRONOUS:
        fail(code, function, operator)
    vendor = vendor_text()
    made = launches(device, stream)
    # A failure is reported once and the stream goes on, so later failures have later causes.
    settle(device, stream)
    named = [m for m in made if m[0] and _mentions(vendor, m[0])]
    lines = [f"{function} failed on npu:{device}: {name_of(code)} (status {code})"]
    if vendor:
        lines.append(f"  vendor: {vendor}")
    suspects = named or made
    distinct = list(dict.fromkeys(suspects))
    if len(distinct) == 1:
        called, operator, line = distinct[0]
        lines[0] = f"{called} failed for {operator} on npu:{device}: {name_of(code)} (status {code})"
        lines.append(f"  launched at {line}, reported by {function} at {here()}")
    elif distinct:
        lines.append(f"  reported at {here()}; one of these launches failed, newest first:")
        lines += [f"    {operator} ({called}) launched at {line}" for called, operator, line in distinct[:10]]
        if len(distinct) > 10:
            lines.append(f"    and {len(distinct) - 10} more; ACL_LAUNCH_BLOCKING=1 tells which")
    else:
        lines.append(f"  reported at {here()}; no launch is remembered; ACL_LAUNCH_BLOCKING=1 tells which it was")
    error = AclError("\n".join(lines), code, function, vendor)
    note_loss(code, str(error))
    raise error


def _mentions(text: str, function: str) -> bool:
    """Whether a text names a function as a whole word: aclnnAdd is not named by aclnnAddmm."""
    at = text.find(function)
    while at >= 0:
        end = at + len(function)
        if end == len(text) or not (text[end].isalnum() or text[end] == "_"):
            return True
        at = text.find(function, end)
    return False


def note_loss(code: int, text: str) -> None:
    """After a failure with `code`, told as `text`: if the device is gone, later calls will say so."""
    if code not in LOST and code != RUNTIME_ERROR:
        return
    from . import runtime

    if code == RUNTIME_ERROR:
        # An operator only says that the runtime below it failed.
        code = runtime.health()
    if code in LOST:
        runtime.lose(f"{text}\n  {name_of(code)} (status {code})")
