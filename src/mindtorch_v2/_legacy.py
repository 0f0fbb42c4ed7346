"""The constructors PyTorch keeps from its first days: `Tensor(2, 3)`, `FloatTensor([1, 2])`, `t.new(...)`.

Invariant: integers are sizes, a sequence or tensor is data; the dtype is fixed by the class, but for `Tensor(t)`.
"""

from __future__ import annotations

from typing import Any

from ._backends.common.runtime import empty_contiguous
from ._core_operators import CORE, HOOKS
from ._device import CPU, as_device
from ._device import device as Device
from ._dispatch.binding import NOT_INTEGRAL, Unpack, is_element, plain_ints
from ._dispatch.keys import SPARSE
from ._dispatch.op import c_type_name, type_name
from ._dtype import dtype as DType
from ._dtype import get_default_dtype
from ._dtype_names import cpp_name
from ._from_data import tensor
from ._layout import layout as Layout
from ._layout import sparse_coo, strided
from ._ops.determinism import STATE as DETERMINISM
from ._ops.determinism import filled
from ._ops.rules.shape import placed
from ._overrides import answers, claimed, shared
from ._size import Size
from ._sizes import SHORT, is_long
from ._storage import UntypedStorage
from ._tensor_base import TensorBase, instance_of
from ._typed_storage import TypedStorage, wrapped

_FORMS = """
 * (*, torch.device device = None)
 * (torch.Storage storage)
 * (Tensor other)
 * (tuple of ints size, *, torch.device device = None)
 * (object data, *, torch.device device = None)
"""
_KEYWORDS = ("storage", "other", "size", "data")


def construct(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`cls(...)` for Tensor and its subclasses, but for the usual calls (`_from_data.constructed`)."""
    plain = HOOKS.tensor
    if cls is plain and len(args) == 1 and not kwargs and type(args[0]) is plain and not answers(args[0]):
        return shared(args[0], CORE.alias)
    t = _build(args, kwargs, get_default_dtype(), CPU, True)
    if len(args) == 1 and isinstance(args[0], TensorBase) and answers(args[0]):
        return claimed(t, cls)
    return t if cls is HOOKS.tensor else instance_of(cls, t)


def _sized(sizes: tuple[int, ...], dt: DType) -> Any:
    return empty_contiguous(_sizes(sizes) if min(sizes) < 0 else sizes, dt, CPU)


def _elsewhere(dev: Device, where: Any) -> RuntimeError:
    return RuntimeError(
        f"legacy constructor expects device type: {dev.type} but device type: {as_device(where).type} was passed"
    )


def construct_like(like: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`t.new(...)`: the same dtype and device, and COO of COO."""
    if like._keys & SPARSE:
        from ._sparse.refusals import backend_name

        if like.layout is not sparse_coo:
            raise RuntimeError(f"Cannot map DispatchKey {backend_name(like)} to a unique layout.")
        rest = {"device": like._device, **kwargs}
        if as_device(rest["device"]) != like._device:
            raise _elsewhere(like._device, rest["device"])
        if not args and "size" in rest:
            args = tuple(rest.pop("size"))
        return _build_sparse(args, rest, like._dtype, "SparseTensor.new")
    return _build(args, kwargs, like._dtype, like._device)


def _build(args: tuple[Any, ...], kwargs: dict[str, Any], dt: DType, dev: Device, any_dtype: bool = False) -> Any:
    if not kwargs and len(args) == 1 and type(args[0]) is int and 0 <= args[0] <= SHORT and not DETERMINISM.on:
        return empty_contiguous(args, dt, dev)
    rest = dict(kwargs)
    where = rest.pop("device", None)
    if where is not None and as_device(where) != dev:
        raise _elsewhere(dev, where)
    name = next(iter(rest), "")
    if rest and (args or len(rest) > 1 or name not in _KEYWORDS):
        raise _mismatch(args, kwargs)
    if not args and not rest:
        return empty_contiguous((0,), dt, dev)
    first = rest[name] if rest else args[0]
    if name == "size" or isinstance(first, Size) or _is_size(first) or (len(args) > 1 and _counts(first)):
        sizes = first if isinstance(first, (tuple, list)) else args
        made = empty_contiguous(_sizes(tuple(sizes)), dt, dev)
        return filled(made) if DETERMINISM.on and DETERMINISM.fill and dev.type != "meta" else made
    if len(args) > 1:
        raise _mismatch(args, kwargs)
    if isinstance(first, TensorBase):
        if (first._dtype is not dt and not any_dtype) or (dev.type == "npu" and first._device != dev):
            raise TypeError(f"expected {_options(dt, dev)} (got {_options(first._dtype, first._device)})")
        return shared(first, CORE.alias)
    if isinstance(first, TypedStorage) and first.dtype is not dt:
        raise RuntimeError(
            f"Expected a Storage of type {dt.scalar_name} or an UntypedStorage, but got type "
            f"{first.dtype.scalar_name} for argument 1 'storage'"
        )
    if isinstance(first, (TypedStorage, UntypedStorage)):
        return (first if isinstance(first, TypedStorage) else wrapped(first, dt))._tensor()
    if isinstance(first, dict) or not hasattr(type(first), "__getitem__") or _is_numpy_scalar(first):
        raise TypeError(f"new(): data must be a sequence (got {c_type_name(type(first))})")
    return tensor(first, dtype=dt, device=dev)


def _is_size(x: object) -> bool:
    return hasattr(x, "__index__") and not isinstance(x, (bool, TensorBase)) and not hasattr(x, "__len__")


def _counts(x: object) -> bool:
    """Where there are several, integers of other kinds are sizes as well."""
    return _is_size(x) or (isinstance(x, TensorBase) and not x._shape and x._dtype.category <= 1)


def _is_numpy_scalar(x: object) -> bool:
    return getattr(type(x), "__module__", None) == "numpy" and not hasattr(x, "__len__")


def _sizes(given: tuple[Any, ...]) -> tuple[int, ...]:
    for i, x in enumerate(given):
        if not _counts(x) or not is_element(x):
            raise TypeError(
                f"new(): argument 'size' failed to unpack the object at pos {i + 1} with error "
                f'"type must be tuple of ints,but got {type(x).__name__}"'
            )
        if isinstance(x, TensorBase) and x._dtype.name == "bool":
            raise RuntimeError(NOT_INTEGRAL)
    sizes = tuple(int(x) for x in given)
    for i, n in enumerate(sizes):
        if not is_long(n):
            raise Unpack("size", i + 1).named("new")
    for n in sizes:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(sizes)}")
    return sizes


