"""Axes, casts and the way from anything to a tensor.

Invariant: functions here take and give tensors, never arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import mindtorch_v2 as torch

from ._dtypes import can_cast_dtypes, default_dtype_for, default_dtypes


class AxisError(ValueError, IndexError):
    """An axis that an array does not have."""


class UFuncTypeError(TypeError, RuntimeError):
    """A function cannot be computed with these dtypes."""


def is_sequence(seq: Any) -> bool:
    """Whether it has a length and is no text."""
    if isinstance(seq, str):
        return False
    try:
        len(seq)
    except Exception:
        return False
    return True


# -- casts ------------------------------------------------------------------------------------------------------------
def cast_if_needed(tensor: Any, dtype: torch.dtype | None) -> Any:
    """The tensor in a dtype."""
    return tensor if dtype is None or tensor.dtype is dtype else tensor.to(dtype)


def cast_int_to_float(x: torch.Tensor) -> Any:
    """Whole numbers and truth values as the default floating dtype."""
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return x
    return cast_if_needed(x, default_dtypes().float_dtype)


def typecast_tensor(t: torch.Tensor, target_dtype: torch.dtype, casting: Any) -> Any:
    """The tensor in a dtype that the casting rule allows."""
    if not can_cast_dtypes(t.dtype, target_dtype, casting):
        raise TypeError(f"Cannot cast array data from {t.dtype} to {target_dtype} according to the rule '{casting}'")
    return cast_if_needed(t, target_dtype)


def typecast_tensors(tensors: Iterable[torch.Tensor], target_dtype: torch.dtype, casting: Any) -> tuple[Any, ...]:
    """Each tensor in a dtype that the casting rule allows."""
    return tuple(typecast_tensor(t, target_dtype, casting) for t in tensors)


# -- axes -------------------------------------------------------------------------------------------------------------
def normalize_axis_index(ax: Any, ndim: int, argname: str | None = None) -> int:
    """An axis counted from the front."""
    if getattr(ax, "ndim", 0):
        raise TypeError("only integer scalar arrays can be converted to a scalar index")
    ax = operator.index(ax)
    if not (-ndim <= ax < ndim):
        raise AxisError(f"axis {ax} is out of bounds for array of dimension {ndim}")
    return int(ax + ndim if ax < 0 else ax)


def normalize_axis_tuple(
    axis: Any, ndim: int, argname: str | None = None, allow_duplicate: bool = False
) -> tuple[int, ...]:
    """Axes counted from the front; one axis is a tuple of one."""
    if type(axis) not in (tuple, list):
        try:
            axis = [operator.index(axis)]
        except TypeError:
            pass
    axes = tuple(normalize_axis_index(ax, ndim, argname) for ax in axis)
    if not allow_duplicate and len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis in `{argname}` argument" if argname else "repeated axis")
    return axes


def allow_only_single_axis(axis: Any) -> Any:
    """The one axis of a tuple."""
    if axis is None:
        return axis
    if len(axis) != 1:
        raise NotImplementedError("does not handle tuple axis")
    return axis[0]


def expand_shape(arr_shape: Sequence[int], axis: Any) -> list[int]:
    """A shape with ones put in at axes of the result."""
    if type(axis) not in (list, tuple):
        axis = (axis,)
    out_ndim = len(axis) + len(arr_shape)
    axes = normalize_axis_tuple(axis, out_ndim)
    sizes = iter(arr_shape)
    return [1 if ax in axes else next(sizes) for ax in range(out_ndim)]


def apply_keepdims(tensor: torch.Tensor, axis: Any, ndim: int) -> Any:
    """A reduced tensor with its reduced axes as ones."""
    if axis is None:
        return tensor.expand((1,) * ndim).contiguous()
    return tensor.reshape(expand_shape(tensor.shape, axis))


def axis_none_flatten(*tensors: torch.Tensor, axis: Any = None) -> tuple[Any, Any]:
    """Tensors and an axis; without an axis the tensors flattened, and their only one."""
    if axis is None:
        return tuple(t.flatten() for t in tensors), 0
    return tensors, axis


# -- from anything to tensors -----------------------------------------------------------------------------------------
def ndarrays_to_tensors(*inputs: Any) -> Any:
    """Arrays replaced by their tensors, in sequences too."""
    from ._ndarray import ndarray

    if not inputs:
        raise ValueError
    if len(inputs) > 1:
        return ndarrays_to_tensors(inputs)
    given = inputs[0]
    if isinstance(given, ndarray):
        return given.tensor
    if isinstance(given, (tuple, list)):
        return type(given)(ndarrays_to_tensors(x) for x in given)
    return given


def _default_kind(obj: Any) -> Any:
    """Python's data as a tensor with a default dtype of its kind."""
    if _holds_tensors(obj):
        parts = [coerce_to_tensor(part) for part in obj]
        dtype = parts[0].dtype
        for part in parts:
            from ._dtypes import promote

            dtype = promote(dtype, part.dtype)
        return torch.stack([part.to(dtype) for part in parts])
    tensor = torch.as_tensor(obj)
    if getattr(obj, "dtype", None) is not None or _first_leaf_has_dtype(obj):
        return tensor
    wanted = default_dtype_for(tensor.dtype)
    if not (wanted.is_floating_point or wanted.is_complex):
        return tensor
    # Once more, because values went through the narrower default of tensors.
    return tensor if tensor.dtype is wanted else torch.as_tensor(obj, dtype=wanted)


def _first_leaf_has_dtype(obj: Any) -> bool:
    while isinstance(obj, (list, tuple)) and len(obj) > 0:
        obj = obj[0]
    return getattr(obj, "dtype", None) is not None


def _holds_tensors(obj: Any) -> bool:
    if not isinstance(obj, (list, tuple)):
        return False
    return any(isinstance(x, torch.Tensor) or _holds_tensors(x) for x in obj)


def coerce_to_tensor(obj: Any, dtype: torch.dtype | None = None, copy: bool = False, ndmin: int = 0) -> Any:
    """Anything that is or holds numbers as a tensor."""
    if isinstance(obj, torch.Tensor):
        tensor = obj
    else:
        inner = ndarrays_to_tensors(obj)
        try:
            tensor = inner if isinstance(inner, torch.Tensor) else _default_kind(inner)
        except Exception as error:
            raise NotImplementedError(f"failed to convert {obj} to ndarray. \nInternal error is: {error}.") from None
    tensor = cast_if_needed(tensor, dtype)
    if tensor.dim() < ndmin:
        tensor = tensor.reshape((1,) * (ndmin - tensor.dim()) + tuple(tensor.shape))
    return tensor.clone() if copy else tensor
