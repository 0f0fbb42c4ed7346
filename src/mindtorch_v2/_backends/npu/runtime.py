"""The NPU runtime: initialisation, which device a thread uses, waiting, properties, and leaving in order.

Invariant: a vendor call that needs a device is made only after `use(index)` in the same thread. `use` answers from
thread-local memory while nothing has changed; a fork or a lost device moves `STATE.generation`, which sends every
thread through the slow way once more, where the error is raised.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any, Final, final

from ... import _native
from ..._device import device
from ..._mypyc import i64
from ..._warn import warn
from . import acl_loader, errors

FORKED: Final = (
    "Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use the "
    "'spawn' start method"
)


@final
class State:
    """What all threads share."""

    generation: i64
    blocking: bool
    waits: i64

    def __init__(self) -> None:
        self.generation = 0
        self.initialised: bool = False
        self.closing: bool = False
        self.forked: bool = False
        # The kernels are being registered, by the thread that holds `lock`.
        self.loading: bool = False
        # Every launch is followed by a synchronisation; read when the runtime starts.
        self.blocking = False
        self.count: int = 0
        # The context made by the one aclrtSetDevice of each device, and what was said when a device was lost.
        self.contexts: Final[dict[int, int]] = {}
        self.lost: Final[dict[int, str]] = {}
        self.lock: Final[Any] = threading.RLock()
        self.hooks: Final[list[tuple[int, Any]]] = []
        self.synchronise: Any = None
        # What is done when the host waits for a device without having been asked to: see `unasked_wait`.
        self.waits: i64 = 0


@final
class ThreadState:
    """What one thread uses: its device, whose context is current, and its stream on every device."""

    device: i64
    context: i64
    generation: i64

    def __init__(self) -> None:
        self.device = 0
        self.context = -1
        self.generation = -1
        # Handles of the current streams by device (0: the default stream), and the objects that own them.
        self.raw: Final[list[int]] = []
        self.streams: Final[list[Any]] = []


STATE: Final = State()
_thread: Final[Any] = _native.vendor_thread
_DEVICES: Final[list[device]] = []


# -- which device -------------------------------------------------------------------------------------------------
def thread_state() -> ThreadState:
    """This thread's state; asking touches no device."""
    found: Any = _thread()
    if found is None:
        found = ThreadState()
        _thread(found)
    state: ThreadState = found
    return state


def use(index: int) -> ThreadState:
    """Make a device current in this thread for the vendor; the thread's state."""
    found: Any = _thread()
    if found is not None:
        state: ThreadState = found
        if state.context == index and state.generation == STATE.generation:
            return state
    return _switch(index)


def _switch(index: int) -> ThreadState:
    init()
    said = STATE.lost.get(index)
    if said is not None:
        raise RuntimeError(
            f"npu:{index} was lost; nothing runs on it until the program is started again. The first error was:\n{said}"
        )
    check_index(index)
    state = thread_state()
    state.context = -1  # until it has worked nobody knows which one is current
    acl = acl_loader.ensure_acl()
    with STATE.lock:
        context = STATE.contexts.get(index)
        if context is None:
            STATE.contexts[index] = _open(acl, index)
        else:
            errors.check(acl.aclrtSetCurrentContext(context), "aclrtSetCurrentContext")
    while len(state.raw) < STATE.count:
        state.raw.append(0)
        state.streams.append(None)
    state.context = index
    state.generation = STATE.generation
    return state


def _open(acl: acl_loader.Acl, index: int) -> int:
    """Set a device for the first time in this process; its context. Further threads use the context, so that one
    aclrtResetDevice gives the device back."""
    errors.check(acl.aclrtSetDevice(index), "aclrtSetDevice")
    out = ctypes.c_void_p()
    status = int(acl.aclrtGetCurrentContext(ctypes.byref(out)))
    if status != 0:
        acl.aclrtResetDevice(index)
        errors.check(status, "aclrtGetCurrentContext")
    return out.value or 0


def raw_stream(index: int) -> int:
    """The handle of this thread's current stream on a device; 0 is the default stream."""
    raw = thread_state().raw
    return raw[index] if index < len(raw) else 0


def current_device() -> int:
    """The device this thread has chosen; asking initialises nothing."""
    return int(thread_state().device)


def set_device(index: int) -> None:
    """Choose this thread's device."""
    use(index).device = index


def swap_device(index: int) -> int:
    """Choose this thread's device without touching it; returns the one chosen before. For `with torch.npu.device`."""
    state = thread_state()
    old = int(state.device)
    state.device = index
    return old


