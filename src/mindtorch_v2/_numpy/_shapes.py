"""Shapes of arrays: reshaped, moved, repeated, joined and split.

Invariant: values are never changed, and promoted only where arrays are joined.
"""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch

from ._dtypes import promote
from ._normalizations import (
    ArrayLike,
    ArrayLikeOrScalar,
    CastingModes,
    DTypeLike,
    NotImplementedType,
    OutArray,
    SequenceOfArrays,
    normalizer,
)
from ._util import (
    AxisError,
    axis_none_flatten,
    expand_shape,
    is_sequence,
    normalize_axis_index,
    normalize_axis_tuple,
    typecast_tensors,
)


@normalizer
def copy(a: ArrayLike, order: NotImplementedType = "K", subok: NotImplementedType = False) -> Any:
    """A copy."""
    return a.clone()


# -- one array --------------------------------------------------------------------------------------------------------
@normalizer
def ravel(a: ArrayLike, order: NotImplementedType = "C") -> Any:
    """All elements in a line, a view where possible."""
    return torch.flatten(a)


@normalizer
def reshape(a: ArrayLike, newshape: Any, order: NotImplementedType = "C") -> Any:
    """The elements in another shape."""
    newshape = newshape[0] if len(newshape) == 1 else newshape
    return a.reshape(newshape)


