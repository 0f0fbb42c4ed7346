"""The constructors PyTorch keeps from its first days: `Tensor(2, 3)`, `FloatTensor([1, 2])`, `t.new(...)`.

Invariant: integers are sizes, a sequence or tensor is data; the dtype is fixed by the class.
"""

from __future__ import annotations

from typing import Any

from ._backends.common.runtime import empty_contiguous
from ._device import CPU, as_device
from ._device import device as Device
from ._dispatch.op import plain_name
from ._dtype import dtype as DType
from ._dtype import get_default_dtype
from ._storage import UntypedStorage
from ._tensor_base import TensorBase, instance_of
from ._typed_storage import TypedStorage, wrapped


def construct(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`cls(...)` for Tensor and its subclasses."""
    from ._tensor import Tensor

    t = _build("new", args, kwargs, get_default_dtype(), CPU)
    return t if cls is Tensor else instance_of(cls, t)


def construct_like(like: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`t.new(...)`: the same dtype and device."""
    return _build("new", args, kwargs, like._dtype, like._device)


def _build(fname: str, args: tuple[Any, ...], kwargs: dict[str, Any], dt: DType, dev: Device) -> Any:
    rest = dict(kwargs)
    where = rest.pop("device", None)
    if where is not None and as_device(where) != dev:
        raise RuntimeError(
            f"legacy constructor expects device type: {dev.type} but device type: {as_device(where).type} was passed"
        )
    if "size" in rest:
        args = (tuple(rest.pop("size")),)
    elif "data" in rest:
        args = (rest.pop("data"),)
    if rest:
        raise TypeError(f"{fname}() got an unexpected keyword argument '{next(iter(rest))}'")
    if not args:
        return empty_contiguous((0,), dt, dev)
    first = args[0]
    if all(isinstance(a, int) for a in args):
        return _sized(tuple(args), dt, dev)
    if len(args) == 1:
        if type(first).__name__ == "Size":
            return _sized(tuple(first), dt, dev)
        if isinstance(first, TensorBase):
            if first._dtype is not dt:
                raise TypeError(f"expected {dt} (got {first._dtype})")
            t: Any = first
            return t.detach()
        if isinstance(first, (TypedStorage, UntypedStorage)):
            typed = first if isinstance(first, TypedStorage) else wrapped(first, dt)
            return typed._tensor()
        if hasattr(first, "__len__") or hasattr(first, "__array__"):
            from ._from_data import tensor

            return tensor(first, dtype=dt, device=dev)
    raise TypeError(
        f"{fname}() received an invalid combination of arguments - got "
        f"({', '.join(plain_name(a) for a in args)}), but expected sizes, a sequence, a tensor or a storage"
    )


def _sized(size: tuple[int, ...], dt: DType, dev: Device) -> Any:
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
    return empty_contiguous(size, dt, dev)


class _TypeMeta(type):
    """`isinstance(t, torch.FloatTensor)` asks for dtype and device."""

    dtype: DType

    def __instancecheck__(cls, t: Any) -> bool:
        return isinstance(t, TensorBase) and t._dtype is cls.dtype and t._device.type == "cpu"


def tensor_type(name: str, dt: DType) -> Any:
    """`torch.FloatTensor` and the like."""

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return _build("new", args, kwargs, dt, CPU)

    return _TypeMeta(name, (), {"__new__": new, "dtype": dt, "__module__": "torch"})
