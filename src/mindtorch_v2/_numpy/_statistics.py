"""Counts, histograms and covariances.

Invariant: histograms are counted with floating weights and given back in the dtype that NumPy's have.
"""

from __future__ import annotations

import operator
from typing import Any

import mindtorch_v2 as torch

from ._dtypes import default_dtypes, promote
from ._normalizations import ArrayLike, DTypeLike, normalizer
from ._util import cast_if_needed, coerce_to_tensor, is_sequence


@normalizer
def bincount(x: ArrayLike, /, weights: ArrayLike | None = None, minlength: Any = 0) -> Any:
    """How often each whole number occurs."""
    if x.numel() == 0:
        # Nothing at all has the default floating dtype, which no count can be made of.
        x = x.to(default_dtypes().int_dtype)
    return torch.bincount(x, weights, minlength)


def _refuse_normed(normed: Any) -> None:
    if normed is not None:
        raise ValueError("normed argument is deprecated, use density= instead")


@normalizer
def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Any = None,
    normed: Any = None,
    weights: ArrayLike | None = None,
    density: Any = None,
) -> Any:
    """How many elements fall between edges."""
    _refuse_normed(normed)
    if weights is not None and weights.dtype.is_complex:
        raise NotImplementedError("complex weights histogram.")
    whole = not (a.dtype.is_floating_point or a.dtype.is_complex)
    counts = weights is None or not weights.dtype.is_floating_point
    values = a.to(default_dtypes().float_dtype) if whole else a
    weights = None if weights is None else cast_if_needed(weights.to(values.dtype), values.dtype)
    bounds: dict[str, Any] = {}
    by_count = isinstance(bins, int) or bins.dim() == 0
    edges: Any = operator.index(bins if isinstance(bins, int) else bins.item()) if by_count else bins.to(values.dtype)
    if by_count:
        if range is None and a.numel() == 0:
            range = (0.0, 1.0)
        if range is not None:
            bounds["range"] = tuple(float(x) for x in range)
    found, places = torch.histogram(values, edges, weight=weights, density=bool(density), **bounds)
    if not density and counts:
        found = found.to(default_dtypes().int_dtype)
    if whole and (by_count or not bins.dtype.is_floating_point):
        places = places.to(torch.int64)
    return found, places


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, normed: Any = None, weights: Any = None, density: Any = None
) -> Any:
    """How many points of a plane fall between edges."""
    if len(x) != len(y):
        raise ValueError("x and y must have the same length.")
    try:
        count = len(bins)
    except TypeError:
        count = 1
    if count not in (1, 2):
        bins = [bins, bins]
    found, edges = histogramdd((x, y), bins, range, normed, weights, density)
    return found, edges[0], edges[1]


@normalizer
def _histogramdd(sample: Any, bins: Any, range: Any, weights: ArrayLike | None, density: Any) -> Any:
    points = sample
    if not (points.dtype.is_floating_point or points.dtype.is_complex):
        points = points.to(default_dtypes().float_dtype)
    edges: Any = bins
    if is_sequence(bins) and not all(isinstance(b, int) for b in bins):
        edges = [torch.as_tensor(b).to(points.dtype) for b in bins]
    bounds = {} if range is None else {"range": [float(x) for x in range.flatten()]}
    if weights is not None:
        weights = weights.to(points.dtype)
    found, places = torch.histogramdd(points, edges, weight=weights, density=bool(density), **bounds)
    if edges is not bins:
        places = tuple(torch.as_tensor(b) for b in bins)
    return found, places


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, normed: Any = None, weights: Any = None, density: Any = None
) -> Any:
    """How many points fall between edges, by dimension."""
    from ._util import ndarrays_to_tensors

    _refuse_normed(normed)
    points = coerce_to_tensor(sample)
    if isinstance(sample, (list, tuple)) or points.dim() < 2:
        # Coordinates by dimension, not by point.
        points = torch.atleast_2d(points).mT
    bounds = None if range is None else coerce_to_tensor(range)
    return _histogramdd(points, ndarrays_to_tensors(bins), bounds, weights, density)


# -- covariance -------------------------------------------------------------------------------------------------------
def _observations(x: Any, y: Any, rowvar: Any, dtype: Any) -> Any:
    # As in PyTorch, `rowvar` is looked at for two arrays only.
    if y is not None:
        x, y = (torch.atleast_2d(t) for t in (x, y))
        if not rowvar and x.shape[0] != 1:
            x = x.mT
        if not rowvar and y.shape[0] != 1:
            y = y.mT
        wanted = promote(x.dtype, y.dtype)
        x = torch.cat((x.to(wanted), y.to(wanted)), 0)
    return cast_if_needed(x, dtype)


@normalizer
def corrcoef(
    x: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: Any = True,
    bias: Any = None,
    ddof: Any = None,
    *,
    dtype: DTypeLike | None = None,
) -> Any:
    """Coefficients of correlation."""
    if bias is not None or ddof is not None:
        raise NotImplementedError
    data = _observations(x, y, rowvar, dtype)
    work = data.to(torch.float32) if data.dtype is torch.float16 else data
    return cast_if_needed(torch.corrcoef(work), dtype)


@normalizer
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: Any = True,
    bias: Any = False,
    ddof: Any = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Any:
    """Covariances."""
    data = _observations(m, y, rowvar, dtype)
    if ddof is None:
        ddof = 0 if bias else 1
    work = data.to(torch.float32) if data.dtype is torch.float16 else data
    return cast_if_needed(torch.cov(work, correction=ddof, fweights=fweights, aweights=aweights), dtype)


NAMES = ["bincount", "corrcoef", "cov", "histogram", "histogram2d", "histogramdd"]
