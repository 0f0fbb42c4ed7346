"""Choosing, sorting, finding and writing elements.

Invariant: functions that write change the tensor of the array they were given, and nothing else.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ._dtypes import promote
from ._normalizations import (
    ArrayLike,
    ArrayLikeOrScalar,
    CastingModes,
    NDArray,
    NotImplementedType,
    OutArray,
    SequenceOfArrays,
    normalizer,
)
from ._util import axis_none_flatten, cast_if_needed, normalize_axis_index, typecast_tensor


# -- finding ----------------------------------------------------------------------------------------------------------
@normalizer
def nonzero(a: ArrayLike) -> Any:
    """Where elements are not zero, by dimension."""
    return torch.nonzero(a, as_tuple=True)


@normalizer
def argwhere(a: ArrayLike) -> Any:
    """Where elements are not zero, by element."""
    return torch.argwhere(a)


@normalizer
def flatnonzero(a: ArrayLike) -> Any:
    """Where elements are not zero, counted in a line."""
    return torch.flatten(a).nonzero(as_tuple=True)[0]


@normalizer
def where(condition: ArrayLike, x: ArrayLikeOrScalar | None = None, y: ArrayLikeOrScalar | None = None, /) -> Any:
    """One of two values by a condition, or where it holds."""
    if (x is None) != (y is None):
        raise ValueError("either both or neither of x and y should be given")
    if condition.dtype is not torch.bool:
        condition = condition.to(torch.bool)
    return torch.where(condition) if x is None else torch.where(condition, x, y)


@normalizer
def searchsorted(a: ArrayLike, v: ArrayLike, side: Any = "left", sorter: ArrayLike | None = None) -> Any:
    """Where elements would have to be put in to keep the order."""
    if a.dtype.is_complex:
        raise NotImplementedError(f"searchsorted with dtype={a.dtype}")
    wanted = promote(a.dtype, v.dtype)
    return torch.searchsorted(cast_if_needed(a, wanted), cast_if_needed(v, wanted), side=side, sorter=sorter)


# -- sorting ----------------------------------------------------------------------------------------------------------
def _sorted(tensor: torch.Tensor, axis: Any, kind: Any) -> tuple[torch.Tensor, int, bool]:
    if tensor.dtype.is_complex:
        raise NotImplementedError(f"sorting {tensor.dtype} is not supported")
    (tensor,), axis = axis_none_flatten(tensor, axis=axis)
    if tensor.dim() > 0 or axis != -1:
        axis = normalize_axis_index(axis, tensor.dim())
    return tensor, axis, kind == "stable"


@normalizer
def sort(a: ArrayLike, axis: Any = -1, kind: Any = None, order: NotImplementedType = None) -> Any:
    """Elements in order along an axis."""
    a, axis, stable = _sorted(a, axis, kind)
    return torch.sort(a, dim=axis, stable=stable).values


@normalizer
def argsort(a: ArrayLike, axis: Any = -1, kind: Any = None, order: NotImplementedType = None) -> Any:
    """Where the elements are that stand in order along an axis."""
    a, axis, stable = _sorted(a, axis, kind)
    return torch.argsort(a, dim=axis, stable=stable)


@normalizer
def unique(
    ar: ArrayLike,
    return_index: NotImplementedType = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
    *,
    equal_nan: NotImplementedType = True,
) -> Any:
    """Different elements in order."""
    (ar,), axis = axis_none_flatten(ar, axis=axis)
    axis = normalize_axis_index(axis, ar.dim())
    return torch.unique(ar, return_inverse=return_inverse, return_counts=return_counts, dim=axis)


# -- taking -----------------------------------------------------------------------------------------------------------
@normalizer
def take(
    a: ArrayLike, indices: ArrayLike, axis: Any = None, out: OutArray | None = None, mode: NotImplementedType = "raise"
) -> Any:
    """Elements by index along an axis."""
    (a,), axis = axis_none_flatten(a, axis=axis)
    axis = normalize_axis_index(axis, a.dim())
    return a[(slice(None),) * axis + (indices,)]


@normalizer
def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: Any) -> Any:
    """Elements by index, each line by its own."""
    (arr,), axis = axis_none_flatten(arr, axis=axis)
    return torch.take_along_dim(arr, indices, normalize_axis_index(axis, arr.dim()))


@normalizer
def choose(
    a: ArrayLike, choices: SequenceOfArrays, out: OutArray | None = None, mode: NotImplementedType = "raise"
) -> Any:
    """Each element from one of several arrays."""
    wanted = choices[0].dtype
    for choice in choices:
        wanted = promote(wanted, choice.dtype)
    if a.dtype.is_floating_point or a.dtype.is_complex:
        raise TypeError(f"Cannot cast array data from {a.dtype} to torch.int64 according to the rule 'safe'")
    line = torch.stack(torch.broadcast_tensors(*(cast_if_needed(c, wanted) for c in choices)))
    shape = torch.broadcast_shapes(a.shape, line.shape[1:])
    count = line.shape[0]
    chosen = torch.broadcast_to(a, shape)
    if chosen.numel() and (int(chosen.max()) >= count or int(chosen.min()) < -count):
        wrong = next(int(i) for i in chosen.flatten() if not -count <= int(i) < count)
        raise IndexError(f"index {wrong} is out of bounds for dimension 0 with size {count}")
    places = torch.where(chosen < 0, chosen + count, chosen).to(torch.int64)
    line = line.reshape((count,) + (1,) * (len(shape) + 1 - line.dim()) + tuple(line.shape[1:]))
    return torch.gather(line.broadcast_to((count, *shape)), 0, places.unsqueeze(0))[0]


# -- writing ----------------------------------------------------------------------------------------------------------
@normalizer
def put(a: NDArray, indices: ArrayLike, values: ArrayLike, mode: NotImplementedType = "raise") -> Any:
    """Write elements by index into a line of them."""
    values = values.type(a.dtype)
    if indices.numel() > values.numel():
        values = values.flatten().repeat(-(-indices.numel() // values.numel()))
    if indices.numel() < values.numel():
        values = values.flatten()[: indices.numel()]
    a.put_(indices, values)


@normalizer
def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: Any) -> Any:
    """Write elements by index, each line by its own."""
    (arr,), axis = axis_none_flatten(arr, axis=axis)
    axis = normalize_axis_index(axis, arr.dim())
    indices, values = torch.broadcast_tensors(indices, values)
    arr.scatter_(axis, indices, cast_if_needed(values, arr.dtype))


@normalizer
def copyto(
    dst: NDArray, src: ArrayLike, casting: CastingModes | None = "same_kind", where: NotImplementedType = None
) -> Any:
    """Write an array over another."""
    dst.copy_(typecast_tensor(src, dst.dtype, casting))


@normalizer
def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: Any = False) -> Any:
    """Write values on the main diagonal."""
    if a.dim() < 2:
        raise ValueError("array must be at least 2-d")
    if val.numel() == 0 and not wrap:
        a.fill_diagonal_(val)
        return a
    if val.dim() == 0:
        val = val.unsqueeze(0)
    if a.dim() == 2:
        _fill_matrix(a, val, wrap)
        return a
    if any(s != a.shape[0] for s in a.shape):
        raise ValueError("All dimensions of input must be of equal length")
    line = torch.arange(a.shape[0])
    if val.numel() < len(line):
        val = val.repeat(-(-len(line) // val.numel()))
    a[(line,) * a.dim()] = val[: len(line)]
    return a


def _fill_matrix(a: torch.Tensor, val: torch.Tensor, wrap: Any) -> None:
    rows, columns = a.shape
    if not wrap or rows <= columns:
        places = torch.arange(min(rows, columns))
        line, across = places, places
    else:
        # A tall matrix has a diagonal that goes on below, one row left out.
        steps = torch.arange(0, rows * columns, columns + 1)
        line, across = steps // columns, steps % columns
    values = val.flatten().repeat(-(-len(line) // max(val.numel(), 1)))[: len(line)]
    a[line, across] = values.to(a.dtype)


NAMES = [
    *("argsort", "argwhere", "choose", "copyto", "fill_diagonal", "flatnonzero", "nonzero", "put"),
    *("put_along_axis", "searchsorted", "sort", "take", "take_along_axis", "unique", "where"),
]
