"""Sums, means and other reductions with NumPy's axes, dtypes and `keepdims`.

Invariant: functions take tensors and an axis, a tuple of axes or None; dimensions are kept by `normalizer`.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ._dtypes import default_dtypes, promote
from ._normalizations import (
    ArrayLike,
    AxisLike,
    DTypeLike,
    KeepDims,
    NotImplementedType,
    OutArray,
    normalizer,
    scalar_normalizer,
)
from ._util import (
    allow_only_single_axis,
    apply_keepdims,
    axis_none_flatten,
    cast_if_needed,
    normalize_axis_index,
    normalize_axis_tuple,
)


def _axes(axis: Any, ndim: int) -> Any:
    """None, or a tuple of axes from the front."""
    return None if axis is None else normalize_axis_tuple(axis, ndim)


def _over(a: torch.Tensor, axis: Any) -> tuple[torch.Tensor, Any]:
    """A tensor and its axes; over no axes at all is over one of one element."""
    axis = _axes(axis, a.dim())
    return (a.unsqueeze(0), (0,)) if axis == () else (a, axis)


@normalizer
def count_nonzero(a: ArrayLike, axis: AxisLike = None, *, keepdims: KeepDims = False) -> Any:
    """How many elements are not zero."""
    a, axis = _over(a, axis)
    return torch.count_nonzero(a, axis)


@normalizer
def argmax(a: ArrayLike, axis: AxisLike = None, out: OutArray | None = None, *, keepdims: KeepDims = False) -> Any:
    """Where the greatest element is."""
    return _place(a, axis, torch.argmax, "argmax")


@normalizer
def argmin(a: ArrayLike, axis: AxisLike = None, out: OutArray | None = None, *, keepdims: KeepDims = False) -> Any:
    """Where the least element is."""
    return _place(a, axis, torch.argmin, "argmin")


def _place(a: torch.Tensor, axis: Any, operator: Any, name: str) -> Any:
    if a.is_complex():
        raise NotImplementedError(f"{name} with dtype={a.dtype}.")
    axis = allow_only_single_axis(_axes(axis, a.dim()))
    # Truth values have no order of their own among tensors.
    found: torch.Tensor = operator(a.to(torch.uint8) if a.dtype is torch.bool else a, axis)
    return found


@normalizer
def any(
    a: ArrayLike,
    axis: AxisLike = None,
    out: OutArray | None = None,
    keepdims: KeepDims = False,
    *,
    where: NotImplementedType = None,
) -> Any:
    """Whether any element is true."""
    return _truth(a, axis, torch.any)


@normalizer
def all(
    a: ArrayLike,
    axis: AxisLike = None,
    out: OutArray | None = None,
    keepdims: KeepDims = False,
    *,
    where: NotImplementedType = None,
) -> Any:
    """Whether every element is true."""
    return _truth(a, axis, torch.all)


def _truth(a: torch.Tensor, axis: Any, operator: Any) -> Any:
    a, axis = _over(a, axis)
    axis = allow_only_single_axis(axis)
    return operator(a) if axis is None else operator(a, axis)


@normalizer
def amax(
    a: ArrayLike,
    axis: AxisLike = None,
    out: OutArray | None = None,
    keepdims: KeepDims = False,
    initial: NotImplementedType = None,
    where: NotImplementedType = None,
) -> Any:
    """The greatest elements."""
    return _extreme(a, axis, torch.amax, "amax")


@normalizer
def amin(
    a: ArrayLike,
    axis: AxisLike = None,
    out: OutArray | None = None,
    keepdims: KeepDims = False,
    initial: NotImplementedType = None,
    where: NotImplementedType = None,
) -> Any:
    """The least elements."""
    return _extreme(a, axis, torch.amin, "amin")


def _extreme(a: torch.Tensor, axis: Any, operator: Any, name: str) -> Any:
    if a.is_complex():
        raise NotImplementedError(f"{name} with dtype={a.dtype}")
    a, axis = _over(a, axis)
    return operator(a) if axis is None else operator(a, axis)


max, min = amax, amin


@normalizer
def ptp(a: ArrayLike, axis: AxisLike = None, out: OutArray | None = None, keepdims: KeepDims = False) -> Any:
    """The greatest less the least."""
    return _extreme(a, axis, torch.amax, "amax") - _extreme(a, axis, torch.amin, "amin")


def _sum_dtype(dtype: torch.dtype | None, given: torch.dtype) -> torch.dtype | None:
    """Whole numbers and truth values are added in the default whole dtype."""
    if dtype is torch.bool or dtype is None and not (given.is_floating_point or given.is_complex):
        return default_dtypes().int_dtype
    return dtype


@normalizer
def sum(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike | None = None,
    out: OutArray | None = None,
    keepdims: KeepDims = False,
    initial: NotImplementedType = None,
    where: NotImplementedType = None,
) -> Any:
    """The sum over axes."""
    a, axis = _over(a, axis)
    wanted = _sum_dtype(dtype, a.dtype)
    return torch.sum(a, dtype=wanted) if axis is None else torch.sum(a, axis, dtype=wanted)


@normalizer
def prod(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike | None = None,
    out: OutArray | None = None,
    keepdims: KeepDims = False,
    initial: NotImplementedType = None,
    where: NotImplementedType = None,
) -> Any:
    """The product over an axis."""
    a, axis = _over(a, axis)
    axis = allow_only_single_axis(axis)
    wanted = _sum_dtype(dtype, a.dtype)
    return torch.prod(a, dtype=wanted) if axis is None else torch.prod(a, axis, dtype=wanted)


def _mean_dtype(dtype: torch.dtype | None, given: torch.dtype) -> torch.dtype:
    """Means are floating numbers, whatever was asked for."""
    wanted = given if dtype is None else dtype
    return wanted if wanted.is_floating_point or wanted.is_complex else default_dtypes().float_dtype


@normalizer
def mean(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike | None = None,
    out: OutArray | None = None,
    keepdims: KeepDims = False,
    *,
    where: NotImplementedType = None,
) -> Any:
    """The mean over axes."""
    a, axis = _over(a, axis)
    wanted = _mean_dtype(dtype, a.dtype)
    return torch.mean(a, dtype=wanted) if axis is None else torch.mean(a, axis, dtype=wanted)


@normalizer
def std(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike | None = None,
    out: OutArray | None = None,
    ddof: Any = 0,
    keepdims: KeepDims = False,
    *,
    where: NotImplementedType = None,
) -> Any:
    """The standard deviation over axes."""
    return _spread(a, axis, dtype, ddof, torch.std)


@normalizer
def var(
    a: ArrayLike,
    axis: AxisLike = None,
    dtype: DTypeLike | None = None,
    out: OutArray | None = None,
    ddof: Any = 0,
    keepdims: KeepDims = False,
    *,
    where: NotImplementedType = None,
) -> Any:
    """The variance over axes."""
    return _spread(a, axis, dtype, ddof, torch.var)


def _spread(a: torch.Tensor, axis: Any, dtype: torch.dtype | None, ddof: Any, operator: Any) -> Any:
    a, axis = _over(a, axis)
    result = operator(cast_if_needed(a, _mean_dtype(dtype, a.dtype)), axis, correction=ddof)
    return cast_if_needed(result, dtype)


# -- along an axis ----------------------------------------------------------------------------------------------------
@normalizer
def cumsum(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike | None = None, out: OutArray | None = None) -> Any:
    """Sums of the elements so far."""
    return _running(a, axis, dtype, torch.cumsum)


@normalizer
def cumprod(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike | None = None, out: OutArray | None = None) -> Any:
    """Products of the elements so far."""
    return _running(a, axis, dtype, torch.cumprod)


def _running(a: torch.Tensor, axis: Any, dtype: torch.dtype | None, operator: Any) -> Any:
    if dtype is torch.bool:
        dtype = default_dtypes().int_dtype
    (a,), axis = axis_none_flatten(a, axis=axis)
    axis = normalize_axis_index(axis, a.dim())
    return operator(a, axis, dtype=a.dtype if dtype is None else dtype)


cumproduct, product, alltrue, sometrue = cumprod, prod, all, any


# -- averages and quantiles -------------------------------------------------------------------------------------------
@normalizer
def average(
    a: ArrayLike, axis: Any = None, weights: ArrayLike | None = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    """The mean, of elements by weights."""
    axis = _axes(axis, a.dim())
    if weights is None:
        wanted = _mean_dtype(None, a.dtype)
        result = torch.mean(a, dtype=wanted) if axis is None else torch.mean(a, axis, dtype=wanted)
        total = torch.as_tensor(a.numel() / result.numel(), dtype=result.dtype)
    else:
        wanted = promote(a.dtype, weights.dtype)
        if not (wanted.is_floating_point or wanted.is_complex):
            wanted = default_dtypes().float_dtype
        result, total = _weighted(a.to(wanted), weights.to(wanted), axis)
    if keepdims:
        result = apply_keepdims(result, axis, a.dim())
    if not returned:
        return result
    return result, total.broadcast_to(result.shape).clone() if total.shape != result.shape else total


def _weighted(a: torch.Tensor, weights: torch.Tensor, axis: Any) -> tuple[Any, Any]:
    if a.shape != weights.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        if weights.dim() != 1:
            raise TypeError("1D weights expected when shapes of a and weights differ.")
        axis = allow_only_single_axis(axis)
        if weights.shape[0] != a.shape[axis]:
            raise ValueError("Length of weights not compatible with specified axis.")
        weights = torch.broadcast_to(weights, (a.dim() - 1) * (1,) + tuple(weights.shape)).swapaxes(-1, axis)
        axis = (axis,)
    products = a * weights
    if axis is None:
        return products.sum() / weights.sum(), weights.sum()
    total = weights.sum(axis)
    return products.sum(axis) / total, total


def _quantile(a: torch.Tensor, q: torch.Tensor, axis: Any, method: str, keepdims: Any) -> Any:
    if torch.is_complex(a):
        a = a.real
    # Quantiles of tensors are computed in single or double precision only.
    if a.dtype not in (torch.float32, torch.float64):
        a = a.to(torch.float32 if a.dtype is torch.float16 else default_dtypes().float_dtype)
    axis = allow_only_single_axis(_axes(axis, a.dim()))
    ndim = a.dim()
    scalar = q.dim() == 0
    q = torch.atleast_1d(q).flatten().to(a.dtype)
    if axis is None:
        a, along = a.flatten(), 0
    else:
        along = axis
    result = torch.quantile(a, q, dim=along, interpolation=method)
    if scalar and axis is not None:
        result = result.squeeze(0)
    if keepdims:
        lead = (1,) * 0 if scalar else (q.numel(),)
        shape = [1] * ndim if axis is None else [*a.shape[:along], 1, *a.shape[along + 1 :]]
        result = result.reshape([*lead, *shape])
    return result


@scalar_normalizer
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: AxisLike = None,
    out: OutArray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    interpolation: NotImplementedType = None,
) -> Any:
    """Quantiles along an axis."""
    return _quantile(a, q, axis, method, keepdims)


@scalar_normalizer
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: AxisLike = None,
    out: OutArray | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    interpolation: NotImplementedType = None,
) -> Any:
    """Quantiles along an axis, asked for by percent."""
    wanted = q if q.dtype.is_floating_point else q.to(default_dtypes().float_dtype)
    return _quantile(a, wanted / 100.0, axis, method, keepdims)


@scalar_normalizer
def median(
    a: ArrayLike, axis: Any = None, out: OutArray | None = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    """The middle, and the mean of the two middle ones."""
    return _quantile(a, torch.as_tensor(0.5), axis, "linear", keepdims)


NAMES = [
    *("all", "alltrue", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod"),
    *("cumproduct", "cumsum", "max", "mean", "median", "min", "percentile", "prod", "product", "ptp", "quantile"),
    *("sometrue", "std", "sum", "var"),
]
