"""Storages as users see them: a flat run of bytes on a device (`UntypedStorage`).

Invariant: tensors hold the raw storage of their device; the Python object is made when first asked for and lives as
long as the memory does, with its class, its attributes and the weak references to it. So one holds the other: the
memory holds the object while anybody but the object holds the memory, and the object holds the memory when it is the
last. A raw storage about to die hands its memory over with `_own`.
"""

from __future__ import annotations

import mmap
import operator
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from . import _native
from . import _shared_memory as shared_memory
from ._backends.common.pinning import is_pinned, pin
from ._backends.common.runtime import allocate_storage
from ._backends.meta import MetaStorage
from ._core_operators import CORE
from ._device import CPU, as_device
from ._device import device as Device
from ._dispatch.keys import BATCHED
from ._dispatch.op import type_name
from ._dtype import dtype as DType
from ._dtype import uint8
from ._numbers import c_int, plain_int
from ._ops.rules.shape import placed
from ._read_only import read_only
from ._sizes import LONG_MAX, is_long
from ._strides import contiguous_strides
from ._tensor_base import TensorBase, make


def untyped(t: TensorBase) -> UntypedStorage:
    """The storage of a tensor."""
    if t._keys & BATCHED:
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")
    return _wrap(t._storage, t._device)


def _wrap(raw: Any, dev: Device, cls: Any = None) -> UntypedStorage:
    found: UntypedStorage | None = raw.wrapper
    if found is None:
        found = object.__new__(UntypedStorage if cls is None else cls)
        found._device = dev
        found._lend(raw)
    return found


# A byte order that was not given.
NO_ORDER: Any = object()
_SIGNATURES = """ received an invalid combination of arguments - got {}, but expected one of:
 * (*, int allocator = None, torch.device device = None)
 * (int size, *, int allocator = None, torch.device device = None)
 * (object sequence, *, int allocator = None, torch.device device = None)
"""


_NO_MEMORY = "Attempted to access the data pointer on an invalid python storage."
NOT_ALLOCATED = "The tensor has a non-zero number of elements, but its data is not allocated yet."


def check_allocated(t: Any) -> None:
    """Refuse a tensor whose class computes, and which has no memory where others on its device have."""
    if isinstance(t._storage, MetaStorage) and t._device.type != "meta":
        raise RuntimeError(NOT_ALLOCATED)


def _own(raw: Any) -> Any:
    """The raw storage with memory of its own, before it is written or its address given away."""
    if isinstance(raw, _native.Storage):
        raw.materialize()
    return raw


