"""Tensors from Python data and from other libraries' memory.

Invariant: memory is shared exactly where PyTorch shares it; a shared object lives as long as a tensor shows its memory.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from . import _native
from ._backends.common.pinning import pin
from ._backends.common.runtime import empty_contiguous
from ._core_operators import HOOKS
from ._creation import _MISSING, _TO_COPY, _device_arg, _dtype_arg, _factory_device, _finish, _given, grad_arg, stray
from ._device import CPU, can_pin
from ._dispatch.binding import need_int, plain_ints
from ._dispatch.keys import PYTHON, TORCH_DISPATCH
from ._dispatch.op import c_type_name, type_name
from ._dispatch.state import FUNCTION_MODE, NO_TORCH_FUNCTION, STATE, current_default_device, modes, set_modes
from ._dtype import DEFAULTS, from_np, int64
from ._dtype import dtype as DType
from ._nested import from_data as numbers
from ._ops.determinism import STATE as DETERMINISM
from ._ops.rules.shape import _PIN, placed
from ._tensor_base import TensorBase, make
from ._warn import warn, warn_once

__all__ = ["as_tensor", "asarray", "from_numpy", "frombuffer", "tensor"]


def from_data(data: Any, dt: Any, dev: Any, fname: str = "tensor") -> Any:
    """A new tensor with a copy of `data`: numbers, nested sequences, arrays, tensors."""
    if isinstance(data, TensorBase):
        if fname in ("tensor", "new_tensor"):
            warn(
                "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                f"sourceTensor.detach().clone().requires_grad_(True), rather than {_SHOWN[fname]}(sourceTensor)."
            )
        source: Any = data
        before = modes()
        # A subclass is not asked, and the copy is a plain tensor.
        set_modes(before | _PLAINLY)
        try:
            return _copied(source.detach(), dt, data._device if dev is None else placed(dev))
        finally:
            set_modes(before)
    if type(data) not in _PLAIN:
        if _is_array(data) or _is_numpy_scalar(data):
            return _copied(from_numpy(_as_array(data)), dt, placed(dev))
        if hasattr(type(data), "data_ptr"):
            found = _of_storage(data, dt)
            if found is not None:
                return _converted(found, None, dev)
    elif (type(data) is list or type(data) is tuple) and len(data) > 0:
        first = data[0]
        if type(first) not in _PLAIN and _is_array(first):
            warn_once(
                "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the "
                "list to a single numpy.ndarray with numpy.array() before converting to a tensor."
            )
    t = numbers(data, dt)
    if dev is None or dev is CPU or dev.type == "cpu":
        return t
    return _TO_COPY.call((t, None, placed(dev), None, False))


# Nobody among the arguments is asked.
_PLAINLY: Final = int(NO_TORCH_FUNCTION) | int(PYTHON) << 32
_PLAIN: Final = frozenset({list, tuple, float, int, bool, complex})
_SHOWN: Final = {"tensor": "torch.tensor", "new_tensor": "tensor.new_tensor"}


def _of_storage(data: Any, dt: Any) -> Any:
    """A tensor over the whole of a storage, sharing its memory; None if the data is none."""
    from ._storage import UntypedStorage
    from ._typed_storage import TypedStorage, wrapped

    if isinstance(data, TypedStorage):
        wanted = DEFAULTS.dtype if dt is None else dt
        kind: DType = data.dtype
        if kind is not wanted:
            raise RuntimeError(
                f"Expected a Storage of type {wanted.scalar_name} or an UntypedStorage, but got {kind.scalar_name}"
            )
        return data._tensor()
    # Without a dtype PyTorch infers one from the bytes, which are integers.
    return wrapped(data, int64 if dt is None else dt)._tensor() if isinstance(data, UntypedStorage) else None


def _as_array(data: Any) -> Any:
    """NumPy's arrays and scalars, as arrays."""
    import numpy

    return data if isinstance(data, numpy.ndarray) else numpy.asarray(data)


def _copied(t: Any, dt: Any, dev: Any) -> Any:
    return _TO_COPY.call((t, dt, dev, None, False))


def tensor(
    data: Any = _MISSING,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: Any = False,
    pin_memory: Any = False,
    **unknown: Any,
) -> Any:
    """tensor(data, *, dtype=None, device=None, requires_grad=False): a new leaf with a copy of `data`."""
    if unknown:
        raise stray("tensor", (data,), unknown)
    if data is _MISSING:
        _given("tensor", data=data)
    if STATE.active != 0 and modes() & FUNCTION_MODE:
        flags = {"requires_grad": requires_grad or None, "pin_memory": pin_memory or None}
        asked = HOOKS.asked_factory("tensor", (data,), {"dtype": dtype, "device": device, **flags})
        if asked is not NotImplemented:
            return asked
    if requires_grad is not False:
        requires_grad = grad_arg("tensor", requires_grad)
    if dtype is not None:
        dtype = _dtype_arg("tensor", dtype)
    if pin_memory and not can_pin():
        raise RuntimeError(_PIN)
    if device is not None:
        device = _device_arg("tensor", device)
    elif STATE.active != 0 or STATE.default_device is not None:
        device = current_default_device()
    t = from_data(data, dtype, device)
    if pin_memory and t._device is CPU:
        t = pin(t)
    if STATE.active != 0 and modes() & TORCH_DISPATCH:
        t = HOOKS.lifted(t)
    return _finish(t, requires_grad) if requires_grad else t


