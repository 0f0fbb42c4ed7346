"""Storages of elements of one dtype, which PyTorch keeps for old programs (`TypedStorage`).

Invariant: it only reads an `UntypedStorage` as elements; the first use of one in a process warns.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from . import _dtype
from ._device import device as Device
from ._dispatch.keys import device_bit
from ._dtype import dtype as DType
from ._dtype import get_default_dtype
from ._storage import NOT_ALLOCATED, UntypedStorage, flat, root, untyped
from ._tensor_base import TensorBase, make

_REMOVAL = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
    "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)
_FORMS = (
    "TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
    " * (*, torch.device device, torch.dtype dtype)\n"
    " * (int size, *, torch.device device, torch.dtype dtype)\n"
    " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)\n"
)


_TITLE = "torch.storage.TypedStorage"
CLASSES = {
    "float64": "Double",
    "float32": "Float",
    "float16": "Half",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
    "bfloat16": "BFloat16",
    "complex128": "ComplexDouble",
    "complex64": "ComplexFloat",
}


class _Warned:
    already = False
    always = False


def _warn(stacklevel: int = 3) -> None:
    """Say once that these classes will go; the line named is the caller of the method that warns."""
    if _Warned.always or not _Warned.already:
        _Warned.already = True
        warnings.warn(_REMOVAL, UserWarning, stacklevel=stacklevel)


def typed(t: TensorBase, stacklevel: int = 4) -> TypedStorage:
    """`Tensor.storage()`."""
    _warn(stacklevel)
    return wrapped(untyped(t), t._dtype)


def wrapped(storage: UntypedStorage, dt: DType) -> TypedStorage:
    """A storage read as elements of `dt`."""
    return TypedStorage(wrap_storage=storage, dtype=dt, _internal=True)


class TypedStorage:
    """Elements of one dtype over an `UntypedStorage`."""

    __module__ = "mindtorch_v2.storage"
    is_sparse = False

    def __init__(
        self,
        *args: Any,
        device: Any = None,
        dtype: DType | None = None,
        wrap_storage: Any = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            _warn()
        if dtype is not None and not isinstance(dtype, DType):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        if wrap_storage is not None:
            self._untyped_storage = _checked(args, device, dtype, wrap_storage)
            self.dtype: DType = get_default_dtype() if dtype is None else dtype
            return
        self.dtype = get_default_dtype() if dtype is None else dtype
        if len(args) > 1:
            raise RuntimeError(f"{_FORMS}Too many positional arguments")
        first = args[0] if args else 0
        if isinstance(first, int):
            self._untyped_storage = UntypedStorage(int(first) * self.dtype.itemsize, device=device)
        elif isinstance(first, Sequence):
            from ._from_data import tensor

            self._untyped_storage = untyped(tensor(first, dtype=self.dtype, device=device))
        else:
            raise TypeError(f"{_FORMS}Argument type not recognized: {type(first)}")

    # -- what it is -----------------------------------------------------------------------------------------------
    @property
    def data(self) -> Any:
        """The elements as a flat array over the same memory."""
        return flat(self._untyped_storage, self.dtype)

    @property
    def device(self) -> Device:
        _warn()
        return self._untyped_storage._device

    @property
    def is_cuda(self) -> bool:
        _warn()
        return False

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    @property
    def is_hpu(self) -> bool:
        _warn()
        return False

    @property
    def filename(self) -> str | None:
        """The file this memory is mapped from, if it is."""
        _warn()
        return self._untyped_storage.filename

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """There is no such device here."""
        _warn()
        return wrapped(self._untyped_storage.cuda(device, non_blocking), self.dtype)

    def hpu(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """There is no such device here."""
        _warn()
        return wrapped(self._untyped_storage.hpu(device, non_blocking), self.dtype)

    def pickle_storage_type(self) -> str:
        """The name of the class that a pickle of this storage names."""
        _warn()
        if self.dtype.name not in CLASSES:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return f"{CLASSES[self.dtype.name]}Storage"

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of PyTorch's class for this dtype on this device."""
        _warn()
        if dtype is not None:
            return self._untyped_storage.type(dtype, non_blocking)
        name = CLASSES.get(self.dtype.name)
        return f"torch.{name}Storage" if name and self._untyped_storage.device.type == "cpu" else _TITLE

    def get_device(self) -> int:
        _warn()
        return self._untyped_storage.get_device()

    def untyped(self) -> UntypedStorage:
        _warn()
        return self._untyped_storage

    def nbytes(self) -> int:
        _warn()
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        _warn()
        return self.dtype.itemsize

    def size(self) -> int:
        _warn()
        return self._size()

    def _size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def __len__(self) -> int:
        _warn()
        return self._size()

    def __sizeof__(self) -> int:
        _warn()
        return object.__sizeof__(self) + self._untyped_storage.nbytes()

    def data_ptr(self) -> int:
        _warn()
        return self._untyped_storage.data_ptr()

    def resizable(self) -> bool:
        _warn()
        return self._untyped_storage.resizable()

    def is_shared(self) -> bool:
        _warn()
        return self._is_shared()

    def _is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    # -- other processes ------------------------------------------------------------------------------------------
    def share_memory_(self) -> TypedStorage:
        _warn()
        return self._share_memory_()

    def _share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    def _new_shared(self, size: int, *, device: Any = None) -> TypedStorage:
        """As many elements, in memory that other processes can be given."""
        where = "cpu" if device is None else device
        return wrapped(UntypedStorage._new_shared(size * self.dtype.itemsize, device=where), self.dtype)

    def _share_fd_cpu_(self) -> tuple[int, int]:
        fd, size = self._untyped_storage._share_fd_cpu_()
        return fd, size // self.dtype.itemsize

    def _share_filename_cpu_(self) -> tuple[bytes, bytes, int]:
        manager, handle, size = self._untyped_storage._share_filename_cpu_()
        return manager, handle, size // self.dtype.itemsize

    def _shared_incref(self) -> None:
        self._untyped_storage._shared_incref()

    def _shared_decref(self) -> TypedStorage:
        self._untyped_storage._shared_decref()
        return self

    def _weak_ref(self) -> int:
        return self._untyped_storage._weak_ref()

    _expired = staticmethod(UntypedStorage._expired)
    _free_weak_ref = staticmethod(UntypedStorage._free_weak_ref)

    def is_pinned(self, device: Any = None) -> bool:
        _warn()
        return self._untyped_storage.is_pinned(device)

    # -- elements -------------------------------------------------------------------------------------------------
    def __getitem__(self, index: Any) -> Any:
        _warn()
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if type(index) is not int:
            raise TypeError(f"can't index a {type(self)} with {type(index)}")
        n = self._size()
        if not -n <= index < n:
            raise IndexError(f"index {index} out of range for storage of size {n}")
        return self._tensor()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        _warn()
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if isinstance(value, (UntypedStorage, TypedStorage)):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._tensor()[index] = value

    def _tensor(self) -> Any:
        """The elements as a tensor of one dimension over the same memory."""
        u = self._untyped_storage
        if u._has_no_memory():
            raise RuntimeError(NOT_ALLOCATED)
        raw, first = root(u._raw, self.dtype.itemsize)
        return make(raw, first, (self._size(),), (1,), self.dtype, u.device, device_bit(u.device.type))

    def __iter__(self) -> Iterator[Any]:
        _warn()
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        _warn()
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        got: list[Any] = self._tensor().tolist()
        return got

    def fill_(self, value: Any) -> TypedStorage:
        _warn()
        self[:] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        _warn()
        self._untyped_storage.copy_(source, non_blocking)
        return self

    def resize_(self, size: int) -> None:
        _warn()
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    # -- others like it -------------------------------------------------------------------------------------------
    def clone(self) -> TypedStorage:
        _warn()
        return wrapped(self._untyped_storage.clone(), self.dtype)

    def cpu(self) -> TypedStorage:
        _warn()
        return wrapped(self._untyped_storage.cpu(), self.dtype)

    def npu(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        _warn()
        return wrapped(self._untyped_storage.npu(device, non_blocking), self.dtype)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        _warn()
        return wrapped(self._untyped_storage.to(device=device, non_blocking=non_blocking), self.dtype)

    def pin_memory(self, device: Any = None) -> TypedStorage:
        _warn()
        return wrapped(self._untyped_storage.pin_memory(device), self.dtype)

    def _to(self, dt: DType) -> TypedStorage:
        out = wrapped(untyped(self._tensor().to(dt)), dt)
        return out.clone() if dt is self.dtype else out

    def __copy__(self) -> TypedStorage:
        _warn()
        return wrapped(self._untyped_storage.__copy__(), self.dtype)

    def _write_file(self, *args: Any) -> None:
        self._untyped_storage._write_file(*args)

    def __deepcopy__(self, memo: dict[Any, Any]) -> TypedStorage:
        _warn()
        return wrapped(self._untyped_storage.__deepcopy__(memo), self.dtype)

    def __reduce__(self) -> Any:
        return (wrapped, (self._untyped_storage, self.dtype))

    @classmethod
    def from_file(
        cls, filename: Any, shared: bool = False, size: int = 0, *, dtype: DType | None = None
    ) -> TypedStorage:
        """Map a file; the elements are of `dtype`."""
        _warn()
        dt = get_default_dtype() if dtype is None else dtype
        return wrapped(UntypedStorage.from_file(filename, shared, size * dt.itemsize), dt)

    @classmethod
    def from_buffer(cls, *args: Any, dtype: DType | None = None, device: Any = None, **kwargs: Any) -> TypedStorage:
        """The bytes of a buffer, in the byte order given, as elements of `dtype`."""
        _warn()
        dt = get_default_dtype() if dtype is None else dtype
        if device is not None and Device(device).type != "cpu":
            raise RuntimeError(f"TypedStorage.from_buffer: Not available for device {Device(device).type}")
        return from_buffer(dt, args, kwargs)

    def __repr__(self) -> str:
        _warn()
        u = self._untyped_storage
        head = "..." if u.device.type == "meta" else " " + "\n ".join(str(x) for x in self.tolist())
        return f"{head}\n[{_TITLE}(dtype={self.dtype}, device={u.device}) of size {self._size()}]"


def from_buffer(dt: DType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypedStorage:
    """A typed storage with a copy of a buffer's bytes."""
    return wrapped(UntypedStorage.from_buffer(*args, dtype=dt, **kwargs), dt)


def _checked(args: tuple[Any, ...], device: Any, dt: Any, storage: Any) -> UntypedStorage:
    """The storage given to be wrapped."""
    if args:
        raise RuntimeError(f"{_FORMS}No positional arguments should be given when using 'wrap_storage'")
    if dt is None:
        raise RuntimeError(f"{_FORMS}Argument 'dtype' must be specified")
    if not isinstance(dt, DType):
        raise TypeError(f"{_FORMS}Argument 'dtype' must be torch.dtype, not {type(dt)}")
    if device is not None:
        raise RuntimeError(f"{_FORMS}Argument 'device' should not be specified when 'wrap_storage' is given")
    if not isinstance(storage, UntypedStorage):
        raise TypeError(f"{_FORMS}Argument 'wrap_storage' must be UntypedStorage, but got {type(storage)}")
    return storage


def _converter(name: str, dt: DType) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        _warn()
        return self._to(dt)

    convert.__name__ = name
    convert.__qualname__ = f"TypedStorage.{name}"
    convert.__doc__ = f"A copy of the elements as torch.{dt.name}."
    return convert


for _name, _dt in (
    ("float", _dtype.float32),
    ("double", _dtype.float64),
    ("half", _dtype.float16),
    ("bfloat16", _dtype.bfloat16),
    ("char", _dtype.int8),
    ("short", _dtype.int16),
    ("int", _dtype.int32),
    ("long", _dtype.int64),
    ("byte", _dtype.uint8),
    ("bool", _dtype.bool),
    ("complex_float", _dtype.complex64),
    ("complex_double", _dtype.complex128),
    ("float8_e4m3fn", _dtype.float8_e4m3fn),
    ("float8_e5m2", _dtype.float8_e5m2),
    ("float8_e4m3fnuz", _dtype.float8_e4m3fnuz),
    ("float8_e5m2fnuz", _dtype.float8_e5m2fnuz),
):
    setattr(TypedStorage, _name, _converter(_name, _dt))
