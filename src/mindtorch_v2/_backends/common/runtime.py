"""What every device must provide below its kernels: memory and a copy within the device.

Invariant: a tensor's backend bit names exactly one entry of `RUNTIMES`.
"""

from __future__ import annotations

from typing import Any, Final, final

from ... import _native
from ..._core_operators import CORE
from ..._device import CPU, device
from ..._dispatch.keys import BACKENDS, LAZY, device_bit
from ..._dispatch.keys import CPU as CPU_KEY
from ..._dispatch.op import ASKED, Spec
from ..._dtype import dtype
from ..._mypyc import mypyc_attr
from ..._sizes import new_bytes
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase, make, own_memory

_Storage: Final[Any] = _native.Storage


@mypyc_attr(allow_interpreted_subclasses=True)
class Runtime:
    """One device type."""

    def allocate(self, nbytes: int, dev: device) -> Any:
        """Uninitialised memory."""
        raise NotImplementedError

    def copy(self, dst: TensorBase, src: TensorBase) -> None:
        """Copy values, casting, between tensors of this device that have the same shape."""
        raise NotImplementedError

    def fill(self, dst: TensorBase, value: Any) -> None:
        raise NotImplementedError

    def write_back(self, dst: TensorBase, src: TensorBase, op: str) -> None:
        """Put a functional result into the memory that operator `op` was to change."""
        self.copy(dst, src)


RUNTIMES: Final[dict[int, Runtime]] = {}


@final
class Entry:
    """A type of device with its bit and its runtime."""

    def __init__(self, kind: str, bit: int, runtime: Runtime) -> None:
        self.kind: Final = kind
        self.bit: Final = bit
        self.runtime: Final = runtime


@final
class Known:
    """The CPU's runtime, which nearly every call asks for, and the one last asked for of another device."""

    def __init__(self) -> None:
        self.cpu: Runtime | None = None
        self.other: Entry | None = None


_KNOWN: Final = Known()


def runtime_of(t: TensorBase) -> Runtime:
    bits = t._keys & BACKENDS
    if bits == CPU_KEY:
        cpu = _KNOWN.cpu
        if cpu is None:
            cpu = RUNTIMES[int(bits)]
            _KNOWN.cpu = cpu
        return cpu
    return RUNTIMES[int(bits)]


def runtime_for(dev: device) -> Runtime:
    found = RUNTIMES.get(device_bit(dev.type))
    if found is None:
        raise RuntimeError(f"device '{dev}' is not available: no runtime is registered for device type '{dev.type}'")
    return found


def runtime_replaced() -> None:
    """An entry of `RUNTIMES` is another one now."""
    _KNOWN.other = None


def empty(shape: tuple[int, ...], stride: tuple[int, ...], dt: dtype, dev: device) -> TensorBase:
    """A new tensor with uninitialised memory."""
    nbytes = new_bytes(shape, stride, dt.itemsize)
    if dev is CPU:
        return make(_Storage(int(nbytes)), 0, shape, stride, dt, dev, 1)
    kind = dev.type
    other = _KNOWN.other
    if other is None or other.kind is not kind:
        other = Entry(kind, device_bit(kind), runtime_for(dev))
        _KNOWN.other = other
    return make(other.runtime.allocate(int(nbytes), dev), 0, shape, stride, dt, dev, other.bit)


def empty_spec(s: Spec) -> TensorBase:
    return empty(s.shape, s.stride, s.dtype, s.device)


def empty_contiguous(shape: tuple[int, ...], dt: dtype, dev: device) -> TensorBase:
    return empty(shape, contiguous_strides(shape), dt, dev)


def copy_same_device(dst: TensorBase, src: TensorBase) -> None:
    own_memory(dst)
    runtime_of(dst).copy(dst, computed(src))


def computed(t: TensorBase) -> Any:
    """A result of other operators, which may be lazy, as its memory is."""
    return CORE.clone.call((t, None)) if t._keys & LAZY else t


def allocate_storage(nbytes: int, dev: device) -> Any:
    """Memory that no operator asked for."""
    ASKED.op = None
    return runtime_for(dev).allocate(nbytes, dev)