def device_at(index: int) -> device:
    """The device object of an index; always the same one."""
    while len(_DEVICES) <= index:
        _DEVICES.append(device("npu", len(_DEVICES)))
    return _DEVICES[index]


def placed(index: int | None) -> device:
    """The device that `npu` with or without an index means in this thread."""
    return device_at(int(thread_state().device) if index is None else index)


def index_of(where: Any) -> int:
    """The index meant by None (this thread's device), a number, a string or a device."""
    if where is None:
        return current_device()
    if isinstance(where, int) and not isinstance(where, bool):
        if where < 0:
            return current_device()
        return where
    dev = device(where) if isinstance(where, str) else where
    if not isinstance(dev, device):
        raise TypeError(f"an NPU is named by an index, a string or a torch.device, not {type(where).__name__}")
    if dev.type != "npu":
        raise ValueError(f"Expected a npu device, but got: {dev}")
    return current_device() if dev.index is None else dev.index


def check_index(index: int) -> None:
    """Refuse a device that does not exist; initialises the runtime."""
    init()
    if index < 0 or index >= STATE.count:
        raise RuntimeError(f"npu:{index} does not exist: {STATE.count} NPU device(s) can be seen")


# -- waiting unasked ----------------------------------------------------------------------------------------------
QUIET: Final[i64] = 0
WARN: Final[i64] = 1
REFUSE: Final[i64] = 2
_SYNCHRONIZING: Final = "called a synchronizing NPU operation"


def unasked_wait() -> None:
    """An operator is about to wait for its device: `torch.npu.set_sync_debug_mode` says what of it."""
    if STATE.waits == REFUSE:
        raise RuntimeError(_SYNCHRONIZING)
    if STATE.waits == WARN:
        warn(_SYNCHRONIZING)


# -- starting and leaving -----------------------------------------------------------------------------------------
def is_initialised() -> bool:
    return STATE.initialised and not STATE.forked


def alive() -> bool:
    """Whether handles may still be given back to the vendor."""
    return STATE.initialised and not STATE.closing and not STATE.forked


def init() -> None:
    """Start the runtime; the second and later calls cost nothing."""
    if STATE.forked:
        raise RuntimeError(FORKED)
    if STATE.initialised:
        if STATE.closing:
            raise RuntimeError("the NPU runtime has been shut down: the interpreter is exiting")
        return
    with STATE.lock:
        if not STATE.initialised:
            _init()


def _init() -> None:
    acl = acl_loader.ensure_acl()
    status = int(acl.aclInit(None))
    if status != 100002:  # another part of the program started it
        errors.check(status, "aclInit")
    try:
        STATE.count = _counted(acl)
    except BaseException:
        if status == 0:
            acl.aclFinalize()
        raise
    STATE.blocking = _asked_blocking()
    STATE.initialised = True
    atexit.register(shutdown)
    os.register_at_fork(after_in_child=_after_fork)


def _counted(acl: acl_loader.Acl) -> int:
    """How many devices there are; none is an error."""
    count = ctypes.c_uint32()
    errors.check(acl.aclrtGetDeviceCount(ctypes.byref(count)), "aclrtGetDeviceCount")
    if count.value == 0:
        raise RuntimeError("no NPU device can be seen; look at ASCEND_RT_VISIBLE_DEVICES and the driver (npu-smi info)")
    return count.value


def _asked_blocking() -> bool:
    return any(os.environ.get(v, "0") not in ("", "0") for v in ("ACL_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING"))


def _after_fork() -> None:
    if not STATE.closing:
        STATE.forked = True
        STATE.generation += 1


def lose(said: str) -> None:
    """This thread's device is gone: every later use of it raises."""
    index = int(thread_state().context)
    if index >= 0:
        STATE.lost.setdefault(index, said)
        STATE.generation += 1


def health() -> int:
    """What the runtime says of this thread's device when asked for something harmless; 0 if it is well."""
    acl = acl_loader.ensure_acl()
    status = ctypes.c_int32()
    code = int(acl.aclrtStreamQuery(None, ctypes.byref(status)))
    if code != 0:
        acl.aclGetRecentErrMsg()  # the failure that led here has been told
    return code


def on_shutdown(order: int, hook: Callable[[], None]) -> None:
    """Call `hook` when the runtime ends: 10 cached handles, 20 streams and events, 30 memory. Devices still work then,
    unless they were lost."""
    STATE.hooks.append((order, hook))


