"""Storages as users see them: a flat run of bytes (`UntypedStorage`) or of elements (`TypedStorage`).

Invariant: tensors hold the raw storage of their device; these wrappers are made when asked for,
and asking twice for the
same memory gives the same `UntypedStorage` while it is alive.
"""

from __future__ import annotations

import mmap
import os
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

from . import _native
from ._backends.common.pinning import is_pinned, pin
from ._backends.common.runtime import allocate_storage
from ._backends.meta import MetaStorage
from ._device import CPU, as_device
from ._device import device as Device
from ._dtype import dtype as DType
from ._dtype import uint8
from ._ops.rules.shape import placed
from ._strides import contiguous_strides
from ._tensor_base import HOT, TensorBase, make

_WRAPPERS: weakref.WeakKeyDictionary[Any, weakref.ref[UntypedStorage]] = weakref.WeakKeyDictionary()


def untyped(t: TensorBase) -> UntypedStorage:
    """The storage of a tensor."""
    return _wrap(t._storage, t._device)


def _wrap(raw: Any, dev: Device) -> UntypedStorage:
    on_npu = dev.type == "npu"
    ref = raw.wrapper if on_npu else _WRAPPERS.get(raw)
    found: UntypedStorage | None = ref() if ref is not None else None
    if found is None:
        found = UntypedStorage.__new__(UntypedStorage)
        found._raw = raw
        found._device = dev
        _remember(found)
    return found


def _remember(s: UntypedStorage) -> None:
    if s._device.type == "npu":
        s._raw.wrapper = weakref.ref(s)
    else:
        _WRAPPERS[s._raw] = weakref.ref(s)


