"""`t[key]` and `t[key] = value`: what is a view, what is a copy, in PyTorch's order of steps.

Invariant: integers, slices, None and Ellipsis make views through the view rows; tensors, lists and booleans make one
call of the `index` or `index_put_` row with integer indices (masks become positions first), or of a row for masks.
"""

from __future__ import annotations

from typing import Any, Final

from . import _native
from ._backends.common.overlap import check_no_internal_overlap
from ._core_operators import CORE, HOOKS
from ._device import CPU as CPU_DEVICE
from ._dispatch.keys import AUTOGRAD, BATCHED, CPU, INFERENCE, META, NESTED, SPARSE, TORCH_DISPATCH, VIEW, WRAPPED
from ._dispatch.state import STATE, modes, unwatched
from ._dtype import bool as bool_
from ._dtype import int64
from ._dtype_names import type_string
from ._mypyc import i64
from ._numbers import is_number, no_number
from ._sizes import is_ragged, long
from ._strides import contiguous_strides
from ._tensor_base import TensorBase, alias, counter, make, requires_grad
from ._warn import warn

_list_shape: Final[Any] = _native.list_shape
_from_list: Final[Any] = _native.from_list

# Codes behind it are of dtypes that `masked_select` may refuse, and that indexing takes.
_LAST_SELECTED: Final[i64] = 12
_TYPES_TEXT: Final = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})"
)
_MASK_TEXT: Final = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with "
    "a boolean mask."
)
_SEQUENCE_TEXT: Final = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
    "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], "
    "which will result either in an error or a different result"
)


def getitem(t: TensorBase, key: Any) -> Any:
    """`t[key]`."""
    if isinstance(key, int) and not isinstance(key, bool):
        return select(t, 0, key, 0)
    if isinstance(key, slice):
        if len(t._shape) == 0:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        part = slice_dim(t, 0, key)
        return CORE.alias.call((t,)) if part is t else part
    if isinstance(key, TensorBase):
        if key._dtype is int64:
            if len(key._shape) > 0 and len(t._shape) > 0:
                return CORE.index.call((t, (key,)))
        elif (
            key._dtype is bool_
            and key._shape == t._shape
            and len(t._shape) > 0
            and t._dtype.code <= _LAST_SELECTED
            and not requires_grad(t)
            and unseen(t, key)
        ):
            return CORE.masked_select.call((t, key))
    if key is None:
        return CORE.unsqueeze.call((t, 0))
    if key is ...:
        return CORE.alias.call((t,))
    out, indices = apply_key(t, as_tuple(key))
    if indices is not None:
        return CORE.index.call((out, positions(out, indices)))
    if out is t:
        return CORE.alias.call((t,))
    return out


def is_small(value: object) -> bool:
    """Whether it is a number that no dtype of a tensor is too narrow for: a fill refuses others, an assignment wraps or
    rounds them."""
    if isinstance(value, float):
        return -32768.0 <= value <= 32767.0 or value != value
    return isinstance(value, int) and -32768 <= value <= 32767


def is_number_of(t: TensorBase, value: object) -> bool:
    """Whether it is a tensor without dimensions that a fill with its number writes as an assignment would."""
    if not isinstance(value, TensorBase) or len(value._shape) != 0 or value._dtype is not t._dtype:
        return False
    return t._keys & value._keys & CPU != 0 and not requires_grad(value) and unseen(value, value)


def over_rows(mask: TensorBase, ndim: int) -> TensorBase:
    """A mask of the first dimensions that covers the others as well."""
    more = ndim - len(mask._shape)
    return mask if more == 0 else alias(mask, mask._shape + (1,) * more, mask._stride + (1,) * more, mask._offset)


