"""DLPack in both directions: tensors share memory with other libraries without a copy.

A capsule holds one of two structs, told apart by its name: DLPack 1.0's, which begins with a version, for consumers
that say they know it, else the older one. Memory of an NPU travels as DLPack's "extension device"; which library's
device that is nothing in a capsule tells, so only our own come back.

Invariant: whoever consumes a capsule calls its deleter exactly once; an unconsumed capsule frees itself.
"""

from __future__ import annotations

import functools
from typing import Any

from . import _native
from ._backends.common.kernels import bounds_checked
from ._core_operators import HOOKS
from ._device import CPU
from ._device import device as Device
from ._dispatch.binding import need_all
from ._dispatch.keys import CONJUGATE, VIEW
from ._dispatch.keys import CPU as CPU_KEY
from ._dispatch.op import type_name
from ._dispatch.schema import parse
from ._dispatch.state import modes
from ._dtype import (
    bfloat16,
    complex32,
    complex64,
    complex128,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._dtype import bool as bool_
from ._dtype import dtype as DType
from ._layout import strided
from ._storage import check_allocated
from ._strides import contiguous_strides
from ._tensor_base import TensorBase, make, numel, requires_grad

_CPU_DEVICE = 1
_EXTENSION_DEVICE = 12
_VERSION = (1, 0)
_IS_COPIED = 2
_EXPORT = parse("_to_dlpack(*, int[]? dl_device=None, bool? copy=None) -> Tensor")
# DLPack's (type code, bits) of each dtype.
_TYPES: dict[DType, tuple[int, int]] = {
    int8: (0, 8),
    int16: (0, 16),
    int32: (0, 32),
    int64: (0, 64),
    uint8: (1, 8),
    uint16: (1, 16),
    uint32: (1, 32),
    uint64: (1, 64),
    float16: (2, 16),
    float32: (2, 32),
    float64: (2, 64),
    bfloat16: (4, 16),
    complex64: (5, 64),
    complex128: (5, 128),
    bool_: (6, 8),
    complex32: (5, 32),
    float8_e4m3fn: (10, 8),
    float8_e4m3fnuz: (11, 8),
    float8_e5m2: (12, 8),
    float8_e5m2fnuz: (13, 8),
    float8_e8m0fnu: (14, 8),
}


# What a hostile struct may say at most: more dimensions than any library makes, bytes that an address can count.
_MOST_DIMENSIONS = 1024
_MOST = 2**63 - 1
_BY_TYPE: dict[tuple[int, int], DType] = {kind: dt for dt, kind in _TYPES.items()}


def place(device: Device) -> tuple[int, int]:
    """DLPack's device type and index."""
    if device.type == "meta":
        raise BufferError("Cannot pack tensors on meta")
    if device.type == "npu":
        return (_EXTENSION_DEVICE, device.index or 0)
    return (_CPU_DEVICE, 0)


def device_of(t: TensorBase) -> tuple[int, int]:
    """`t.__dlpack_device__()`."""
    if not isinstance(t, TensorBase):
        raise AttributeError(f"'{type(t).__name__}' object has no attribute 'device'")
    if t._device.type == "meta":
        raise ValueError("Unknown device type meta for Dlpack")
    kind, index = place(t._device)
    return _kind_of(kind), index


@functools.cache
def _kind_of(number: int) -> Any:
    from .utils.dlpack import DLDeviceType

    return DLDeviceType(number)


def _is_tensor(t: Any) -> bool:
    return isinstance(t, TensorBase)


def export(t: Any, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
    """`t.__dlpack__()`."""
    if not _is_tensor(t):
        raise AttributeError(f"'{type(t).__name__}' object has no attribute 'requires_grad'")
    usual = dl_device is None and (copy is None or copy is False) and (stream is None or type(stream) is int)
    if usual and (stream is None or stream == -1) and _is_plain(t):
        return _capsule(t, (_CPU_DEVICE, 0), stream, max_version is not None and not max_version[0] < 1, copy)
    if t.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if t._keys & CONJUGATE:
        raise BufferError("Can't export tensors with the conjugate bit set")
    if t.layout is not strided:
        raise BufferError("Can't export tensors with layout other than torch.strided")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream is not None and stream != -1 and t._device.type == "cpu":
        raise AssertionError("stream should be None on cpu.")
    where = place(t._device)
    versioned = max_version is not None and not max_version[0] < 1
    if dl_device is not None or copy is not None:
        need_all(_EXPORT, dl_device, copy)
    if dl_device is not None and len(dl_device) != 2:
        raise RuntimeError("dl_device must be either None or a tuple of ints")
    if dl_device is not None and tuple(dl_device) != where:
        raise ValueError(f"__dlpack__: cannot export to device {dl_device} from {where}")
    if copy:
        t = t.clone()
    if t._dtype not in _TYPES:
        raise BufferError(f"{_kind(t._dtype)} types are not supported by dlpack")
    return _capsule(t, where, stream, versioned, copy)


def _capsule(t: Any, where: tuple[int, int], stream: Any, versioned: bool, copy: Any) -> Any:
    # Nobody is given memory behind a storage that has shrunk.
    check_allocated(t)
    bounds_checked(t, t._shape, t._stride, t._offset)
    # The view keeps the memory where it is as long as somebody has its address.
    # The number of a consumer's stream names nothing here: unless it says that it needs no order, wait for the device.
    held = memoryview(t._storage) if where[0] == _CPU_DEVICE else t._storage.hold(stream != -1)
    kind = _TYPES[t._dtype]
    return _native.dlpack_make(
        t.data_ptr() if numel(t) else 0, t._shape, t._stride, kind[0], kind[1], where[0], where[1],
        _VERSION[0] if versioned else 0, _IS_COPIED if copy else 0, (t, held),
    )  # fmt: skip


def _kind(dt: DType) -> str:
    """A dtype that cannot be exported, in PyTorch's words."""
    name = str(dt).removeprefix("torch.")
    return "Bit" if name.startswith("bits") else "QUInt/QInt" if name.startswith(("qu", "qi")) else f"torch.{name}"


def _geometry(ndim: int, shape: Any, strides: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides as the producer says them."""
    if ndim > _MOST_DIMENSIONS:
        raise RuntimeError(f"from_dlpack: {ndim} dimensions, at most {_MOST_DIMENSIONS} are supported")
    if shape is None:
        raise RuntimeError(f"from_dlpack: a tensor of {ndim} dimensions without a shape")
    if shape and min(shape) < 0:
        raise RuntimeError(f"from_dlpack: negative sizes in shape {shape}")
    return shape, contiguous_strides(shape) if strides is None else strides


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor over the memory of another library's array."""
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError("device and copy kwargs not supported when ext_tensor is already a DLPack capsule.")
        return _consume(ext_tensor)
    if type(ext_tensor) is HOOKS.tensor and device is None and copy is None and _is_plain(ext_tensor):
        return _shared(ext_tensor)
    where = ext_tensor.__dlpack_device__()
    asked: dict[str, Any] = {"max_version": _VERSION}
    if copy is not None:
        asked["copy"] = copy
    moved = False
    if device is not None:
        if not isinstance(device, (str, Device)):
            raise AssertionError(f"from_dlpack: unsupported device type: {type(device)}")
        device = Device(device)
        target = place(device)
        moved = tuple(where) != target
        if moved and copy is False:
            raise ValueError(
                f"cannot move DLPack tensor from device {where} to {target} without copying. "
                "Set copy=None or copy=True."
            )
        if not moved:
            asked["dl_device"] = target
    t = _consume(_produced(ext_tensor, asked))
    if moved:
        return t.to(device)
    return t.clone() if copy is True and "copy" not in asked else t


def _is_plain(t: Any) -> bool:
    """Whether a capsule of this tensor would say what is known without one, and nobody watches."""
    return not (t._keys & ~(CPU_KEY | VIEW) or modes() or requires_grad(t)) and t._dtype in _TYPES


def _shared(t: Any) -> Any:
    """What the consumer of a tensor's own capsule gets: memory that begins where the tensor does."""
    shape, stride = tuple(t._shape), t._stride
    bounds_checked(t, shape, stride, t._offset)
    span = 0 if 0 in shape else 1 + sum([(n - 1) * s for n, s in zip(shape, stride)])
    storage = _native.Storage.wrap(t.data_ptr(), span * t._dtype.itemsize, memoryview(t._storage))
    return make(storage, 0, shape, stride, t._dtype, CPU, CPU_KEY)


def _produced(producer: Any, asked: dict[str, Any]) -> Any:
    """The producer's capsule. Producers of older versions do not know every argument: what was refused is taken out."""
    for argument in ("max_version", "copy", "dl_device"):
        try:
            return producer.__dlpack__(**asked)
        except TypeError:
            asked.pop(argument, None)
    return producer.__dlpack__(**asked)


def _consume(capsule: Any) -> Any:
    """The tensor of a capsule, which is used up."""
    taken: Any = _native.dlpack_take(capsule)
    if taken is None:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so "
            "you might have already constructed a tensor from it once."
        )
    major, place_type, code, bits, lanes, ndim, sizes, steps, address, owner, source = taken
    if major > _VERSION[0]:
        # Nothing else of a struct of another major version was read, nor the capsule taken.
        raise BufferError(f"from_dlpack: the capsule is of DLPack {major}, the newest known is {_VERSION[0]}")
    if place_type == _EXTENSION_DEVICE and source is not None:
        return source[0].detach()
    if place_type != _CPU_DEVICE:
        raise RuntimeError(
            f"from_dlpack: cannot import from DLPack device {place_type}; only cpu, and this library's own "
            "NPU tensors, are supported"
        )
    dt = _BY_TYPE.get((code, bits)) if lanes == 1 else None
    if dt is None:
        raise RuntimeError(f"Unsupported DLPack type: code {code}, {bits} bits, {lanes} lanes")
    shape, stride = _geometry(ndim, sizes, steps)
    if stride and min(stride) < 0:
        raise RuntimeError("from_dlpack: negative strides are not supported; make a copy of the array first")
    span = 0 if 0 in shape else 1 + sum([(n - 1) * s for n, s in zip(shape, stride)])
    if span * dt.itemsize > _MOST or (span and not address):
        raise RuntimeError(
            f"from_dlpack: shape {shape} with strides {stride} reaches {span * dt.itemsize} bytes of "
            f"memory at {address:#x}"
        )
    return make(_native.Storage.wrap(address, span * dt.itemsize, owner), 0, shape, stride, dt, CPU, CPU_KEY)


def to_dlpack(tensor: Any) -> Any:
    """A capsule for libraries that want one."""
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"_to_dlpack(): argument 'data' (position 1) must be Tensor, not {type_name(tensor)}")
    given: Any = tensor
    return export(given.detach() if requires_grad(tensor) else given)
