"""CPU lines of reductions and scans."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dispatch.op import PartsKernel
from ...._ops.reduce import aminmax_in_parts, logsumexp_in_parts, nansum
from ...._ops.rules.base import wrap_dim
from ...._ops.rules.reduce import dim_mask_or_all, spread_strides
from ...._tensor_base import numel
from ...common.runtime import copy_same_device
from ..kernels.reduce import BothEnds, CountNonzero, Moments, MomentsAndMean, Reduce, ReduceWithIndex, Scan, Trace
from ..kernels.softmax import LogSumExp
from ..kernels.vector_norm import vector_norm
from ..lines import cpu, into
from ..numpy_view import np_view

for _name in ("sum", "mean", "prod", "amax", "amin", "any", "all", "argmax", "argmin"):
    cpu(_name, Reduce(getattr(_native, _name.upper())))
cpu("max", Reduce(_native.AMAX))
cpu("min", Reduce(_native.AMIN))
cpu("max.dim", ReduceWithIndex(_native.AMAX, _native.ARGMAX))
cpu("min.dim", ReduceWithIndex(_native.AMIN, _native.ARGMIN))
cpu("aminmax", BothEnds(PartsKernel(aminmax_in_parts)))
cpu("count_nonzero", CountNonzero())
cpu("trace", Trace())
cpu("logsumexp", LogSumExp(PartsKernel(logsumexp_in_parts)))
cpu("var.correction", Moments(False))
cpu("std.correction", Moments(True))
cpu("var_mean.correction", MomentsAndMean(False))
cpu("std_mean.correction", MomentsAndMean(True))


def _nansum(out: Any, self: Any, dim: Any, keepdim: bool, dtype: Any) -> None:
    if not self._dtype.is_floating_point or self._dtype.itemsize < 2 or out._dtype is not self._dtype:
        copy_same_device(out, nansum(self, dim, keepdim, dtype))
        return
    n = len(self._shape)
    stride = spread_strides(out._stride, dim_mask_or_all(dim, n), n, keepdim)
    _native.reduce(
        _native.NANSUM,
        self._storage, int(self._offset), self._stride, self._dtype.code,
        out._storage, int(out._offset), stride, out._dtype.code,
        self._shape, self._dtype.code, numel(out))


cpu("nansum", into(_nansum, calls_ops=True))
cpu("linalg_vector_norm", into(vector_norm))
cpu("cumsum", Scan(0))
cpu("cumprod", Scan(1))


def _running(largest: bool) -> Any:
    """cummax and cummin: of equal elements the last, of NaN every one, takes the place."""

    def kernel(outs: tuple[Any, Any], self: Any, dim: int) -> None:
        values, indices = outs
        _native.cumulative_extreme(
            self._storage, int(self._offset), self._stride, self._dtype.code,
            values._storage, int(values._offset), values._stride, values._dtype.code,
            indices._storage, int(indices._offset), indices._stride, indices._dtype.code, self._shape, dim, largest)

    return kernel


cpu("cummax", into(_running(True)))
cpu("cummin", into(_running(False)))


def _log_add_exp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) of complex numbers, with PyTorch's answers for what is not finite."""
    import numpy as np

    wrong = np.isnan(x) | np.isnan(y)
    larger = x.real >= y.real
    high, low = np.where(larger, x, y), np.where(larger, y, x)
    least = low.real
    # Where both are infinite, or none matters, angles alone decide.
    alone = ~np.isfinite(least) & (least == high.real)
    both = np.log(np.exp(low) + np.exp(high))
    added = np.where(alone, np.where(least < 0, high, both), high + np.log1p(np.exp(low - high)))
    return np.where(wrong, complex(np.nan, np.nan), added)


# So many calls cost less than the way to NumPy.
_FEW = 16


def _add_steps(out: Any, self: Any, d: int) -> None:
    code, shape = out._dtype.code, self._shape
    flat, to, at = shape[:d] + (1,) + shape[d + 1:], int(out._offset), int(self._offset)
    _native.copy(out._storage, to, out._stride, code, self._storage, at, self._stride, code, flat)
    for i in range(1, shape[d]):
        before = to + (i - 1) * out._stride[d]
        _native.binary(_native.LOGADDEXP, out._storage, before, out._stride, code,
                       self._storage, at + i * self._stride[d], self._stride, code,
                       out._storage, before + out._stride[d], out._stride, code, flat, code, 1)


def _logcumsumexp(out: Any, self: Any, dim: int) -> None:
    if 0 < len(self._shape) and self._dtype.name in ("float32", "float64") and numel(self) > 0:
        d = wrap_dim(dim, len(self._shape))
        if self._shape[d] <= _FEW:
            _add_steps(out, self, d)
            return
    import numpy as np

    x = np_view(self)
    if x.ndim == 0 or x.size == 0:
        np_view(out)[...] = x
        return
    d = wrap_dim(dim, x.ndim)
    if not self._dtype.is_complex:
        wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
        with np.errstate(invalid="ignore"):
            np_view(out)[...] = np.logaddexp.accumulate(wide, axis=d)
        return
    rows = np.moveaxis(x, d, 0)
    result = np.moveaxis(np_view(out), d, 0)
    held = np.full(rows.shape[1:], -np.inf, x.dtype)
    with np.errstate(all="ignore"):
        for i in range(rows.shape[0]):
            held = _log_add_exp(held, rows[i])
            result[i] = held


cpu("logcumsumexp", into(_logcumsumexp))
