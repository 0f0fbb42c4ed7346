"""Storage classes of one dtype, from PyTorch's first days: `torch.FloatStorage(3)`, `isinstance(s, torch.LongStorage)`;
and `torch.from_file`, a tensor over a file.

Invariant: they have no instances; constructing one gives a `TypedStorage` on the CPU, and `isinstance` asks its dtype.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from . import _dtype
from ._creation import _device_arg, _dtype_arg, _finish, grad_arg
from ._dispatch.binding import need
from ._dispatch.op import type_name
from ._dispatch.schema import Arg
from ._dtype import dtype as DType
from ._numbers import plain_int
from ._ops.rules.shape import check_options
from ._sizes import LONG_MAX, too_large
from ._storage import UntypedStorage
from ._typed_storage import CLASSES, TypedStorage, _warn, from_buffer, wrapped

_SIZE = Arg("size", "int", True, False, 0, "", False, False, True, 0)
_FORMS = """.__new__ received an invalid combination of arguments. Expected one of:
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)
"""


class _LegacyStorageMeta(type):
    """Asks a typed storage for its dtype where Python would ask for its class."""

    dtype: DType
    where: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            type(instance) is TypedStorage
            and instance._untyped_storage._device.type == cls.where
            and instance.dtype is getattr(cls, "dtype", None)
        )


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """The common base of `torch.FloatStorage` and the like."""

    __module__ = "mindtorch_v2.storage"
    where = "cpu"

    def __new__(cls, *args: Any, **given: Any) -> Any:
        _warn()
        storage = given.pop("wrap_storage", None)
        if given:
            name = "device" if "device" in given else next(iter(given))
            raise RuntimeError(f"{cls}{_FORMS}Keyword argument '{name}' cannot be specified")
        if storage is not None:
            if args:
                raise RuntimeError(f"{cls}{_FORMS}No positional arguments should be given when using 'wrap_storage'")
            if not isinstance(storage, UntypedStorage):
                raise TypeError(f"{cls}{_FORMS}Argument 'wrap_storage' must be UntypedStorage, but got {type(storage)}")
            if storage._device.type != cls.where:
                raise RuntimeError(
                    f"{cls}{_FORMS}Device of 'wrap_storage' must be {cls.where}, but got {storage._device.type}"
                )
            return wrapped(storage, cls.dtype)
        if len(args) > 1:
            raise RuntimeError(f"{cls}{_FORMS}Too many positional arguments")
        first = plain_int(args[0]) if args else 0
        if not isinstance(first, int) and not isinstance(first, Sequence):
            raise TypeError(f"{cls}{_FORMS}Argument type not recognized: {type(first)}")
        if isinstance(first, str):
            raise TypeError("new(): invalid data type 'str'")
        return TypedStorage(first, dtype=cls.dtype, device=cls.where, _internal=True)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """The bytes of a buffer as elements of this class."""
        _warn()
        return from_buffer(cls.dtype, args, kwargs)


_MADE: dict[str, Any] = {}


def on_npu(name: str) -> Any:
    """`torch.npu.FloatStorage` and the like; None for other names."""
    for kind, title in CLASSES.items():
        if name == f"{title}Storage":
            space = {"dtype": getattr(_dtype, kind), "where": "npu", "__module__": "torch.npu"}
            return _LegacyStorageMeta(name, (_LegacyStorage,), space)
    return None


def __getattr__(name: str) -> Any:
    made = _MADE.get(name)
    if made is not None:
        return made
    if name == "Storage":
        import mindtorch_v2 as torch

        return getattr(torch, f"{CLASSES[torch.get_default_dtype().name]}Storage")
    for kind, title in CLASSES.items():
        if name == f"{title}Storage":
            top = sys.modules[__package__].__name__  # `torch`, where that is this package's name
            space = {"dtype": getattr(_dtype, kind), "__module__": top, "__doc__": f"torch.{kind}."}
            return _MADE.setdefault(name, _LegacyStorageMeta(name, (_LegacyStorage,), space))
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def of_dtype(dt: DType) -> Any:
    """The class for a dtype on the CPU; None where PyTorch has none."""
    title = CLASSES.get(dt.name)
    return None if title is None else __getattr__(f"{title}Storage")


# -- files --------------------------------------------------------------------------------------------------------
def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: bool = False,
) -> Any:
    """A tensor of `size` elements over a file. Shared: writes reach the file, which is made or grown as needed."""
    name = "from_file"
    if not isinstance(filename, str):
        raise TypeError(f"from_file(): argument 'filename' (position 1) must be str, not {type_name(filename)}")
    if shared is not None and not isinstance(shared, bool):
        raise TypeError(f"from_file(): argument 'shared' (position 2) must be bool, not {type_name(shared)}")
    count = 0 if size is None else int(need(name, _SIZE, 3, size))
    requires_grad = grad_arg(name, requires_grad)
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    check_options(name, layout, False)
    where = _device_arg(name, device)
    if where is not None and where.type != "cpu":
        raise NotImplementedError(f"from_file(): only the CPU can map a file, got device '{where}'")
    found = _dtype_arg(name, dtype)
    dt = _dtype.get_default_dtype() if found is None else found
    if count < 0:
        raise RuntimeError(
            f"unable to mmap {count * dt.itemsize} bytes from file <{filename}>: Cannot allocate memory (12)"
        )
    if count == 0:
        return _finish(wrapped(UntypedStorage(0), dt)._tensor(), requires_grad)
    if count * dt.itemsize > LONG_MAX:
        raise too_large((count,))
    storage = UntypedStorage.from_file(filename, bool(shared), count * dt.itemsize)
    return _finish(wrapped(storage, dt)._tensor(), requires_grad)