def _options(dt: DType, dev: Device) -> str:
    return (
        f"TensorOptions(dtype={cpp_name(dt)}, device={dev}, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


def _mismatch(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    shown = [type_name(a) for a in args] + [f"{k}={type_name(v)}" for k, v in kwargs.items()]
    got = f"({', '.join(shown)}{', ' if kwargs else ''})"
    return TypeError(f"new() received an invalid combination of arguments - got {got}, but expected one of:{_FORMS}")


class TypeMeta(type):
    """`isinstance(t, torch.FloatTensor)` asks for dtype and device."""

    dtype: DType
    layout: Layout
    where: str

    def __new__(meta, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> TypeMeta:
        if bases:
            raise TypeError(f"type 'torch.{bases[0].__name__}' is not an acceptable base type")
        return super().__new__(meta, name, bases, space)

    def __instancecheck__(cls, t: Any) -> bool:
        fits = isinstance(t, TensorBase) and t._dtype is cls.dtype and t._device.type == cls.where
        return fits and getattr(t, "layout", strided) is cls.layout


def tensor_type(name: str, dt: DType, layout: Layout = strided, where: str = "cpu") -> Any:
    """`torch.FloatTensor`, `torch.sparse.FloatTensor`, `torch.npu.FloatTensor` and the like."""
    sparse = layout is not strided

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if where != "cpu":
            return _build(args, kwargs, dt, placed(Device(where)))
        if args and not kwargs and not sparse and plain_ints(args) and not DETERMINISM.on:
            return _sized(args, dt)
        return _build_sparse(args, kwargs, dt) if sparse else _build(args, kwargs, dt, CPU)

    space = {
        "__new__": new,
        "dtype": dt,
        "is_cuda": False,
        "is_sparse": sparse,
        "layout": layout,
        "where": where,
        "__module__": "torch.sparse" if sparse else "torch" if where == "cpu" else f"torch.{where}",
    }
    return TypeMeta(name, (), space)


_SPARSE_FORMS = """
 * (*, torch.device device = None)
 * (Tensor indices, Tensor values, *, torch.device device = None)
 * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)
 * (tuple of ints size, *, torch.device device = None)
"""


def _build_sparse(
    args: tuple[Any, ...], kwargs: dict[str, Any], dt: DType, name: str = "torch.sparse.SparseTensor"
) -> Any:
    """Of indices and values, whose dtype stays, or of a size, without elements."""
    from ._sparse.construct import sparse_coo_tensor

    rest = dict(kwargs)
    where = rest.pop("device", None)
    if rest:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(rest))}'")
    if not args or all(_is_size(x) for x in args):
        return sparse_coo_tensor(_sizes(args) if args else (0,), dtype=dt, device=where)
    if len(args) == 1 and isinstance(args[0], Size):
        return sparse_coo_tensor(tuple(args[0]), dtype=dt, device=where)
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        raise TypeError(
            f"{name}(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or "
            "construct a strided tensor and convert it to sparse via to_sparse."
        )
    tensors = len(args) in (2, 3) and all(isinstance(x, TensorBase) for x in args[:2])
    if not tensors or not isinstance(args[-1], (TensorBase, list, tuple)):
        shown = ", ".join(type_name(x) for x in args)
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({shown}), but expected one of:{_SPARSE_FORMS}"
        )
    return sparse_coo_tensor(*args, device=where)
