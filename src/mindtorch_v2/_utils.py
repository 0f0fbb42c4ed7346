"""What pickles of tensors call, under the names they have in PyTorch's `torch._utils` and `torch._tensor`.

Invariant: a tensor is only ever made over memory that holds all its elements, and nothing here grows a storage:
arguments come from files.
"""

from __future__ import annotations

import sys
from typing import Any

from ._attributes import FIELDS
from ._device import as_device
from ._dispatch.keys import CONJUGATE, NEGATIVE, device_bit
from ._dtype import dtype as DType
from ._serialization.errors import CheckpointError, UnsupportedCheckpoint
from ._serialization.state import SURROUNDINGS
from ._storage import UntypedStorage, root
from ._tensor import Tensor
from ._tensor_base import TensorBase, make
from ._typed_storage import TypedStorage

_MOST_ELEMENTS = 1 << 62
_MOST_DIMENSIONS = 64
# How much longer than its storage a tensor may become when it is converted.
_WIDEST = 16


def _ints(values: Any, what: str) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or len(values) > _MOST_DIMENSIONS:
        raise CheckpointError(f"the {what} of a tensor must be a tuple of at most {_MOST_DIMENSIONS} ints")
    for value in values:
        if not isinstance(value, int) or not 0 <= value < _MOST_ELEMENTS:
            raise CheckpointError(f"the {what} of a tensor must be ints that are not negative and fit 64 bits")
    return tuple(int(v) for v in values)


def _over(storage: Any, dt: DType, offset: Any, size: Any, stride: Any) -> Any:
    """A tensor over a storage, which must hold all of it."""
    if not isinstance(storage, UntypedStorage):
        raise CheckpointError(f"a tensor is made of a storage, got {type(storage).__name__}")
    shape, strides = _ints(size, "size"), _ints(stride, "stride")
    (start,) = _ints((offset,), "storage offset")
    if len(shape) != len(strides):
        raise CheckpointError(f"a tensor of {len(shape)} dimensions cannot have {len(strides)} strides")
    count, last = 1, start
    for n, step in zip(shape, strides):
        count *= n
        last += (n - 1) * step
    needed = (last + 1) * dt.itemsize if count else 0
    have = storage.nbytes()
    if count * dt.itemsize >= _MOST_ELEMENTS or needed > have:
        raise CheckpointError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {start}, and itemsize "
            f"{dt.itemsize} requiring a storage size of {needed} are out of bounds for storage of size {have}"
        )
    raw, first = root(storage._raw, dt.itemsize)
    return make(raw, first + start, shape, strides, dt, storage._device, device_bit(storage._device.type))


def _typed(storage: Any) -> TypedStorage:
    if not isinstance(storage, TypedStorage):
        raise CheckpointError(f"a tensor is made of a storage with a dtype, got {type(storage).__name__}")
    return storage


def _finished(t: Any, requires_grad: Any, hooks: Any, metadata: Any) -> Any:
    if metadata:
        set_tensor_metadata(t, metadata)
    if requires_grad:
        t.requires_grad = True
    _hang(t, hooks)
    return t


def _hang(t: Any, hooks: Any) -> None:
    """Hooks were saved with tensors by PyTorch before 1.0."""
    for fn in hooks.values() if isinstance(hooks, dict) else ():
        t.register_hook(fn)


_BITS = {"conj": CONJUGATE, "neg": NEGATIVE}


def get_tensor_metadata(tensor: Any) -> dict[str, bool]:
    """What a pickle says of a tensor beside its geometry: how its memory is read."""
    return {name: True for name, bit in _BITS.items() if tensor._keys & bit}


def set_tensor_metadata(tensor: Any, metadata: Any) -> None:
    """Let a tensor be read as a pickle says."""
    if not isinstance(metadata, dict):
        raise CheckpointError(f"the metadata of a tensor must be a dict, got {type(metadata).__name__}")
    if metadata.get("conj") and not tensor._dtype.is_complex:
        raise CheckpointError(f"a tensor of type {tensor._dtype} cannot be a conjugate")
    for name, bit in _BITS.items():
        if metadata.get(name):
            tensor._keys |= bit