@normalizer
def resize(a: ArrayLike, new_shape: Any = None) -> Any:
    """A new array of another shape, filled with repeated elements."""
    if new_shape is None:
        return a
    sizes = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    if any(size < 0 for size in sizes):
        raise ValueError("all elements of `new_shape` must be non-negative")
    line = a.flatten()
    count = math.prod(sizes)
    if line.numel() == 0 or count == 0:
        return torch.zeros(sizes, dtype=a.dtype)
    return line.repeat(-(-count // line.numel()))[:count].reshape(sizes)


@normalizer
def squeeze(a: ArrayLike, axis: Any = None) -> Any:
    """Without axes of one element."""
    if axis == ():
        return a
    # As in PyTorch, where only the last axis of a tuple is taken out.
    if isinstance(axis, tuple):
        axis = axis[-1]
    return a.squeeze() if axis is None else a.squeeze(axis)


@normalizer
def expand_dims(a: ArrayLike, axis: Any) -> Any:
    """With new axes of one element."""
    return a.reshape(expand_shape(a.shape, axis))


@normalizer
def transpose(a: ArrayLike, axes: Any = None) -> Any:
    """Axes in another order, reversed without one."""
    if axes in [(), None, (None,)]:
        axes = tuple(reversed(range(a.dim())))
    elif len(axes) == 1 and is_sequence(axes[0]):
        axes = axes[0]
    return a.permute(axes)


@normalizer
def swapaxes(a: ArrayLike, axis1: Any, axis2: Any) -> Any:
    """Two axes exchanged."""
    return torch.swapaxes(a, normalize_axis_index(axis1, a.dim()), normalize_axis_index(axis2, a.dim()))


@normalizer
def moveaxis(a: ArrayLike, source: Any, destination: Any) -> Any:
    """Axes moved to other places."""
    source = normalize_axis_tuple(source, a.dim(), "source")
    return torch.moveaxis(a, source, normalize_axis_tuple(destination, a.dim(), "destination"))


@normalizer
def rollaxis(a: ArrayLike, axis: Any, start: Any = 0) -> Any:
    """An axis moved back to where another starts."""
    n = a.dim()
    axis = normalize_axis_index(axis, n)
    place = start + n if start < 0 else start
    if not 0 <= place < n + 1:
        raise AxisError(f"'start' arg requires {-n} <= start < {n + 1}, but {start} was passed in")
    if axis < place:
        place -= 1
    if axis == place:
        return a
    order = [ax for ax in range(n) if ax != axis]
    order.insert(place, axis)
    # PyTorch takes the order of axes for a shape here, and so does this one.
    return a.view(order)


@normalizer
def flip(m: ArrayLike, axis: Any = None) -> Any:
    """Elements in reverse along axes."""
    axis = tuple(range(m.dim())) if axis is None else normalize_axis_tuple(axis, m.dim())
    return torch.flip(m, axis)


@normalizer
def flipud(m: ArrayLike) -> Any:
    """Rows in reverse."""
    return torch.flipud(m)


@normalizer
def fliplr(m: ArrayLike) -> Any:
    """Columns in reverse."""
    return torch.fliplr(m)


@normalizer
def rot90(m: ArrayLike, k: Any = 1, axes: Any = (0, 1)) -> Any:
    """Turned by right angles."""
    return torch.rot90(m, k, normalize_axis_tuple(axes, m.dim()))


@normalizer
def roll(a: ArrayLike, shift: Any, axis: Any = None) -> Any:
    """Elements moved along axes, the last to the front."""
    if axis is not None:
        axis = normalize_axis_tuple(axis, a.dim(), allow_duplicate=True)
        if not isinstance(shift, tuple):
            shift = (shift,) * len(axis)
    return torch.roll(a, shift, axis)


@normalizer
def diagonal(a: ArrayLike, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """A diagonal of two axes."""
    return torch.diagonal(a, offset, normalize_axis_index(axis1, a.dim()), normalize_axis_index(axis2, a.dim()))


@normalizer
def tril(m: ArrayLike, k: Any = 0) -> Any:
    """What is at and below a diagonal."""
    return torch.tril(m, k)


@normalizer
def triu(m: ArrayLike, k: Any = 0) -> Any:
    """What is at and above a diagonal."""
    return torch.triu(m, k)


@normalizer
def tile(A: ArrayLike, reps: Any) -> Any:
    """The array, laid out several times."""
    return torch.tile(A, (reps,) if isinstance(reps, int) else reps)


@normalizer
def repeat(a: ArrayLike, repeats: ArrayLikeOrScalar, axis: Any = None) -> Any:
    """Each element several times."""
    return torch.repeat_interleave(a, repeats, axis)


@normalizer
def pad(array: ArrayLike, pad_width: ArrayLike, mode: Any = "constant", **kwargs: Any) -> Any:
    """With values put around."""
    if mode != "constant":
        raise NotImplementedError
    value = torch.as_tensor(kwargs.get("constant_values", 0), dtype=array.dtype)
    widths = torch.broadcast_to(pad_width, (array.dim(), 2)).flip((0,)).flatten()
    return torch.nn.functional.pad(array, tuple(widths.tolist()), value=value.item())


# -- broadcasting -----------------------------------------------------------------------------------------------------
@normalizer
def broadcast_to(array: ArrayLike, shape: Any, subok: NotImplementedType = False) -> Any:
    """A view of the array in a larger shape."""
    return torch.broadcast_to(array, shape)


@normalizer
def broadcast_arrays(*args: ArrayLike, subok: NotImplementedType = False) -> Any:
    """Arrays in the shape that all of them can have."""
    return torch.broadcast_tensors(*args)


def broadcast_shapes(*args: Any) -> Any:
    """The shape that all of several can be broadcast to."""
    return torch.broadcast_shapes(*args)


def _at_least(function: Any, arrays: tuple[Any, ...]) -> Any:
    found = function(*arrays)
    return list(found) if isinstance(found, tuple) else found


@normalizer
def atleast_1d(*arys: ArrayLike) -> Any:
    """Arrays with a dimension at least."""
    return _at_least(torch.atleast_1d, arys)


@normalizer
def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays with two dimensions at least."""
    return _at_least(torch.atleast_2d, arys)


@normalizer
def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays with three dimensions at least."""
    return _at_least(torch.atleast_3d, arys)


# -- joining ----------------------------------------------------------------------------------------------------------
def _concatenate(tensors: Any, axis: Any = 0, out: Any = None, dtype: Any = None, casting: Any = "same_kind") -> Any:
    if not tensors:
        raise ValueError("need at least one array to concatenate")
    tensors, axis = axis_none_flatten(*tensors, axis=axis)
    return torch.cat(_joinable(tensors, out, dtype, casting), axis)


def _joinable(tensors: Any, out: Any, dtype: Any, casting: Any) -> tuple[Any, ...]:
    """Tensors in the one dtype that they are joined in."""
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    wanted = dtype if out is None else out.dtype.torch_dtype
    if wanted is None:
        wanted = tensors[0].dtype
        for t in tensors:
            wanted = promote(wanted, t.dtype)
    return typecast_tensors(tensors, wanted, casting)


@normalizer
def concatenate(
    ar_tuple: SequenceOfArrays,
    axis: Any = 0,
    out: OutArray | None = None,
    dtype: DTypeLike | None = None,
    casting: CastingModes | None = "same_kind",
) -> Any:
    """Arrays joined along an axis."""
    return _concatenate(ar_tuple, axis, out, dtype, casting)


@normalizer
def append(arr: ArrayLike, values: ArrayLike, axis: Any = None) -> Any:
    """An array with values at its end."""
    return _concatenate((arr, values), axis)


@normalizer
def stack(
    arrays: SequenceOfArrays,
    axis: Any = 0,
    out: OutArray | None = None,
    *,
    dtype: DTypeLike | None = None,
    casting: CastingModes | None = "same_kind",
) -> Any:
    """Arrays joined along a new axis."""
    if not arrays:
        raise ValueError("need at least one array to concatenate")
    tensors = _joinable(arrays, out, dtype, casting)
    return torch.stack(tensors, normalize_axis_index(axis, tensors[0].dim() + 1))


@normalizer
def vstack(tup: SequenceOfArrays, *, dtype: DTypeLike | None = None, casting: CastingModes | None = "same_kind") -> Any:
    """Arrays joined by rows."""
    return _concatenate(tuple(torch.atleast_2d(t) for t in tup), 0, None, dtype, casting)


row_stack = vstack


@normalizer
def hstack(tup: SequenceOfArrays, *, dtype: DTypeLike | None = None, casting: CastingModes | None = "same_kind") -> Any:
    """Arrays joined by columns."""
    tensors = tuple(torch.atleast_1d(t) for t in tup)
    axis = 0 if tensors and tensors[0].dim() == 1 else 1
    return _concatenate(tensors, axis, None, dtype, casting)


@normalizer
def dstack(tup: SequenceOfArrays, *, dtype: DTypeLike | None = None, casting: CastingModes | None = "same_kind") -> Any:
    """Arrays joined along the third axis."""
    return _concatenate(tuple(torch.atleast_3d(t) for t in tup), 2, None, dtype, casting)


@normalizer
def column_stack(
    tup: SequenceOfArrays, *, dtype: DTypeLike | None = None, casting: CastingModes | None = "same_kind"
) -> Any:
    """Lines as columns of a matrix."""
    columns = tuple(t.reshape(-1, 1) if t.dim() <= 1 else t for t in tup)
    return _concatenate(columns, 1, None, dtype, casting)


# -- splitting --------------------------------------------------------------------------------------------------------
def _split(tensor: torch.Tensor, indices_or_sections: Any, axis: int, strict: bool = False) -> Any:
    if isinstance(indices_or_sections, int):
        return _sections(tensor, indices_or_sections, axis, strict)
    if isinstance(indices_or_sections, (list, tuple)) or torch.is_tensor(indices_or_sections):
        return torch.tensor_split(tensor, tuple(int(i) for i in indices_or_sections), axis)
    raise TypeError(f"split_helper: {type(indices_or_sections)}")


def _sections(tensor: torch.Tensor, sections: int, axis: int, strict: bool) -> Any:
    if sections <= 0:
        raise ValueError
    if strict and tensor.shape[axis] % sections:
        raise ValueError("array split does not result in an equal division")
    return torch.tensor_split(tensor, sections, axis)


def _places(indices_or_sections: Any) -> Any:
    from ._ndarray import ndarray

    return indices_or_sections.tensor if isinstance(indices_or_sections, ndarray) else indices_or_sections


@normalizer
def array_split(ary: ArrayLike, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Parts of nearly equal size, or parted at indices."""
    ary.shape[axis]
    return _split(ary, _places(indices_or_sections), axis)


@normalizer
def split(ary: ArrayLike, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Parts of equal size, or parted at indices."""
    ary.shape[axis]
    return _split(ary, _places(indices_or_sections), axis, strict=True)


@normalizer
def hsplit(ary: ArrayLike, indices_or_sections: Any) -> Any:
    """Parts by columns."""
    if ary.dim() == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return _split(ary, _places(indices_or_sections), 1 if ary.dim() > 1 else 0, strict=True)


@normalizer
def vsplit(ary: ArrayLike, indices_or_sections: Any) -> Any:
    """Parts by rows."""
    if ary.dim() < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return _split(ary, _places(indices_or_sections), 0, strict=True)


@normalizer
def dsplit(ary: ArrayLike, indices_or_sections: Any) -> Any:
    """Parts along the third axis."""
    if ary.dim() < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return _split(ary, _places(indices_or_sections), 2, strict=True)


# -- questions --------------------------------------------------------------------------------------------------------
@normalizer
def ndim(a: ArrayLike) -> Any:
    """How many dimensions."""
    return a.dim()


@normalizer
def shape(a: ArrayLike) -> Any:
    """The sizes, in a tuple."""
    return tuple(a.shape)


@normalizer
def size(a: ArrayLike, axis: Any = None) -> Any:
    """How many elements, in all or along an axis."""
    return a.numel() if axis is None else tuple(a.shape)[axis]


NAMES = [
    *("append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes"),
    *("broadcast_to", "column_stack", "concatenate", "copy", "diagonal", "dsplit", "dstack", "expand_dims", "flip"),
    *("fliplr", "flipud", "hsplit", "hstack", "moveaxis", "ndim", "pad", "ravel", "repeat", "reshape", "resize"),
    *("roll", "rollaxis", "rot90", "row_stack", "shape", "size", "split", "squeeze", "stack", "swapaxes", "tile"),
    *("transpose", "tril", "triu", "vsplit", "vstack"),
]
