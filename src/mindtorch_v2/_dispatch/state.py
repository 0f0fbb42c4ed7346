"""Per-thread dispatch modes: what `no_grad`, `functionalize`, `torch.device(...)` and the like switch on.

Invariant: `STATE.active` counts the threads whose modes differ from the default, so that a call made while nobody has a
mode on never looks at thread-local memory.
"""

import _thread
from typing import Any, Final, final

from .. import _native
from .._device import as_device, device
from .._mypyc import i64, mypyc_attr

# A thread's modes in one integer: key bits to add (low half), key bits to take away (high half).
_SHIFT: Final = 32
_EXCLUDE_AUTOGRAD: Final[i64] = 1 << (9 + 32)
_EXCLUDE_FORWARD: Final[i64] = 1 << (18 + 32)
# Flags kept in the low half above the key bits.
DEVICE_MODE: Final[i64] = 1 << 20
INFERENCE_MODE: Final[i64] = 1 << 21
FUNCTION_MODE: Final[i64] = 1 << 22
NO_TORCH_FUNCTION: Final[i64] = 1 << 23
# `enable_grad` inside inference mode: grad mode is on, but nothing is recorded.
GRAD_UNHEARD: Final[i64] = 1 << 24
# Recording is hidden because the call that runs has been recorded already, not because the user switched it off.
BELOW_AUTOGRAD: Final[i64] = 1 << 25
_KEY_MASK: Final[i64] = (1 << 20) - 1

_tls_get: Final[Any] = _native.tls_get
_tls_set: Final[Any] = _native.tls_set


@final
class State:
    """What is shared by all threads."""

    active: i64
    # How many transforms of `torch.func` run, in all threads.
    transforms: i64
    # Levels of forward-mode differentiation that are open.
    levels: i64
    default_device: device | None

    def __init__(self) -> None:
        self.active = 0
        self.transforms = 0
        self.levels = 0
        self.default_device = None


STATE: Final = State()


# Per-thread objects that do not fit into bits.
LOCAL: Final[Any] = _thread._local()


@final
class Running:
    """What one thread is inside of: levels of `vmap`, the innermost last, and names of transforms of `torch.func`."""

    def __init__(self) -> None:
        self.levels: Final[list[Any]] = []
        self.transforms: list[str] = []


def running() -> Running:
    found: Running | None = getattr(LOCAL, "running", None)
    if found is None:
        found = Running()
        LOCAL.running = found
    return found


def transformed() -> bool:
    """Whether this thread is inside of a transform."""
    return STATE.transforms != 0 and len(running().transforms) != 0


def device_stack() -> list[device]:
    """The devices of the `with torch.device(...)` blocks this thread is in."""
    stack: list[device] | None = getattr(LOCAL, "devices", None)
    if stack is None:
        stack = []
        LOCAL.devices = stack
    return stack


def modes() -> i64:
    """This thread's modes."""
    if STATE.active == 0:
        return 0
    m: i64 = _tls_get()
    return m


def unwatched() -> bool:
    """Whether no mode of this thread looks at its calls. That gradients are not recorded changes nothing."""
    return STATE.active == 0 or (_tls_get() & ~_EXCLUDE_AUTOGRAD) == 0


def set_modes(new: i64) -> None:
    old: i64 = _tls_get()
    if old == new:
        return
    if old == 0:
        STATE.active += 1
    elif new == 0:
        STATE.active -= 1
    _tls_set(new)


def apply_modes(keys: i64) -> i64:
    """The key set of a call after this thread's modes."""
    m: i64 = _tls_get()
    return (keys | (m & _KEY_MASK)) & ~(m >> _SHIFT)


def include(bits: i64) -> i64:
    """Switch key bits (or flags) on; returns the previous modes, to be given to set_modes."""
    old = modes()
    set_modes(old | bits)
    return old


def drop(bits: i64) -> i64:
    """Take flags away again; returns the previous modes."""
    old = modes()
    set_modes(old & ~bits)
    return old


def exclude(bits: i64) -> i64:
    """Hide key bits from this thread's calls; returns the previous modes."""
    old = modes()
    set_modes(old | (bits << _SHIFT))
    return old


def is_grad_enabled() -> bool:
    if STATE.active == 0:
        return True
    m: i64 = _tls_get()
    return (m & _EXCLUDE_AUTOGRAD) == 0 or (m & GRAD_UNHEARD) != 0


def differentiated() -> bool:
    """Whether what a formula computes may itself be differentiated, in reverse or in forward mode."""
    return STATE.levels != 0 or is_grad_enabled()


def set_grad_enabled(on: bool) -> None:
    swap_grad(on)


def swap_grad(on: bool) -> bool:
    """Switch recording of this thread; returns what it was."""
    old: i64 = _tls_get()
    if old & INFERENCE_MODE:
        set_modes((old | GRAD_UNHEARD) if on else (old & ~GRAD_UNHEARD))
        return (old & GRAD_UNHEARD) != 0
    was = (old & _EXCLUDE_AUTOGRAD) == 0
    if on != was:
        # As set_modes, which would ask for the modes again.
        new = (old & ~_EXCLUDE_AUTOGRAD) if on else (old | _EXCLUDE_AUTOGRAD)
        if old == 0:
            STATE.active += 1
        elif new == 0:
            STATE.active -= 1
        _tls_set(new)
    return was


def checked_bool(on: Any) -> bool:
    if not isinstance(on, bool):
        raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(on).__name__}")
    return on


@mypyc_attr(allow_interpreted_subclasses=True)
class RecordingOff:
    """The compiled half of `no_grad`."""

    prev: Any = True

    def __enter__(self) -> None:
        self.prev = swap_grad(False)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        swap_grad(checked_bool(self.prev))


@mypyc_attr(allow_interpreted_subclasses=True)
class RecordingOn:
    """The compiled half of `enable_grad`."""

    prev: Any = True

    def __enter__(self) -> None:
        self.prev = swap_grad(True)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        swap_grad(checked_bool(self.prev))


def swap_inference(on: bool) -> int:
    """Switch inference mode, and recording with it the other way; returns the previous modes."""
    old: i64 = _tls_get()
    bits = INFERENCE_MODE | _EXCLUDE_AUTOGRAD | _EXCLUDE_FORWARD
    set_modes((old | bits) & ~GRAD_UNHEARD if on else old & ~(bits | GRAD_UNHEARD))
    return old


def is_inference_mode() -> bool:
    if STATE.active == 0:
        return False
    m: i64 = _tls_get()
    return (m & INFERENCE_MODE) != 0


def push_default_device(d: device) -> None:
    """Enter `with torch.device(d)`."""
    device_stack().append(d)
    include(DEVICE_MODE)


def pop_default_device() -> None:
    stack = device_stack()
    stack.pop()
    if not stack:
        drop(DEVICE_MODE)


def current_default_device() -> device | None:
    """The device a factory function uses when none is given; None means cpu."""
    if STATE.active != 0:
        m: i64 = _tls_get()
        if m & DEVICE_MODE:
            return device_stack()[-1]
    return STATE.default_device


def set_default_device(d: object) -> None:
    """Factory functions use this device from now on; None goes back to cpu."""
    if d is None:
        STATE.default_device = None
    else:
        STATE.default_device = as_device(d)