class UntypedStorage:
    """Bytes on a device."""

    __module__ = "mindtorch_v2.storage"

    # The memory, if nobody else holds it, and where its raw storage is.
    _held: Any
    _at: int
    _device: Device

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        given = dict(kwargs)
        where = given.pop("device", None)
        if len(args) == 0 and len(given) == 1 and next(iter(given)) in ("size", "sequence"):
            args = (next(iter(given.values())),)
        elif len(args) > 1 or given:
            shown = [type_name(a) for a in args] + [f"{k}={type_name(v)}" for k, v in kwargs.items()]
            got = f"({', '.join(shown)}{', ' if kwargs else ''})"
            raise TypeError(f"torch.{cls.__name__}(){_SIGNATURES.format(got)}")
        dev = CPU if where is None else placed(as_device(where))
        size = plain_int(args[0]) if args else 0
        if isinstance(size, int) and not isinstance(size, bool):
            if size < 0:
                raise RuntimeError(f"torch.{cls.__name__}(): the size of a storage cannot be negative, got {size}")
            return _wrap(allocate_storage(size, dev), dev, cls)
        data = _bytes_of(cls, size)
        if dev.type == "meta":
            return _wrap(allocate_storage(len(data), dev), dev, cls)
        out = _wrap(_native.Storage(len(data)), CPU, cls)
        if data:
            out._bytes()[:] = data
        return out if dev is CPU else out.to(device=dev)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """What the arguments say was done by `__new__`."""

    # -- memory and object ----------------------------------------------------------------------------------------
    @property
    def _raw(self) -> Any:
        """The raw storage. Whoever asks may keep it, so from now on it holds this object."""
        raw = self._held
        if raw is None:
            return _native.object_at(self._at)
        self._lend(raw)
        return raw

    def _lend(self, raw: Any) -> None:
        if isinstance(raw, MetaStorage):
            raw.watch()
        raw.wrapper = self
        self._at = id(raw)
        self._held = None

    def _own(self, raw: Any) -> None:
        """Called by the memory when nobody but this object holds it."""
        self._held = raw

    @property
    def _cdata(self) -> int:
        return id(self)

    # -- what it is -----------------------------------------------------------------------------------------------
    device = read_only("torch._C.StorageBase", "device", lambda self: self._device)

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
        raw = self._raw
        if type(raw) is _native.Storage:
            raw.materialize()
            found: int = raw.ptr
            return found
        if isinstance(raw, MetaStorage) and self._has_no_memory():
            raise RuntimeError(_NO_MEMORY)
        return int(_own(raw).ptr)

    def _has_no_memory(self) -> bool:
        """That of a tensor whose class computes (`__torch_dispatch__`): a size on a device where others have bytes."""
        return isinstance(self._raw, MetaStorage) and self._device.type != "meta"

    def resizable(self) -> bool:
        raw = self._raw
        return bool(raw.resizable) or bool(getattr(raw, "shared", False))

    def untyped(self) -> UntypedStorage:
        return self

    def is_pinned(self, device: Any = None) -> bool:
        return is_pinned(self._raw)

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """These bytes in page-locked memory."""
        if self._device is not CPU:
            raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
        return self if self.is_pinned() else _wrap(pin(as_tensor(self))._storage, CPU)

    @property
    def data(self) -> Any:
        """The bytes as a flat array over the same memory; on an accelerator, a copy of them."""
        _own(self._raw)
        return flat(self, uint8)

    # -- bytes ----------------------------------------------------------------------------------------------------
    def _bytes(self) -> Any:
        if self._has_no_memory():
            raise RuntimeError(_NO_MEMORY)
        if isinstance(self._raw, MetaStorage):
            raise NotImplementedError("Not available for 'meta' device type")
        if self._device is not CPU:
            raise RuntimeError(f"the host cannot reach memory of device '{self._device}'; use .cpu()")
        return memoryview(self._raw).cast("B") if self.nbytes() else memoryview(bytearray())

    def __getitem__(self, index: Any) -> Any:
        if self._has_no_memory():
            raise RuntimeError(NOT_ALLOCATED)
        if isinstance(self._raw, MetaStorage):
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(index, slice):
            start, n = self._range(index)
            if self._device.type == "npu":
                return _wrap(self._raw.part(start, n), self._device)
            raw = _own(self._raw)
            return _wrap(_native.Storage.wrap(raw.ptr + start, n, raw), self._device)
        if not _is_int(index):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        at = self._position(index)
        if self._device.type == "npu":
            return self[at : at + 1].tolist()[0]
        return self._bytes()[at]

    def __setitem__(self, index: Any, value: Any) -> None:
        if not _is_int(value):
            raise RuntimeError(f"can only set storage content with a int types, but got {type(value).__name__} instead")
        if isinstance(index, slice):
            start, n = self._range(index)
        elif _is_int(index):
            start, n = self._position(index), 1
        else:
            raise RuntimeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        if self._has_no_memory():
            raise RuntimeError(_NO_MEMORY)
        if self._device.type == "npu":
            part: Any = as_tensor(self[start : start + n])
            part.fill_(int(value) % 256)
        elif not isinstance(self._raw, MetaStorage):
            _own(self._raw)
            self._bytes()[start : start + n] = bytes([int(value) % 256]) * n

    def _range(self, index: slice) -> tuple[int, int]:
        start, stop, step = index.indices(self.nbytes())
        if step != 1:
            raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
        return start, max(stop - start, 0)

    def _position(self, index: Any) -> int:
        n = self.nbytes()
        if not -n <= index < n:
            if not is_long(index):
                raise ValueError("Overflow when unpacking long long")
            raise IndexError(f"index {index if index >= 0 else index + n} out of range for storage of size {n}")
        return int(index) % n

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        if self._has_no_memory():
            raise RuntimeError(NOT_ALLOCATED)
        return list(bytes((self.cpu() if self._device.type == "npu" else self)._bytes()))

    def _check_memory(self, called: str = "") -> None:
        if self._has_no_memory():
            raise RuntimeError(f"Attempted to call {called}() on an invalid python storage." if called else _NO_MEMORY)

    def _write_file(self, *args: Any) -> None:
        """`_write_file(f, is_real_file, save_size, element_size)`: write the bytes, after the number of elements if
        that is wanted; a real file is written past its buffer."""
        self._check_memory()
        f, is_real_file, save_size, element_size = args
        if self._device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        size = struct.pack("<q", self.nbytes() // element_size) if save_size else b""
        data = size + bytes((self.cpu() if self._device.type == "npu" else self)._bytes())
        if not is_real_file:
            f.write(data)
            return
        while data:
            data = data[os.write(f.fileno(), data) :]

    def fill_(self, value: Any) -> UntypedStorage:
        self._check_memory()
        if not _is_int(value):
            raise RuntimeError(f"fill_ expects int, but got {type(value).__name__}")
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        self._check_memory("copy_")
        other = getattr(source, "_untyped_storage", source)
        if not isinstance(other, UntypedStorage):
            raise TypeError(f"copy_(): argument 'src' (position 1) must be torch.Storage, not {type_name(source)}")
        other._check_memory("copy_")
        if other.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {other.nbytes()} bytes"
            )
        CORE.copy_.call((as_tensor(self), as_tensor(other), bool(non_blocking)))
        return self

    def clone(self) -> UntypedStorage:
        return type(self)(self.nbytes(), device=self._device).copy_(self)

    def resize_(self, size: Any) -> UntypedStorage:
        self._check_memory("resize_")
        if not _is_int(size):
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        if size < 0:
            raise RuntimeError(f"resize_ expects a size that is not negative, but got {size}")
        if size > LONG_MAX:
            raise ValueError("Overflow when unpacking long long")
        if not self.resizable():
            raise RuntimeError("Trying to resize storage that is not resizable")
        _own(self._raw).resize(int(size))
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

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of this class; this storage where `dtype` names the same class."""
        if dtype is not None:
            if dtype is type(self) or dtype == self.type():
                return self
            raise NotImplementedError(f"UntypedStorage.type(): a storage of bytes cannot become a {dtype}")
        return f"{type(self).__module__.replace('mindtorch_v2', 'torch')}.{type(self).__name__}"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> UntypedStorage:
        seen: dict[Any, Any] = memo.setdefault("torch", {})
        key = id(self)
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
        return f"{head}\n[{self.type()}(device={self._device}) of size {self.nbytes()}]"

    # -- files and buffers ----------------------------------------------------------------------------------------
    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Map a file. Shared: writes reach the file (which is made or grown); private: they stay here."""
        path = os.fspath(filename)
        shared, nbytes = bool(c_int(shared)), operator.index(nbytes)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600) if shared else os.open(path, os.O_RDONLY)
        except OSError as error:
            mode = "read-write" if shared else "read-only"
            name = path or "filename not specified"
            raise RuntimeError(
                f"unable to open file <{name}> in {mode} mode: {error.strerror} ({error.errno})"
            ) from None
        try:
            have = os.fstat(fd).st_size
            if shared and nbytes > have:
                try:
                    os.ftruncate(fd, nbytes)
                except OSError as error:
                    raise RuntimeError(
                        f"unable to resize file <{path}> to the right size: {error.strerror} ({error.errno})"
                    ) from None
                have = nbytes
            if nbytes < 0:
                raise RuntimeError(f"unable to mmap {nbytes} bytes from file <{path}>: Cannot allocate memory (12)")
            size = nbytes if nbytes > 0 else have
            if size > have:
                raise RuntimeError(f"file <{path}> size <{have}> is smaller than the required mapping size <{size}>")
            if size == 0:
                return cls(0)
            flags = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
            try:
                area = mmap.mmap(fd, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
            except OSError as error:
                raise RuntimeError(
                    f"unable to mmap {size} bytes from file <{path}>: {error.strerror} ({error.errno})"
                ) from None
        finally:
            os.close(fd)
        mapped = _wrap(_over_buffer(area, size), CPU)
        setattr(mapped, "_mapped", True)
        if shared:
            setattr(mapped, "_file", path)
        return mapped

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: Any = NO_ORDER, count: int = -1, offset: int = 0, *, dtype: Any = None
    ) -> UntypedStorage:
        """A copy of `count` elements of a buffer, from byte `offset` on, each in this host's byte order."""
        if dtype is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        if byte_order is not NO_ORDER and not isinstance(byte_order, str):
            raise TypeError(f"argument 2 must be str, not {'None' if byte_order is None else type_name(byte_order)}")
        count, offset = operator.index(count), operator.index(offset)
        if not isinstance(dtype, DType):
            raise RuntimeError("argument 'dtype' must be of type torch.dtype")
        return _from_bytes(_in_native_order(_bytes_like(buffer), byte_order, count, offset, dtype))

    def byteswap(self, dtype: Any) -> None:
        """Turn the bytes of each element around, in place."""
        if not isinstance(dtype, DType):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        size = _element_width(dtype)
        if self.nbytes() % size:
            raise RuntimeError(f"the length of data is not a multiple of {size}")
        if size > 1 and self.nbytes():
            self._bytes()[:] = _swapped(bytes(self._bytes()), size)

    @property
    def filename(self) -> str | None:
        """The file this memory is mapped from; None if it is not."""
        return getattr(self, "_file", None)

    # -- other processes ------------------------------------------------------------------------------------------
    def is_shared(self) -> bool:
        """Whether other processes can be given this memory, and not a copy."""
        return shared_memory.is_shared(self._raw) or getattr(self, "_mapped", False)

    def share_memory_(self) -> UntypedStorage:
        """Move the bytes into memory that other processes can be given; tensors over them move along."""
        if self._device.type == "npu" or self.is_shared():
            return self
        from .multiprocessing import get_sharing_strategy

        if get_sharing_strategy() == "file_system":
            self._share_filename_cpu_()
        else:
            self._share_fd_cpu_()
        return self

    def _on_cpu(self, name: str) -> _native.Storage:
        raw = self._raw
        if not isinstance(raw, _native.Storage):
            raise RuntimeError(f"{name}: only available on CPU")
        return raw

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """A descriptor of the memory, and its size; the descriptor stays this storage's."""
        segment = shared_memory.share_fd(self._on_cpu("_share_fd_"))
        return segment.fd, segment.nbytes

    def _share_filename_cpu_(self) -> tuple[bytes, bytes, int]:
        """Who removes the name after a crash, the name of the memory, and its size."""
        segment = shared_memory.share_name(self._on_cpu("_share_filename_"))
        return segment.manager, segment.handle, segment.nbytes

    def _get_shared_fd(self) -> int:
        segment = shared_memory.segment_under(self._on_cpu("_get_shared_fd"))
        if segment is None or segment.fd < 0:
            raise RuntimeError("couldn't retrieve a shared file descriptor")
        return segment.fd

    def _shared_incref(self) -> None:
        """A message about this memory is under way."""
        self._counted(1)

    def _shared_decref(self) -> UntypedStorage:
        """A message about this memory has arrived."""
        self._counted(-1)
        return self

    def _counted(self, more: int) -> None:
        segment = shared_memory.segment_under(self._raw) if self._device is CPU else None
        if segment is not None:
            segment.count(more)

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> UntypedStorage:
        """Zeros in memory that other processes can be given."""
        where = as_device(device)
        if where.type != "cpu":
            return cls(size, device=where)
        from .multiprocessing import get_sharing_strategy

        named = get_sharing_strategy() == "file_system"
        return cls._new_using_filename_cpu(size) if named else cls._new_using_fd_cpu(size)

    @classmethod
    def _new_using_fd_cpu(cls, size: int) -> UntypedStorage:
        return _wrap(shared_memory.new_segment(size).storage(), CPU, cls)

    @classmethod
    def _new_using_filename_cpu(cls, size: int) -> UntypedStorage:
        return _wrap(shared_memory.new_named(size).storage(), CPU, cls)

    @classmethod
    def _new_shared_fd_cpu(cls, fd: int, size: int) -> UntypedStorage:
        """The memory behind a descriptor, which stays the caller's."""
        return _wrap(shared_memory.segment_of(os.dup(fd), size).storage(), CPU, cls)

    @classmethod
    def _new_shared_filename_cpu(cls, manager: bytes, handle: bytes, size: int) -> UntypedStorage:
        return _wrap(shared_memory.open_named(manager, handle, size).storage(), CPU, cls)

    # -- weak references ------------------------------------------------------------------------------------------
    def _weak_ref(self) -> int:
        """A number that stands for this storage and does not keep it alive."""
        return shared_memory.weak_number(self)

    @staticmethod
    def _expired(cdata: int) -> bool:
        return shared_memory.from_number(cdata) is None

    @staticmethod
    def _new_with_weak_ptr(cdata: int) -> UntypedStorage | None:
        if not isinstance(cdata, int):
            raise RuntimeError("_new_with_weak_ptr(): arg must be an 'int'")
        found: UntypedStorage | None = shared_memory.from_number(cdata)
        return found

    @staticmethod
    def _free_weak_ref(cdata: int) -> None:
        """Nothing: a number holds nothing."""

    @property
    def is_sparse(self) -> bool:
        return False

    @property
    def is_sparse_csr(self) -> bool:
        return False

    @property
    def is_hpu(self) -> bool:
        return False

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """There is no such device here."""
        return self.to(device="cuda" if device is None else device, non_blocking=non_blocking)

    def hpu(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """There is no such device here."""
        raise AssertionError("HPU device module is not loaded")


def _is_int(x: object) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


def _bytes_of(cls: type, values: Any) -> bytes:
    if not isinstance(values, (Sequence, UntypedStorage)):
        raise RuntimeError(f"torch.{cls.__name__}(): Expected a sequence type, but got {type(values).__name__}")
    items = list(values)
    for x in items:
        if not isinstance(x, int):
            raise RuntimeError(
                f"torch.{cls.__name__}(): tried to construct a storage from a sequence ({type(values).__name__}), but "
                f"one of the items was of type {type(x).__name__} instead of int"
            )
    return bytes(x % 256 for x in items)


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


def _element_width(dt: DType) -> int:
    """Bytes that are turned around together: the parts of a complex number by themselves."""
    return dt.itemsize // 2 if dt.is_complex else dt.itemsize


def _swapped(data: bytes, size: int) -> bytes:
    out = bytearray(len(data))
    for i in range(size):
        out[i::size] = data[size - 1 - i :: size]
    return bytes(out)


def _bytes_like(buffer: Any) -> bytes:
    try:
        return bytes(memoryview(buffer))
    except TypeError:
        raise TypeError(f"a bytes-like object is required, not '{type(buffer).__name__}'") from None


def _in_native_order(data: bytes, order: Any, count: int, offset: int, dt: DType) -> bytes:
    """The part of a buffer that was asked for; PyTorch counts some of its complaints in bytes."""
    size = dt.itemsize
    if size > 1 and order is NO_ORDER:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if order is not NO_ORDER and order not in ("native", "big", "little"):
        raise ValueError(f"invalid byte_order '{order}' (expected 'big', 'little', or 'native')")
    if offset < 0 or offset > len(data):
        # The two numbers stand in each other's place, as in PyTorch.
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({offset}) , but got {len(data)}"
        )
    if count < 0:
        if (len(data) - offset) % size:
            raise ValueError(f"buffer size ({len(data)}) must be a multiple of element size ({size})")
        count = (len(data) - offset) // size
    if offset + count * size > len(data):
        raise ValueError(
            f"buffer has only {len(data) - offset} elements after offset {offset}, but specified a size of {count}"
        )
    part = data[offset : offset + count * size]
    return _swapped(part, _element_width(dt)) if order not in (NO_ORDER, "native", sys.byteorder) else part


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


# -- conversions --------------------------------------------------------------------------------------------------
# Each byte becomes an element of the dtype.
_CONVERSIONS = (
    "bool byte char short int long half float double bfloat16 complex_float complex_double float8_e5m2 float8_e4m3fn "
    "float8_e5m2fnuz float8_e4m3fnuz"
).split()


def _converter(name: str) -> Any:
    def convert(self: UntypedStorage) -> Any:
        from ._dtype import uint8
        from ._typed_storage import wrapped

        return getattr(wrapped(self, uint8), name)()

    convert.__name__ = name
    convert.__qualname__ = f"UntypedStorage.{name}"
    return convert


for _name in _CONVERSIONS:
    setattr(UntypedStorage, _name, _converter(_name))