def setitem(t: TensorBase, key: Any, value: Any) -> None:
    """`t[key] = value`."""
    if t._keys & SPARSE and not t._keys & NESTED:
        raise TypeError("Cannot assign to a sparse tensor")
    if not isinstance(value, TensorBase):
        value = plain_value(t, value)
    indices: list[Any] | None = None
    if key is ...:
        out = t
    elif isinstance(key, int) and not isinstance(key, bool):
        out = select(t, 0, key, 0)
    elif isinstance(key, slice):
        if len(t._shape) == 0:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        out = slice_dim(t, 0, key)
    else:
        if (
            isinstance(key, TensorBase)
            and key._dtype.is_bool
            and (is_small(value) or is_number_of(t, value))
            and len(key._shape) > 0
            and key._shape == t._shape[: len(key._shape)]
            and not requires_grad(t)
            and unseen(t, key)
        ):
            number = TensorBase.item(value) if isinstance(value, TensorBase) else value
            CORE.masked_fill_.call((t, over_rows(key, len(t._shape)), number))
            return
        if isinstance(key, TensorBase) and key._dtype is int64 and len(key._shape) > 0 and len(t._shape) > 0:
            out = t
            indices = [key]
        else:
            out, indices = apply_key(t, as_tuple(key))
    if indices is None:
        if not isinstance(value, TensorBase) and not requires_grad(out) and unseen(out, out):
            if isinstance(value, int):
                long(value)
            # PyTorch writes a 0-dim tensor, for which the target may not overlap itself.
            check_no_internal_overlap(out)
            CORE.fill_.call((out, value))
            return
        copy_value(out, as_value(t, value))
        return
    v = without_leading_ones(as_value(t, value))
    CORE.index_put_.call((out, positions(out, indices, v), v, False))


def unseen(t: TensorBase, key: TensorBase) -> bool:
    """Whether nobody looks at the operators of the call: then a shorter way to the same result will do."""
    return unwatched() and ((t._keys | key._keys) & WRAPPED) == 0


def plain_value(t: TensorBase, value: Any) -> Any:
    """A number that may be assigned: of NumPy's scalars integers, and what is a Python float or complex number too."""
    if isinstance(value, float) or isinstance(value, int) or isinstance(value, complex):
        return value
    kind = type(value)
    if is_number(value) and value.dtype.kind in "iu":
        return value.item()
    name = f"numpy.{kind.__name__}" if getattr(kind, "__module__", None) == "numpy" else kind.__name__
    raise TypeError(f"can't assign a {name} to a {type_string(t._dtype, t._device)}")


def as_value(t: TensorBase, value: Any) -> TensorBase:
    if isinstance(value, TensorBase):
        return value
    if isinstance(value, int):
        long(value)
    got: TensorBase = HOOKS.scalar(value, t)
    return got


def copy_value(out: TensorBase, value: TensorBase) -> None:
    """Broadcast a value into a view; leading dimensions of size one do not count."""
    if value._shape != out._shape:
        if len(value._shape) == 0 and value._keys & CPU:
            CORE.fill_.call((out, value))
            return
        value = CORE.expand.call((without_leading_ones(value), out._shape, False))
    CORE.copy_.call((out, value, False))


def without_leading_ones(value: TensorBase) -> TensorBase:
    shape = value._shape
    extra = 0
    while extra < len(shape) and shape[extra] == 1:
        extra += 1
    if extra == 0:
        return value
    got: TensorBase = CORE.view.call((value, shape[extra:]))
    return got