def _affordable(t: Any, dt: DType) -> None:
    """A view may show few bytes very often; a copy of it would take memory that the file does not have."""
    if t.numel() * dt.itemsize > _WIDEST * t.untyped_storage().nbytes():
        raise CheckpointError("a tensor that shows elements of its storage many times cannot be copied from a file")


# -- PyTorch's names ----------------------------------------------------------------------------------------------
def _rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Any:
    typed = _typed(storage)
    return _over(typed._untyped_storage, typed.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    metadata: Any = None,
) -> Any:
    t = _rebuild_tensor(storage, storage_offset, size, stride)
    return _finished(t, requires_grad, backward_hooks, metadata)


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Any:
    if not isinstance(dtype, DType):
        raise CheckpointError(f"expected a torch.dtype, got {type(dtype).__name__}")
    bytes_of = storage._untyped_storage if isinstance(storage, TypedStorage) else storage
    t = _over(bytes_of, dtype, storage_offset, size, stride)
    return _finished(t, requires_grad, backward_hooks, metadata)


def _rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Any:
    from .nn import Parameter

    if not isinstance(data, Tensor):
        raise CheckpointError(f"a parameter is made of a tensor, got {type(data).__name__}")
    made = Parameter(data, bool(requires_grad))
    _hang(made, backward_hooks)
    return made


def _rebuild_parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Any:
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Any:
    import mindtorch_v2 as torch

    shape, strides = _ints(size, "size"), _ints(stride, "stride")
    return torch.empty_strided(shape, strides, dtype=dtype, device="meta", requires_grad=bool(requires_grad))


def _rebuild_wrapper_subclass(
    cls: Any, dtype: Any, size: Any, stride: Any, storage_offset: Any, layout: Any, device: Any, requires_grad: Any
) -> Any:
    return Tensor._make_wrapper_subclass(
        cls,
        _ints(size, "size"),
        strides=_ints(stride, "stride"),
        dtype=dtype,
        storage_offset=storage_offset,
        layout=layout,
        device=_get_restore_location(device),
        requires_grad=requires_grad,
    )