def constructed(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`Tensor(...)`: sizes, which are uninitialised memory, or a list of data; `_legacy` serves other calls."""
    if args and not kwargs and cls is HOOKS.tensor:
        dt = DEFAULTS.dtype
        if plain_ints(args):
            shape: list[int] = []
            for n in args:
                size: int = n
                if size < 0:
                    break
                shape.append(size)
            if len(shape) == len(args) and not DETERMINISM.on:
                return empty_contiguous(tuple(shape), dt, CPU)
        elif len(args) == 1 and type(args[0]) is list:
            return tensor(args[0], dtype=dt, device=CPU)
    return HOOKS.construct(cls, args, kwargs)


def as_tensor(data: Any, dtype: Any = None, device: Any = None, **unknown: Any) -> Any:
    """A tensor over `data`, sharing its memory where dtype and device allow."""
    if unknown:
        raise stray("as_tensor", (data, dtype, device), unknown)
    if STATE.active != 0 and modes() & FUNCTION_MODE:
        asked = HOOKS.asked_factory("as_tensor", (data,), {"dtype": dtype, "device": device})
        if asked is not NotImplemented:
            return asked
    dt = _dtype_arg("as_tensor", dtype)
    dev = _factory_device("as_tensor", device)
    if isinstance(data, TensorBase):
        return _converted(data, dt, dev)
    if type(data) not in _PLAIN and _is_array(data):
        return _converted(from_numpy(data), dt, dev)
    return from_data(data, dt, dev, "as_tensor")


# Other classes may claim an array's interface (`__array_interface__`); what they say of memory cannot be checked, and
# PyTorch does not ask them either. Before NumPy is loaded there are no arrays.
def _is_numpy_scalar(data: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(data, numpy.generic)


def _is_array(data: Any) -> bool:
    if type(data) is _NUMPY.array:
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(data, numpy.ndarray)


def _converted(t: Any, dt: Any, dev: Any) -> Any:
    """`t` itself when nothing has to change."""
    where = t._device if dev is None else placed(dev)
    if (dt is None or dt is t._dtype) and where == t._device:
        return t
    return _copied(t, dt, where)


def _is_capsule(obj: Any) -> bool:
    """Whether this is a DLPack capsule that nobody has taken the tensor from."""
    return type(obj).__name__ == "PyCapsule" and repr(obj).startswith('<capsule object "dltensor')


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None, requires_grad: Any = None, **unknown: Any
) -> Any:
    """A tensor over `obj`, sharing its memory unless that is impossible or `copy` is True."""
    if unknown:
        raise stray("asarray", (obj,), unknown)
    if STATE.active != 0 and modes() & FUNCTION_MODE:
        given = {"dtype": dtype, "device": device, "copy": copy, "requires_grad": requires_grad}
        asked = HOOKS.asked_factory("asarray", (obj,), given)
        if asked is not NotImplemented:
            return asked
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(f"asarray(): argument 'copy' must be bool, not {type_name(copy)}")
    if requires_grad is not None:
        requires_grad = grad_arg("asarray", requires_grad)
    dt = _dtype_arg("asarray", dtype)
    dev = _factory_device("asarray", device)
    if isinstance(obj, TensorBase):
        t: Any = obj
    elif type(obj) not in _PLAIN and _is_array(obj):
        t = from_numpy(obj)
    elif type(obj) not in _PLAIN and (hasattr(obj, "__dlpack__") or _is_capsule(obj)):
        from ._dlpack import from_dlpack

        t = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        t = frombuffer(obj, dtype=dt or DEFAULTS.dtype)
        if isinstance(obj, bytes) and copy is None:
            copy = True
    else:
        if copy is False and _is_numpy_scalar(obj):
            raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return _finish(from_data(obj, dt, dev, "asarray"), bool(requires_grad))
    where = t._device if dev is None else placed(dev)
    if copy is False:
        if dt is not None and dt is not t._dtype:
            raise ValueError(f"can't alias tensor with dtype '{t._dtype.scalar_name}' into dtype '{dt.scalar_name}'.")
        if where != t._device:
            raise ValueError(f"can't alias tensor from device '{t._device}' to '{where}'.")
    new = _copied(t, dt, where) if copy else _converted(t, dt, where)
    if requires_grad is None:
        if isinstance(obj, TensorBase) and obj.requires_grad:
            warn_once(
                "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
                "requires_grad=False explicitly to get the old behavior and silence this warning."
            )
        return new
    if requires_grad:
        return new if new.requires_grad else _finish(new, True)
    if new.requires_grad:
        # A leaf is told so itself, as in PyTorch.
        return new.requires_grad_(False) if new.is_leaf else new.detach()
    return new


def from_numpy(ndarray: Any) -> Any:
    """A tensor over the memory of a NumPy array."""
    a = ndarray
    if type(a) is not _NUMPY.array:
        import numpy

        if not isinstance(a, numpy.ndarray):
            raise TypeError(f"expected np.ndarray (got {c_type_name(type(a))})")
        _NUMPY.array = numpy.ndarray
    dt = _NP.get(a.dtype)
    if dt is None:
        dt = from_np(a.dtype)
        _NP[a.dtype] = dt
    item: int = dt.itemsize
    found = _array_info(a)
    shape: tuple[int, ...] = found[1]
    steps: list[int] = []
    reach = 1
    for i, s in enumerate(found[2]):
        step: int = s
        if step % item:
            raise ValueError(
                "given numpy array strides not a multiple of the element byte size. Copy the numpy array "
                "to reallocate the memory."
            )
        if step < 0:
            raise ValueError(
                "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                "currently supported. (You can probably work around this by making a copy of your array  with "
                "array.copy().) "
            )
        steps.append(step // item)
        reach += (shape[i] - 1) * (step // item)
    if found[4]:
        warn_once(_READ_ONLY["NumPy array"])
    if 0 in shape:
        return empty_contiguous(shape, dt, CPU)
    return make(_wrap(found[0], reach * item, a), 0, shape, tuple(steps), dt, CPU, 1)


class _Numpy:
    """NumPy's array type, once it has been imported for the first array."""

    def __init__(self) -> None:
        self.array: Any = None


_NUMPY: Final = _Numpy()
# NumPy's dtypes already met; working out one of theirs takes longer than everything else here.
_NP: Final[dict[Any, DType]] = {}
_array_info: Final[Any] = _native.array_info
_wrap: Final[Any] = _native.Storage.wrap
_READ_ONLY: Final = {
    "NumPy array": "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This "
    "means writing to this tensor will result in undefined behavior. You may want to copy the array to protect its "
    "data or make it writable before converting it to a tensor. This type of warning will be suppressed for the rest "
    "of this program.",
    "buffer": "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you "
    "can write to the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer "
    "to protect its data or make it writable before converting it to a tensor. This type of warning will be suppressed "
    "for the rest of this program.",
}


def frombuffer(
    buffer: Any = _MISSING,
    *,
    dtype: Any = _MISSING,
    count: Any = -1,
    offset: Any = 0,
    requires_grad: Any = False,
    **unknown: Any,
) -> Any:
    """A one-dimensional tensor over the memory of an object with the buffer protocol."""
    if unknown:
        raise stray("frombuffer", (buffer,), unknown)
    _given("frombuffer", buffer=buffer, dtype=dtype)
    requires_grad = grad_arg("frombuffer", requires_grad)
    dt = _dtype_arg("frombuffer", dtype)
    if dt is None:
        raise TypeError("frombuffer(): argument 'dtype' must be torch.dtype, not NoneType")
    count, offset = need_int("frombuffer", "count", 0, count), need_int("frombuffer", "offset", 0, offset)
    try:
        seen = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if not seen.c_contiguous:
        raise RuntimeError("could not retrieve buffer from object")
    length, item = seen.nbytes, dt.itemsize
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if offset < 0 or offset >= length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count > 0:
        if offset + count * item > length:
            raise ValueError(
                f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater "
                f"than actual buffer length ({length} bytes)"
            )
        n = count
    else:
        if (length - offset) % item:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of "
                f"element size ({item})"
            )
        n = (length - offset) // item
    if seen.readonly:
        warn_once(_READ_ONLY["buffer"])
    import numpy

    raw = numpy.frombuffer(seen, numpy.uint8)
    storage = _native.Storage.wrap(raw.ctypes.data + offset, n * item, raw)
    return _finish(make(storage, 0, (n,), (1,), dt, CPU, 1), requires_grad)


def _with_array(name: str, t: Any, other: Any) -> Any:
    """`t == array` element by element, and `array / t` as PyTorch writes it; other operators are NumPy's."""
    try:
        if name == "eq":
            return t.eq(from_numpy(other)) if _is_array(other) else NotImplemented
        return t.reciprocal() * other
    except TypeError:
        return NotImplemented


HOOKS.with_array = _with_array
