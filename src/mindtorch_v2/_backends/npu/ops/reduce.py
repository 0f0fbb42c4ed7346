"""NPU lines of the reductions and scans.

Invariant: dimensions reach the vendor counted from the front and spelled out; an operand without elements is answered
here with the reduction's identity, since the documents do not say what vendor functions make of one.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dispatch import registry
from ...._dtype import bool as bool_
from ...._dtype import int64, uint8
from ...._ops.composites.formulas import narrow, wide
from ...._ops.rules.base import wrap_dim
from ...._tensor_base import numel
from ..helpers import dims
from ..lines import choose, helper, line, npu, parts

_cat = registry.get("cat")
_where = registry.get("where")


# -- sums and products ----------------------------------------------------------------------------------------------
npu("sum", "aclnnReduceSum(self, dims(self, dim), keep(self, keepdim), dtype(out), out)", cast=("self",), empty=0)
npu("mean", "aclnnMean(self, dims(self, dim), keep(self, keepdim), dtype(out), out)", cast=("self",), empty=math.nan)
npu("nansum", "aclnnReduceNansum(self, dims(self, dim), keep(self, keepdim), dtype(out), out)", cast=("self",), empty=0,
    absent=parts(lambda self, dim, keepdim, dtype: self.nan_to_num(0.0, math.inf, -math.inf).sum(dim, keepdim,
                                                                                                 dtype=dtype)))
npu("prod", choose(lambda self, dim, keepdim, dtype: dim is None or len(self._shape) == 0, {
    True: line("aclnnProd(self, dtype(out), out)", cast=("self",), empty=1),
    False: line("aclnnProdDim(self, wrapped(self, dim), keepdim, dtype(out), out)", cast=("self",), empty=1)}))

# -- extremes -------------------------------------------------------------------------------------------------------
npu("amax", "aclnnAmax(self, dims(self, dim), keep(self, keepdim), out)", cast=("self",))
npu("amin", "aclnnAmin(self, dims(self, dim), keep(self, keepdim), out)", cast=("self",))
npu("max", "aclnnAmax(self, dims(self, none), false, out)", cast=("self",))
npu("min", "aclnnAmin(self, dims(self, none), false, out)", cast=("self",))
npu("max.dim", "aclnnMaxDim(self, wrapped(self, dim), keep(self, keepdim), out0, out1)", cast=("self",),
    otherwise=parts(lambda self, dim, keepdim: (self.amax(dim, keepdim), self.argmax(dim, keepdim))))
npu("aminmax", choose(lambda self, dim, keepdim: dim is None or len(self._shape) == 0, {
    True: line("aclnnAminmax(self, dims(self, none), keep(self, keepdim), out0, out1)", cast=("self",)),
    False: line("aclnnAminmaxDim(self, wrapped(self, dim), keepdim, out0, out1)", cast=("self",))}))
# aclnnMinDim is documented for indices of 32 bits, which 910B does not have.
npu("min.dim", parts(lambda self, dim, keepdim: (
    self.amin(dim, keepdim), (self.to(uint8) if self.dtype is bool_ else self).argmin(dim, keepdim))))


def _flat(name: str) -> Any:
    def kernel(self: Any, dim: Any, keepdim: bool) -> Any:
        found = registry.get(name).call((self.reshape((-1,)), 0, False))
        return found.reshape((1,) * len(self._shape)) if keepdim else found

    return kernel


for _name, _vendor in (("argmax", "aclnnArgMax"), ("argmin", "aclnnArgMin")):
    npu(_name, choose(lambda self, dim, keepdim: dim is None or len(self._shape) == 0, {
        True: parts(_flat(_name)), False: line(f"{_vendor}(self, wrapped(self, dim), keepdim, out)")}))


# -- logic ----------------------------------------------------------------------------------------------------------
def _logic(name: str) -> Any:
    """By comparison: for complex numbers, and for bytes, whose answer is a byte."""

    def kernel(self: Any, dim: Any, keepdim: bool) -> Any:
        found = registry.get(name).call((self != 0, dim, keepdim))
        return found.to(uint8) if self.dtype is uint8 else found

    return parts(kernel)


def _needs_comparison(self: Any, dim: Any, keepdim: bool) -> bool:
    return self._dtype.is_complex or self._dtype is uint8


for _name, _empty in (("any", False), ("all", True)):
    npu(_name, choose(_needs_comparison, {
        True: _logic(_name),
        False: line(f"aclnn{_name.capitalize()}(self, dims(self, dim), keep(self, keepdim), out)", empty=_empty)}))


# -- moments --------------------------------------------------------------------------------------------------------
@helper
def correction_of(correction: Any) -> int:
    return 1 if correction is None else int(correction)


def _freedom(self: Any, dim: Any, correction: Any) -> float:
    count = 1
    for d in dims(self, dim):
        at = wrap_dim(d, len(self._shape))
        count *= self._shape[at] if self._shape else 1
    return float(count - (1 if correction is None else correction))


def _by_parts(self: Any, dim: Any, correction: Any, keepdim: bool) -> bool:
    """What the vendor's parameters cannot say: a fractional correction, no freedom left, no element, complex values."""
    whole = correction is None or (math.isfinite(correction) and correction == int(correction))
    return not whole or numel(self) == 0 or self._dtype.is_complex or _freedom(self, dim, correction) <= 0