# -- the steps ----------------------------------------------------------------------------------------------------
def as_tuple(key: Any) -> tuple[Any, ...]:
    """A key as a tuple of per-dimension indices."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, (list, str)) and len(key) < 32:
        for x in key:
            if x is None or x is ... or isinstance(x, (slice, list, tuple, str, TensorBase)):
                warn(_SEQUENCE_TEXT)
                return tuple(key)
    return (key,)


def specified(key: tuple[Any, ...]) -> i64:
    """How many dimensions of the tensor a key names."""
    n: i64 = 0
    for x in key:
        if x is None or x is ... or isinstance(x, bool):
            continue
        if isinstance(x, TensorBase):
            n += len(x._shape) if is_mask(x) else 1
        else:
            n += 1
    return n


def is_mask(t: TensorBase) -> bool:
    return t._dtype.is_bool or t._dtype.name == "uint8"


def apply_key(t: TensorBase, key: tuple[Any, ...]) -> tuple[TensorBase, list[Any] | None]:
    """Apply the view part of a key. Returns the view, and the index tensors by dimension if there are any."""
    named = specified(key)
    if named > len(t._shape):
        raise IndexError(f"too many indices for tensor of dimension {len(t._shape)}")
    out = t
    dim: i64 = 0
    indices: list[Any] | None = None
    place: i64 = -1
    for x in key:
        place += 1
        if isinstance(x, bool):
            out = CORE.unsqueeze.call((out, int(dim)))
            indices = record(indices, dim, HOOKS.from_data([0] if x else [], int64, t))
            dim += 1
        elif isinstance(x, int):
            out = select(out, dim, x, place)
        elif isinstance(x, slice):
            out = slice_dim(out, dim, x)
            dim += 1
        elif x is None:
            out = CORE.unsqueeze.call((out, int(dim)))
            dim += 1
        elif x is ...:
            dim += len(t._shape) - named
        elif isinstance(x, TensorBase):
            if len(x._shape) == 0 and not x._dtype.is_inexact and (x._keys & BATCHED) == 0:
                if is_mask(x):
                    out = CORE.unsqueeze.call((out, int(dim)))
                    # A copy, as PyTorch's is: the mask may be written before the backward pass.
                    mask = CORE.to_copy.call((CORE.view.call((x, (1,))), None, None, None, False))
                    indices = record(indices, dim, mask)
                    dim += 1
                else:
                    out = select(out, dim, int(TensorBase.item(x)), place)
            else:
                indices = record(indices, dim, x)
                dim += len(x._shape) if is_mask(x) else 1
        else:
            y = from_object(x, t)
            if isinstance(y, TensorBase):
                indices = record(indices, dim, y)
                dim += len(y._shape) if is_mask(y) else 1
            else:
                out = select(out, dim, y, place)
    return out, indices


def list_shape(x: Any) -> tuple[tuple[int, ...], int]:
    try:
        found: tuple[tuple[int, ...], int] = _list_shape(x)
    except ValueError:
        if any([y is x for y in x]):
            raise TypeError("new(): self-referential lists are incompatible") from None
        raise
    return found


def from_object(x: Any, t: TensorBase) -> Any:
    """Lists and arrays become index tensors, NumPy integers become ints."""
    if isinstance(x, (list, tuple)):
        if t._keys & CPU:
            shape, kind = list_shape(x)
            if kind == 1:
                made = make(_from_list(x, shape, 4), 0, shape, contiguous_strides(shape), int64, CPU_DEVICE, CPU)
                return HOOKS.lifted(made) if moded() else made
        data = HOOKS.from_data(x, None, t)
        if isinstance(data, TensorBase) and data._dtype.is_inexact:
            return CORE.to_copy.call((data, int64, None, None, False))
        return data
    if hasattr(x, "__array__") and hasattr(x, "shape") and len(x.shape) > 0:
        return HOOKS.from_data(x, None, t)
    if hasattr(x, "__index__") and not isinstance(x, type):
        index = x.__index__()
        if isinstance(index, int):
            return int(index)
    if isinstance(x, range):
        return HOOKS.from_data(list(x), int64, t)
    if isinstance(x, str):
        raise TypeError("new(): invalid data type 'str'")
    raise IndexError(_TYPES_TEXT.format(type(x).__name__))


def record(indices: list[Any] | None, dim: i64, x: Any) -> list[Any]:
    if indices is None:
        indices = []
    while len(indices) < dim:
        indices.append(None)
    indices.append(x)
    if isinstance(x, TensorBase) and is_mask(x):
        extra: i64 = len(x._shape) - 1
        while extra > 0:
            indices.append(SPANNED)
            extra -= 1
    return indices


class Spanned:
    """Stands for a dimension that the mask before it also covers."""


SPANNED: Final = Spanned()


def select(t: TensorBase, dim: i64, i: int, shown: i64) -> Any:
    """One position of a dimension. `shown` is what PyTorch's error calls it: the index's place in the key."""
    shape = t._shape
    if len(shape) == 0:
        if i != 0:
            raise IndexError(f"index {i} is out of bounds for dimension 0 with size 0")
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
            "convert a 0-dim "
            "tensor to a number"
        )
    # A second ellipsis leads behind the last dimension.
    n: i64 = shape[dim] if dim < len(shape) else 0
    k: i64 = long(i)
    if k < -n or k >= n:
        raise IndexError(f"index {i} is out of bounds for dimension {shown} with size {n}")
    return CORE.select.call((t, int(dim), i))


def slice_dim(t: TensorBase, dim: i64, s: slice) -> Any:
    start = bound(s.start)
    stop = bound(s.stop)
    step = bound(s.step)
    if step is None:
        step = 1
    elif step == 0:
        raise ValueError("slice step cannot be zero")
    elif step < 0:
        raise ValueError("step must be greater than zero")
    if step == 1 and (start is None or start == 0) and (stop is None or dim >= len(t._shape) or stop >= t._shape[dim]):
        return t
    return CORE.slice.call((t, int(dim), start, stop, step))


def bound(x: Any) -> Any:
    if x is None:
        return x
    if is_ragged(x):
        raise no_number()
    if isinstance(x, int):  # of any size: what is beyond the end is the end
        return x
    if hasattr(x, "__index__"):
        return int(x.__index__())
    raise TypeError("slice indices must be integers or None or have an __index__ method")


# -- index tensors ------------------------------------------------------------------------------------------------
def positions(t: TensorBase, indices: list[Any], values: TensorBase | None = None) -> tuple[Any, ...]:
    """Integer index tensors by dimension; masks become the positions of their true elements.

    values: what is to be written there; it tells how many a mask without data (on meta) is taken to have."""
    plain = True
    for x in indices:
        if x is None:
            continue
        if not isinstance(x, TensorBase):
            plain = False
        elif x._dtype.name != "int64":
            plain = False
    if plain:
        return tuple(indices)
    out: list[Any] = []
    kept = False
    recorded = t._keys & (AUTOGRAD | VIEW) != 0 or (values is not None and values._keys & (AUTOGRAD | VIEW) != 0)
    # Who takes the operator over sees masks; gradients are those of positions, unless who has the mask answers for it.
    whole = not recorded and (moded() or takes_over_any(t, indices))
    for x in indices:
        if x is None:
            out.append(None)
        elif not isinstance(x, TensorBase):
            continue
        elif is_mask(x):
            if x._dtype.name == "uint8":
                warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
            at = len(out)
            if at + len(x._shape) > len(t._shape):
                raise IndexError(f"too many indices for tensor of dimension {len(t._shape)} (got {len(indices)})")
            for j, n in enumerate(x._shape):
                if n != t._shape[at + j]:
                    raise IndexError(
                        f"The shape of the mask {list(x._shape)} at index {j} does not match the shape of the "
                        f"indexed tensor "
                        f"{list(t._shape)} at index {at + j}"
                    )
            if whole or x._keys & TORCH_DISPATCH:
                kept = True
                out.append(x)
                out.extend([SPANNED] * (len(x._shape) - 1))
                continue
            if x._keys & META and values is not None:
                out.extend(places_unknown(t, x, at, indices, values))
                continue
            if x._keys & BATCHED:
                raise RuntimeError(_MASK_TEXT)
            found = CORE.nonzero.call((x,))
            if recorded and not x._keys & INFERENCE:
                # The backward pass needs the mask as it was: who writes to it writes to these positions.
                found._vc = counter(x)
            for j in range(len(x._shape)):
                out.append(CORE.select.call((found, 1, j)))
        elif x._dtype.name == "int64":
            out.append(x)
        elif x._dtype.name == "int32":
            out.append(CORE.to_copy.call((x, int64, None, None, False)))
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return tuple([x for x in out if x is not SPANNED]) if kept else tuple(out)


def moded() -> bool:
    """Whether a mode takes operators over."""
    return STATE.active != 0 and modes() & TORCH_DISPATCH != 0


def takes_over_any(t: TensorBase, indices: list[Any]) -> bool:
    """Whether a tensor's class takes operators over."""
    if t._keys & TORCH_DISPATCH:
        return True
    for x in indices:
        if isinstance(x, TensorBase) and x._keys & TORCH_DISPATCH:
            return True
    return False


def places_unknown(t: TensorBase, mask: TensorBase, at: int, indices: list[Any], values: TensorBase) -> list[Any]:
    """Positions for a mask whose data nobody has: as many as there are values to write, which is what must hold."""
    count = 1
    others = False
    for x in indices:
        if isinstance(x, TensorBase) and x is not mask:
            others = True
    d = len(values._shape) - (len(t._shape) - at - len(mask._shape)) - 1
    if d >= 0 and not others:
        count = values._shape[d]
    # The mask's memory serves: it is only a size.
    one = make(mask._storage, 0, (count,), (1,), int64, mask._device, META)
    return [one for _ in mask._shape]