def shutdown() -> None:
    """Give everything back in the order the vendor asks for; called once at exit."""
    if not STATE.initialised or STATE.closing or STATE.forked:
        return
    acl = acl_loader.ensure_acl()
    used = [i for i in STATE.contexts if i not in STATE.lost]
    for index in used:
        acl.aclrtSetCurrentContext(STATE.contexts[index])
        acl.aclrtSynchronizeDevice()
    thread_state().context = -1  # the last of them is current now, whatever this thread used
    failed: BaseException | None = None
    for _, hook in sorted(STATE.hooks, key=_order):
        try:
            hook()
        except Exception as error:  # what comes after it must be given back all the same
            failed = failed or error
    STATE.closing = True
    STATE.generation += 1
    for index in used:
        acl.aclrtResetDevice(index)
    acl.aclFinalize()
    if failed is not None:
        raise failed


def _order(hook: tuple[int, Any]) -> int:
    return hook[0]


# -- waiting ------------------------------------------------------------------------------------------------------
def synchronize(index: int) -> None:
    """Wait for everything on a device."""
    use(index)
    wait = STATE.synchronise
    if wait is None:
        wait = acl_loader.ensure_acl().aclrtSynchronizeDevice
        STATE.synchronise = wait
    errors.check_waited(wait(), "aclrtSynchronizeDevice", index, -1)


# -- what the device is -------------------------------------------------------------------------------------------
def soc_name() -> str:
    """The vendor's name of the chip, such as Ascend910B3."""
    init()
    text = acl_loader.ensure_acl().aclrtGetSocName()
    return "" if text is None else bytes(text).decode()


def family(name: str) -> str:
    """The chip's family by the vendor's name: 910B (with A3), 910A, 310P, 310B, or the number of a newer one."""
    bare = name[6:] if name.startswith("Ascend") else name
    if bare.startswith("310"):
        return bare[:4]
    if bare.startswith("910_93") or (bare.startswith("910B") and bare != "910B"):
        return "910B"
    # Ascend910B without a digit is a name of the first generation.
    return "910A" if bare.startswith("910") else bare[:3]


def series(name: str) -> tuple[int, int]:
    """The numbers in a chip's name, series and variant: (910, 2) for Ascend910B2, (910, 9391) for Ascend910_9391."""
    groups = "".join(c if c.isdigit() else " " for c in name).split()
    return (int(groups[0]) if groups else 0, int(groups[1]) if len(groups) > 1 else 0)


@final
class _Known:
    def __init__(self) -> None:
        self.chip: str = ""
        self.version: str = ""


_KNOWN: Final = _Known()


def chip() -> str:
    """The family of the devices: the key of the quirks table."""
    if not _KNOWN.chip:
        _KNOWN.chip = family(soc_name())
    return _KNOWN.chip


def cann_version() -> str:
    """The version of CANN, or an empty string where the installation does not tell."""
    if not _KNOWN.version:
        acl = acl_loader.ensure_acl()
        if acl.has("aclsysGetCANNVersion"):
            out = ctypes.create_string_buffer(512)
            if acl.aclsysGetCANNVersion(0, out) == 0:
                _KNOWN.version = out.value.decode(errors="replace")
    return _KNOWN.version


def memory_info(index: int) -> tuple[int, int]:
    """(free, total) bytes of a device."""
    use(index)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    acl = acl_loader.ensure_acl()
    errors.check(acl.aclrtGetMemInfo(1, ctypes.byref(free), ctypes.byref(total)), "aclrtGetMemInfo")
    if total.value == 0:
        # A chip without HBM answers 0 and has DDR.
        errors.check(acl.aclrtGetMemInfo(0, ctypes.byref(free), ctypes.byref(total)), "aclrtGetMemInfo")
    return free.value, total.value


def capability(index: int, what: int) -> int:
    """0 AI cores, 1 vector cores, 2 bytes of L2; -1 where the version does not tell."""
    use(index)
    acl = acl_loader.ensure_acl()
    if not acl.has("aclGetDeviceCapability"):
        return -1
    out = ctypes.c_int64(-1)
    return out.value if acl.aclGetDeviceCapability(index, what, ctypes.byref(out)) == 0 else -1


def can_access_peer(index: int, peer: int) -> bool:
    use(index)
    out = ctypes.c_int32()
    acl = acl_loader.ensure_acl()
    errors.check(acl.aclrtDeviceCanAccessPeer(ctypes.byref(out), index, peer), "aclrtDeviceCanAccessPeer")
    return out.value != 0