def _var(self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    x = wide(self)
    every = dims(self, dim)
    centred = (x - x.mean(every, True)).abs()
    return narrow((centred * centred).sum(every, keepdim) / max(_freedom(self, dim, correction), 0.0), self)


def _mean(self: Any, dim: Any, keepdim: bool) -> Any:
    return self.mean(dims(self, dim), keepdim)


_MOMENT = "(self, dims(self, dim), correction_of(correction), keep(self, keepdim), "
for _name, _vendor, _parts in (
        ("var.correction", "aclnnVarCorrection", parts(_var)),
        ("std.correction", "aclnnStd", parts(lambda *args: _var(*args).sqrt())),
        ("var_mean.correction", "aclnnVarMean",
         parts(lambda self, dim, c, keepdim: (_var(self, dim, c, keepdim), _mean(self, dim, keepdim)))),
        ("std_mean.correction", "aclnnStdMeanCorrection",
         parts(lambda self, dim, c, keepdim: (_var(self, dim, c, keepdim).sqrt(), _mean(self, dim, keepdim))))):
    _results = "out0, out1)" if "mean" in _name else "out)"
    npu(_name, choose(_by_parts, {True: _parts, False: line(_vendor + _MOMENT + _results, otherwise=_parts)}))

# -- norms and log-sums ---------------------------------------------------------------------------------------------
npu("linalg_vector_norm", choose(lambda self, ord, dim, keepdim, dtype: self._dtype.is_complex, {
    True: registry.get("linalg_vector_norm").row.fallback,
    False: line("aclnnLinalgVectorNorm(self, ord, dims(self, dim), keep(self, keepdim), dtype(out), out)",
                cast=("self",), empty=0)}))
npu("logsumexp", "aclnnLogSumExp(self, dims(self, dim), keep(self, keepdim), out)", cast=("self",), empty=-math.inf)
npu("trace", "aclnnTrace(self, out)", empty=0)

# -- scans ----------------------------------------------------------------------------------------------------------
def _scanned(x: Any, dim: int, join: Any) -> Any:
    """Partial results are joined over distances 1, 2, 4, ..."""
    n, distance = x._shape[dim], 1
    while distance < n:
        joined = join(x.narrow(dim, distance, n - distance), x.narrow(dim, 0, n - distance))
        x = _cat.call(((x.narrow(dim, 0, distance), joined), dim))
        distance *= 2
    return x


def _cumprod(self: Any, dim: int, dtype: Any) -> Any:
    x = self.to(dtype or (int64 if not self._dtype.is_inexact else self._dtype), copy=True)
    return _scanned(x, dim, lambda here, before: here * before) if x._shape else x


npu("cumsum", "aclnnCumsum(self, wrapped(self, dim), dtype(out), out)", cast=("self",))
npu("cumprod", "aclnnCumprod(self, wrapped(self, dim), dtype(out), out)", cast=("self",), inplace=False,
    absent=parts(_cumprod))
npu("cummax", "aclnnCummax(self, wrapped(self, dim), out0, out1)")
npu("cummin", "aclnnCummin(self, wrapped(self, dim), out0, out1)")


def _logcumsumexp(self: Any, dim: int) -> Any:
    """No step leaves the range of the values."""
    if len(self._shape) == 0:
        return self.clone()
    # Two infinities differ by no number.
    x = _scanned(wide(self), dim, lambda here, before: _where.call(
        (here == before, here + math.log(2), here.logaddexp(before))))
    return narrow(x, self) if x is not self else self.clone()


npu("logcumsumexp", parts(_logcumsumexp))