class UntypedStorage:
    """Bytes on a device."""

    _raw: Any
    _device: Device

    def __init__(self, size: Any = 0, *, device: Any = None) -> None:
        self._device = CPU if device is None else placed(as_device(device))
        if isinstance(size, (list, tuple)):
            self._raw = _native.from_list(size, (len(size),), 0)
            if self._device is not CPU:
                self._raw = _wrap(self._raw, CPU).to(device=self._device)._raw
        else:
            self._raw = allocate_storage(int(size), self._device)
        _remember(self)

    # -- what it is -----------------------------------------------------------------------------------------------
    @property
    def device(self) -> Device:
        return self._device

    @property
    def is_cuda(self) -> bool:
        return False

    def get_device(self) -> int:
        return -1 if self._device.index is None else self._device.index

    def nbytes(self) -> int:
        return int(self._raw.nbytes)

    def size(self) -> int:
        return self.nbytes()

    def __len__(self) -> int:
        return self.nbytes()

    def element_size(self) -> int:
        return 1

    def data_ptr(self) -> int:
        return int(self._raw.ptr)

    def resizable(self) -> bool:
        return bool(self._raw.resizable)

    def untyped(self) -> UntypedStorage:
        return self

    def is_shared(self) -> bool:
        return False

    def is_pinned(self, device: Any = None) -> bool:
        return is_pinned(self._raw)

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """These bytes in page-locked memory."""
        if self._device is not CPU:
            raise TypeError(f"cannot pin '{self._device.type}' only CPU memory can be pinned")
        return self if self.is_pinned() else _wrap(pin(as_tensor(self))._storage, CPU)

    @property
    def data(self) -> Any:
        """The bytes as a flat array over the same memory; on an accelerator, a copy of them."""
        return flat(self, uint8)

    # -- bytes ----------------------------------------------------------------------------------------------------
    def _bytes(self) -> Any:
        if isinstance(self._raw, MetaStorage):
            raise NotImplementedError("Not available for 'meta' device type")
        if self._device is not CPU:
            raise RuntimeError(f"the host cannot reach memory of device '{self._device}'; use .cpu()")
        return memoryview(self._raw).cast("B") if self.nbytes() else memoryview(bytearray())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(self.nbytes())
            if step != 1:
                raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
            n = max(stop - start, 0)
            if isinstance(self._raw, MetaStorage):
                return UntypedStorage(n, device="meta")
            if self._device.type == "npu":
                return _wrap(self._raw.part(start, n), self._device)
            return _wrap(_native.Storage.wrap(self._raw.ptr + start, n, self._raw), self._device)
        at = self._position(index)
        if self._device.type == "npu":
            return self[at : at + 1].tolist()[0]
        return self._bytes()[at]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            start, stop, step = index.indices(self.nbytes())
            if step != 1:
                raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
            if self._device.type == "npu":
                part: Any = as_tensor(self[start:stop])
                part.fill_(int(value) % 256)
            else:
                self._bytes()[start:stop] = bytes([int(value) % 256]) * max(stop - start, 0)
        else:
            at = self._position(index)
            self[at : at + 1] = value

    def _position(self, index: Any) -> int:
        if not hasattr(index, "__index__"):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        i = int(index.__index__())
        n = self.nbytes()
        if not -n <= i < n:
            raise IndexError(f"index {i} out of range for storage of size {n}")
        return i % n if n else i

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        return list(bytes((self.cpu() if self._device.type == "npu" else self)._bytes()))

    def fill_(self, value: Any) -> UntypedStorage:
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        other = source.untyped()
        if other.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {other.nbytes()} bytes"
            )
        HOT.copy_.call((as_tensor(self), as_tensor(other), bool(non_blocking)))
        return self

    def clone(self) -> UntypedStorage:
        return type(self)(self.nbytes(), device=self._device).copy_(self)

    def resize_(self, size: int) -> UntypedStorage:
        if not self.resizable():
            raise RuntimeError("Trying to resize storage that is not resizable")
        self._raw.resize(int(size))
        return self

    def new(self) -> UntypedStorage:
        return type(self)(device=self._device)

    def cpu(self) -> UntypedStorage:
        return self.to(device="cpu")

    def npu(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        return self.to(device="npu" if device is None else device, non_blocking=non_blocking)

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        dev = placed(as_device(device))
        if dev == self._device:
            return self
        return type(self)(self.nbytes(), device=dev).copy_(self, non_blocking)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._raw is self._raw

    def __hash__(self) -> int:
        return id(self._raw)

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> UntypedStorage:
        seen: dict[Any, Any] = memo.setdefault("torch", {})
        key = id(self._raw)
        if key not in seen:
            seen[key] = self.clone()
        got: UntypedStorage = seen[key]
        return got

    def __reduce__(self) -> Any:
        if self._device.type == "npu":
            return (_from_bytes, (bytes(self.cpu()._bytes()), str(self._device)))
        return (_from_bytes, (bytes(self._bytes()),))

    def __repr__(self) -> str:
        head = "..." if self._device.type == "meta" else "\n".join(f" {b}" for b in self.tolist())
        return f"{head}\n[torch.storage.UntypedStorage(device={self._device}) of size {self.nbytes()}]"

    # -- files and buffers ----------------------------------------------------------------------------------------
    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Map a file. Shared: writes reach the file (which is made or grown); private: they stay here."""
        path = os.fspath(filename)
        if shared:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        else:
            fd = os.open(path, os.O_RDONLY)
        try:
            have = os.fstat(fd).st_size
            if shared and nbytes > have:
                os.ftruncate(fd, nbytes)
                have = nbytes
            size = nbytes if nbytes > 0 else have
            if size > have:
                raise RuntimeError(f"unable to mmap {size} bytes from file <{path}>: the file has only {have} bytes")
            if size == 0:
                return cls(0)
            area = mmap.mmap(
                fd, size, flags=mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE
            )
        finally:
            os.close(fd)
        return _wrap(_over_buffer(area, size), CPU)

    @classmethod
    def from_buffer(cls, buffer: Any, *args: Any, **kwargs: Any) -> UntypedStorage:
        if args or kwargs:
            raise TypeError("from_buffer(): byte orders and dtypes are not supported by an untyped storage")
        return _from_bytes(bytes(buffer))


def _over_buffer(buffer: Any, nbytes: int) -> Any:
    """A raw storage over memory that a buffer owns."""
    import numpy

    array = numpy.frombuffer(buffer, numpy.uint8, nbytes)
    return _native.Storage.wrap(array.ctypes.data, nbytes, array)


def _from_bytes(data: bytes, dev: str = "cpu") -> UntypedStorage:
    out = UntypedStorage(len(data))
    if data:
        out._bytes()[:] = data
    return out if dev == "cpu" else out.to(device=dev)


def as_tensor(s: UntypedStorage) -> TensorBase:
    """The bytes as a one-dimensional uint8 tensor over the same memory."""
    from ._dispatch.keys import device_bit

    shape = (s.nbytes(),)
    raw, offset = root(s._raw, 1)
    return make(raw, offset, shape, contiguous_strides(shape), uint8, s._device, device_bit(s._device.type))


def root(raw: Any, itemsize: int) -> tuple[Any, int]:
    """The storage to make a tensor over, and where in it the elements begin. Other devices than the CPU address whole
    allocations only, so there a slice is a place in its owner."""
    if isinstance(raw, (_native.Storage, MetaStorage)) or raw.owner is None:
        return raw, 0
    start = raw.ptr - raw.owner.ptr
    if start % itemsize:
        raise RuntimeError(f"a tensor of items of {itemsize} bytes cannot begin at byte {start} of a storage")
    owner, offset = root(raw.owner, itemsize)
    return owner, offset + start // itemsize


def flat(s: UntypedStorage, dt: DType) -> Any:
    """The whole memory as a flat array of `dt`; on an accelerator, a copy of it."""
    import numpy

    if s._device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    host = s if s._device.type == "cpu" else s.cpu()
    return numpy.frombuffer(host._bytes(), numpy.uint8)[: host.nbytes() // dt.itemsize * dt.itemsize].view(dt.np)


class TypedStorage:
    """Elements of one dtype over an `UntypedStorage`."""

    def __init__(
        self, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: DType | None = None, device: Any = None
    ) -> None:
        from ._dtype import get_default_dtype

        self.dtype = get_default_dtype() if dtype is None else dtype
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
        elif args and isinstance(args[0], (list, tuple)):
            self._untyped_storage = _wrap(_native.from_list(args[0], (len(args[0]),), self.dtype.code), CPU)
        else:
            self._untyped_storage = UntypedStorage((args[0] if args else 0) * self.dtype.itemsize, device=device)

    @property
    def data(self) -> Any:
        """The elements as a flat array over the same memory."""
        return flat(self._untyped_storage, self.dtype)

    @property
    def device(self) -> Device:
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        return False

    def untyped(self) -> UntypedStorage:
        return self._untyped_storage

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def size(self) -> int:
        return self.nbytes() // self.dtype.itemsize

    def __len__(self) -> int:
        return self.size()

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def resizable(self) -> bool:
        return self._untyped_storage.resizable()

    def is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def is_pinned(self, device: Any = None) -> bool:
        return self._untyped_storage.is_pinned()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._tensor()[self._position(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        t = self._tensor()
        t[index if isinstance(index, slice) else self._position(index)] = value

    def _position(self, index: Any) -> int:
        if not isinstance(index, int):
            raise TypeError(f"can't index a {type(self)} with {type(index)}")
        n = self.size()
        if not -n <= index < n:
            raise IndexError(f"index {index} out of range for storage of size {n}")
        return index % n

    def _tensor(self) -> Any:
        from ._dispatch.keys import device_bit

        u = self._untyped_storage
        return make(u._raw, 0, (self.size(),), (1,), self.dtype, u.device, device_bit(u.device.type))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        got: list[Any] = self._tensor().tolist()
        return got

    def fill_(self, value: Any) -> TypedStorage:
        self._tensor().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool | None = None) -> TypedStorage:
        if source.dtype is self.dtype:
            self._untyped_storage.copy_(source.untyped(), non_blocking)
        else:
            self._tensor().copy_(source._tensor(), bool(non_blocking))
        return self

    def resize_(self, size: int) -> TypedStorage:
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def clone(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.cpu(), dtype=self.dtype)

    def npu(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.npu(device, non_blocking), dtype=self.dtype)

    def _cast(self, dt: DType) -> TypedStorage:
        return self._tensor().to(dt).storage()  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and other._untyped_storage == self._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.__deepcopy__(memo), dtype=self.dtype)

    @classmethod
    def from_file(
        cls, filename: Any, shared: bool = False, size: int = 0, *, dtype: DType | None = None
    ) -> TypedStorage:
        out = cls(0, dtype=dtype)
        out._untyped_storage = UntypedStorage.from_file(filename, shared, size * out.dtype.itemsize)
        return out

    def __repr__(self) -> str:
        head = "..." if self.device.type == "meta" else "\n".join(f" {x}" for x in self.tolist())
        return f"{head}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


def typed(t: TensorBase) -> TypedStorage:
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only "
        "storage class. "
        "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
        "tensor.untyped_storage() instead of tensor.storage()",
        UserWarning,
        stacklevel=3,
    )
    return TypedStorage(wrap_storage=untyped(t), dtype=t._dtype)


for _name in (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "bool",
    "complex64",
    "complex128",
):
    _public = {
        "float32": "float",
        "float64": "double",
        "float16": "half",
        "int8": "char",
        "int16": "short",
        "int32": "int",
        "int64": "long",
        "uint8": "byte",
        "complex64": "complex_float",
        "complex128": "complex_double",
    }.get(_name, _name)

    def _converter(name: str) -> Any:
        def convert(self: TypedStorage) -> TypedStorage:
            from . import _dtype

            return self._cast(getattr(_dtype, name))

        return convert

    setattr(TypedStorage, _public, _converter(_name))