def _rebuild_device_tensor_from_cpu_tensor(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Any:
    if not isinstance(data, Tensor) or not isinstance(dtype, DType):
        raise CheckpointError("a tensor of another device is made of a tensor and a dtype")
    _affordable(data, dtype)
    t: Any = data.to(dtype=dtype, device=_get_restore_location(device))
    return _finished(t, requires_grad, None, None)


def _rebuild_device_tensor_from_numpy(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Any:
    from ._from_data import from_numpy

    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(data, numpy.ndarray):
        raise CheckpointError(f"expected a NumPy array, got {type(data).__name__}")
    return _rebuild_device_tensor_from_cpu_tensor(from_numpy(data), dtype, device, requires_grad)


_rebuild_xla_tensor = _rebuild_device_tensor_from_numpy


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Any:
    from ._sparse.saving import rebuilt

    if not isinstance(data, tuple):
        raise CheckpointError(f"a sparse tensor is made of a tuple, got {type(data).__name__}")
    try:
        return rebuilt(layout, data)
    except (RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"the file holds a sparse tensor that is none: {error}") from error


def _rebuild_nested_tensor(buffer: Any, sizes: Any, strides: Any, storage_offsets: Any) -> Any:
    from ._ragged.construct import strided_view

    try:
        return strided_view(buffer.reshape(-1), sizes, strides, storage_offsets)
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(f"the file holds a nested tensor that is none: {error}") from error


def _rebuild_qtensor(*args: Any) -> Any:
    raise UnsupportedCheckpoint("the file holds a quantized tensor; quantized tensors are not supported")


def _rebuild_from_type(func: Any, type: Any, args: Any, dict: Any) -> Any:
    made = func(*args)
    return made if type is Tensor else _set_obj_state(made.as_subclass(type), dict)


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    return dressed(func(*args), new_type, state)


def dressed(made: Any, new_type: Any, state: Any) -> Any:
    """A rebuilt tensor as one of the class it had, with its Python attributes."""
    if not isinstance(made, Tensor) or not (isinstance(new_type, type) and issubclass(new_type, Tensor)):
        raise CheckpointError("a tensor of a class is made of a tensor and a class of tensors")
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    own: Any = getattr(type(made), "__setstate__", Tensor.__setstate__)
    if own is not Tensor.__setstate__:
        made.__setstate__(state)
        return made
    return _set_obj_state(made, state)


# What this package keeps among the attributes of a tensor: its number, and what its handler answers for.
_OURS = frozenset({"_cdata", "_dispatched", "_extra_keys"})


def _get_obj_state(obj: Any) -> Any:
    """The Python attributes of a tensor: a dict, with slots in a pair of dicts, or what its class says."""
    if type(obj) is Tensor and not obj.__dict__:
        return {}
    # Compiled, the base class has one that mypyc made, of the tensor's own fields.
    own = getattr(type(obj), "__getstate__", None)
    if own is not None and own not in (getattr(object, "__getstate__", None), getattr(Tensor, "__getstate__", None)):
        return obj.__getstate__()
    state = {name: value for name, value in obj.__dict__.items() if name not in _OURS}
    slots = {name: getattr(obj, name) for name in sorted(_slots_of(type(obj))) if hasattr(obj, name)}
    return (state, slots) if slots else state


def _slots_of(cls: type) -> set[str]:
    """The slots that classes of the user's declare."""
    found: set[str] = set()
    for kind in cls.__mro__:
        if kind is Tensor:
            break
        names = kind.__dict__.get("__slots__", ())
        for name in [names] if isinstance(names, str) else names:
            private = name.startswith("__") and not name.endswith("__")
            found.add(f"_{kind.__name__.lstrip('_')}{name}" if private else name)
    return found - {"__dict__", "__weakref__"}


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Give an object its Python attributes. A tensor's own fields are not among them."""
    slots = None
    if isinstance(state, tuple):
        if len(state) != 2:
            raise CheckpointError(f"Invalid serialized state: {type(state).__name__} of length {len(state)}")
        state, slots = state
    for part in (state, slots):
        if part is not None and not isinstance(part, dict):
            raise CheckpointError(f"Invalid serialized state: {type(part).__name__}")
    fields = FIELDS if isinstance(obj, TensorBase) else ()
    for name in state or ():
        if not isinstance(name, str) or name in fields:
            raise CheckpointError("Invalid serialized state: an attribute that is not the user's")
    if state:
        obj.__dict__.update(state)
    allowed = _slots_of(type(obj)) if isinstance(obj, Tensor) else None
    for name, value in (slots or {}).items():
        if not isinstance(name, str) or (allowed is not None and name not in allowed):
            raise CheckpointError("Invalid serialized state: a slot that is not the user's")
        setattr(obj, name, value)
    return obj


def _get_restore_location(device: Any) -> Any:
    """Where `map_location` of the running load sends a tensor that has no storage of its own."""
    to = SURROUNDINGS.map_location
    if to is None:
        return as_device(device) if isinstance(device, str) else device
    if isinstance(to, dict):
        return to.get(device, device)
    if callable(to):
        raise RuntimeError(
            "Callable map_location not supported with _rebuild_wrapper_subclass or _rebuild_device_tensor_from_numpy"
        )
    return to


def __getattr__(name: str) -> Any:
    """Helpers that PyTorch keeps here and that have nothing to do with pickles."""
    from . import _utils_names

    if name in _utils_names.__all__:
        return getattr(_utils_names, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _maybe_view_chunk_cat(res: Any, group_size: int, gather_dim: int) -> Any:
    """`torch.cat(torch.chunk(res, group_size, 0), gather_dim)`: a view where nothing has to be moved."""
    if gather_dim == 0:
        return res
    parts = res.unflatten(0, (group_size, -1)).movedim(0, gather_dim)
    return parts.flatten(gather_dim, gather_dim + 1)
