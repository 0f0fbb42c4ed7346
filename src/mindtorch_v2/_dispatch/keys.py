"""Dispatch keys: one bit per concern, highest concern first when a call is resolved.

Invariant: a tensor's key set holds exactly one backend bit; the functionality bits say what else must look at the call.
"""

from typing import Final

from .._mypyc import i64

# One bit per device. Devices registered from outside take the free bits of the backend byte.
CPU: Final[i64] = 1
META: Final[i64] = 2
NPU: Final[i64] = 4
BACKENDS: Final[i64] = 0xFF

# Functionality, lowest first: a call goes PYTHON, PROFILE, AUTOCAST, FORWARD, AUTOGRAD, LAZY, BATCHED, TORCH_DISPATCH,
# FUNCTIONALIZE, backend.
FUNCTIONALIZE: Final[i64] = 1 << 8
AUTOGRAD: Final[i64] = 1 << 9
AUTOCAST: Final[i64] = 1 << 10
PYTHON: Final[i64] = 1 << 11
# `__torch_dispatch__` of a subclass or a mode: below autograd, so that what it does is not recorded.
TORCH_DISPATCH: Final[i64] = 1 << 15
# AUTOCAST is that of the CPU; autocast is switched for each device type by itself.
AUTOCAST_NPU: Final[i64] = 1 << 16
AUTOCASTS: Final[i64] = AUTOCAST | AUTOCAST_NPU
# A mode: this thread's calls are timed. Nothing looks for it: it makes another key set, whose kernel is the profiler.
PROFILE: Final[i64] = 1 << 17
# A dual tensor: tangents go with its value, one for each level of forward-mode differentiation.
FORWARD: Final[i64] = 1 << 18
# A tensor that stands for many, one for each place of a mapped dimension, and a mode while `vmap` runs: below autograd,
# so that graphs are recorded on such tensors.
BATCHED: Final[i64] = 1 << 19
FUNCTIONALITY: Final[i64] = FUNCTIONALIZE | AUTOGRAD | AUTOCASTS | PYTHON | TORCH_DISPATCH | FORWARD | BATCHED

# The tensor has another layout than strided: its parts are dense tensors, and `_sparse` serves the call. Not a mode.
SPARSE: Final[i64] = 1 << 22
# Beside SPARSE: the tensor is a list of tensors whose sizes differ, and `_ragged` serves the call.
NESTED: Final[i64] = 1 << 23
# The tensor is read as the conjugate, or with the other sign, of what its memory holds: below autograd. Not modes.
CONJUGATE: Final[i64] = 1 << 26
NEGATIVE: Final[i64] = 1 << 27
LAZY: Final[i64] = CONJUGATE | NEGATIVE
# What is not read as its memory is: there is none of its own, or it means something else.
WRAPPED: Final[i64] = TORCH_DISPATCH | BATCHED | SPARSE | LAZY
# Bits of the memory and how it is read, which any tensor over the same memory has too.
MEMORY: Final[i64] = BACKENDS | SPARSE | NESTED | BATCHED | LAZY

# Marks a tensor that tracks a base: whether it requires grad depends on the base too, so the dispatcher must ask.
VIEW: Final[i64] = 1 << 12
# Made in inference mode: no version counter, never recorded.
INFERENCE: Final[i64] = 1 << 13
# A mode: this thread wants to know of every write before it happens.
WRITES: Final[i64] = 1 << 14

DEVICE_BITS: Final[dict[str, int]] = {"cpu": 1, "meta": 2, "npu": 4}


def device_bit(kind: str) -> int:
    """The backend bit of a device type; a type nobody registered gets an error that names it."""
    bit = DEVICE_BITS.get(kind)
    if bit is None:
        raise RuntimeError(f"no backend is registered for device type '{kind}'; known: {', '.join(DEVICE_BITS)}")
    return bit


def add_device(kind: str) -> int:
    """Give a new device type its bit, and make its name one that `torch.device` knows; a new device calls this once."""
    bit = DEVICE_BITS.get(kind)
    if bit is None:
        bit = 1 << len(DEVICE_BITS)
        if bit > 0x80:
            raise RuntimeError("all eight backend bits are taken")
        from .._device import add_device_type

        add_device_type(kind)
        DEVICE_BITS[kind] = bit
    return bit


def device_of_bit(bit: int) -> str:
    for kind, b in DEVICE_BITS.items():
        if b == bit:
            return kind
    raise RuntimeError(f"no device type has the dispatch bit {bit}")
