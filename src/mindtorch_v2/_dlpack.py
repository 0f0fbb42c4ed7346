"""DLPack in both directions, over ctypes: tensors share memory with other libraries without a copy.

Invariant: whoever consumes a capsule calls its deleter exactly once; an unconsumed capsule frees itself.
"""

from __future__ import annotations

import ctypes
from typing import Any

from . import _native
from ._device import CPU
from ._dispatch.binding import need_all
from ._dispatch.keys import CONJUGATE
from ._dispatch.keys import CPU as CPU_KEY
from ._dispatch.op import type_name
from ._dispatch.schema import parse
from ._dtype import (
    bfloat16,
    complex64,
    complex128,
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
from ._strides import contiguous_strides
from ._tensor_base import TensorBase, make, numel, requires_grad

_CPU_DEVICE = 1
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
}


class _Device(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("dl_tensor", _DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", _DELETER)]

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.restype = ctypes.c_int
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

# Exported tensors by the address of their managed struct, alive until the consumer calls the deleter.
_EXPORTED: dict[int, Any] = {}
_NAME = b"dltensor"
# What a hostile struct may say at most: more dimensions than any library makes, bytes that an address can count.
_MOST_DIMENSIONS = 1024
_MOST = 2**63 - 1
_USED = b"used_dltensor"


def _release_export(managed: Any) -> None:
    _EXPORTED.pop(ctypes.addressof(managed.contents), None)


_release = _DELETER(_release_export)


def device_of(t: TensorBase) -> tuple[int, int]:
    if t._device.type == "meta":
        raise BufferError("Cannot pack tensors on meta")
    if t._device.type != "cpu":
        raise ValueError(f"Unknown device type {t._device.type} for Dlpack")
    return (_CPU_DEVICE, 0)


def export(t: Any, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
    """`t.__dlpack__()`."""
    if t.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if t._keys & CONJUGATE:
        raise BufferError("Can't export tensors with the conjugate bit set")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream is not None and stream != -1 and t._device.type == "cpu":
        raise AssertionError("stream should be None on cpu.")
    where = device_of(t)
    need_all(_EXPORT, dl_device, copy)
    if dl_device is not None and len(dl_device) != 2:
        raise RuntimeError("dl_device must be either None or a tuple of ints")
    if dl_device is not None and tuple(dl_device) != where:
        raise ValueError(f"__dlpack__: cannot export to device {dl_device} from {where}")
    if copy:
        t = t.clone()
    if t._dtype not in _TYPES:
        raise BufferError(f"{t._dtype} types are not supported by dlpack")
    code, bits = _TYPES[t._dtype]
    n = len(t._shape)
    shape = (ctypes.c_int64 * max(n, 1))(*t._shape)
    # A dimension of size 0 or 1 may carry any stride; 1 is what consumers expect.
    strides = (ctypes.c_int64 * max(n, 1))(*[s if size > 1 else 1 for s, size in zip(t._stride, t._shape)])
    managed = _Managed()
    d = managed.dl_tensor
    d.data = t.data_ptr() if numel(t) else None
    d.device = _Device(*where)
    d.ndim = n
    d.dtype = _DataType(code, bits, 1)
    d.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    d.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    d.byte_offset = 0
    managed.deleter = _release
    address = ctypes.addressof(managed)
    # The view keeps the memory where it is as long as somebody has its address.
    _EXPORTED[address] = (managed, shape, strides, memoryview(t._storage))
    return _api.PyCapsule_New(address, _NAME, _native.CAPSULE_DESTRUCTOR)


class _Owner:
    """Keeps a producer's memory alive and tells it when we are done."""

    def __init__(self, address: int) -> None:
        self.managed = _Managed.from_address(address)

    def __del__(self) -> None:
        if self.managed.deleter:
            self.managed.deleter(ctypes.pointer(self.managed))


def _geometry(d: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides as the producer says them; nothing is read through pointers that cannot hold them."""
    if d.ndim < 0 or (d.ndim > 0 and not d.shape):
        raise RuntimeError(f"from_dlpack: a tensor of {d.ndim} dimensions without a shape")
    if d.ndim > _MOST_DIMENSIONS:
        raise RuntimeError(f"from_dlpack: {d.ndim} dimensions, at most {_MOST_DIMENSIONS} are supported")
    shape = tuple(d.shape[: d.ndim]) if d.ndim else ()
    if any(n < 0 for n in shape):
        raise RuntimeError(f"from_dlpack: negative sizes in shape {shape}")
    return shape, tuple(d.strides[: d.ndim]) if d.strides and d.ndim else contiguous_strides(shape)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor over the memory of another library's array."""
    if hasattr(ext_tensor, "__dlpack__"):
        where = ext_tensor.__dlpack_device__()
        if int(where[0]) != _CPU_DEVICE:
            raise RuntimeError(
                f"from_dlpack: cannot import from DLPack device {tuple(where)}; only cpu (1, 0) is supported"
            )
        capsule = ext_tensor.__dlpack__()
    else:
        capsule = ext_tensor
    if not _api.PyCapsule_IsValid(capsule, _NAME):
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so "
            "you might "
            "have already constructed a tensor from it once."
        )
    address = _api.PyCapsule_GetPointer(capsule, _NAME)
    _api.PyCapsule_SetName(capsule, _USED)
    owner = _Owner(address)
    d = owner.managed.dl_tensor
    if d.device.device_type != _CPU_DEVICE:
        raise RuntimeError(
            f"from_dlpack: cannot import from DLPack device {d.device.device_type}; only cpu is supported"
        )
    found = [k for k, v in _TYPES.items() if v == (d.dtype.code, d.dtype.bits) and d.dtype.lanes == 1]
    if not found:
        raise RuntimeError(f"Unsupported DLPack type: code {d.dtype.code}, {d.dtype.bits} bits, {d.dtype.lanes} lanes")
    shape, stride = _geometry(d)
    if any(s < 0 for s in stride):
        raise RuntimeError("from_dlpack: negative strides are not supported; make a copy of the array first")
    dt = found[0]
    span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride))
    if span * dt.itemsize > _MOST or (span and not d.data):
        raise RuntimeError(
            f"from_dlpack: shape {shape} with strides {stride} reaches {span * dt.itemsize} bytes of "
            f"memory at {d.data or 0:#x}"
        )
    storage = _native.Storage.wrap((d.data or 0) + d.byte_offset, span * dt.itemsize, owner)
    t: Any = make(storage, 0, shape, stride, dt, CPU, CPU_KEY)
    if copy:
        t = t.clone()
    return t if device is None else t.to(device)


def to_dlpack(tensor: Any) -> Any:
    """A capsule for libraries that want one."""
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"_to_dlpack(): argument 'data' (position 1) must be Tensor, not {type_name(tensor)}")
    given: Any = tensor
    return export(given.detach() if requires_grad(tensor) else given)
