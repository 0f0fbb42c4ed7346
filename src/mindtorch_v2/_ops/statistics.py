"""Quantiles, covariances, differences, integrals and distances, in terms of other operators.

Invariant: every row is a composition, so it runs and differentiates wherever its parts do; orders of operations are
PyTorch's, so that rounding is too.
"""
from __future__ import annotations

import math
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Spec
from .._dtype import bool as bool_
from .._dtype import float32, float64
from .._tensor_base import all_values, numel
from .reduce import _norm_backward
from .rules.base import like, wrap_dim
from .rules.pointwise import broadcast_shapes, promoted
from .table import composite, op

_cat = registry.get("cat")
_narrow = registry.get("narrow")
# Ranks are computed in the tensor's dtype, and float32 counts no farther.
_MOST_RANKED = 1 << 24
_MODES = ("linear", "lower", "higher", "midpoint", "nearest")


# -- quantiles ----------------------------------------------------------------------------------------------------
def _quantile(self: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip_nan: bool) -> Any:
    _check_quantile(self, q, interpolation)
    d = wrap_dim(0 if dim is None else dim, self.dim())
    if dim is None:
        rows = self.reshape((-1,))
        kept: tuple[int, ...] = (1,) * self.dim() if keepdim else ()
    else:
        rows = (self if self.dim() else self.unsqueeze(0)).movedim(d, -1)
        kept = rows._shape[:-1] if self.dim() else ()
        if keepdim:
            kept = self._shape[:d] + (1,) * bool(self.dim()) + self._shape[d + 1:]
    n = rows._shape[-1]
    if n > _MOST_RANKED:
        raise RuntimeError("quantile() input tensor is too large")
    ranked = rows.sort(-1)[0]
    if skip_nan:
        top = (ranked.isnan().logical_not().sum((-1,), True, dtype=self._dtype) - 1).clamp(min=0)
        rank = q * top
    else:
        # A slice with a NaN has the NaN, which sorts last, as every quantile.
        rank = (q * (n - 1)).expand((*ranked._shape[:-1], numel(q)))
        rank = rank.masked_fill(ranked.isnan().any(-1, True), n - 1)
    if interpolation == "lower":
        rank = rank.floor()
    elif interpolation == "higher":
        rank = rank.ceil()
    elif interpolation == "nearest":
        rank = rank.round()
    below = rank.long()
    values = ranked.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weight = rank.new_full(rank._shape, 0.5) if interpolation == "midpoint" else rank - below
        above = rank.ceil().long()
        values = values.lerp(ranked.gather(-1, above), weight)
    values = values.reshape((*kept, numel(q)))
    if q.dim():
        values = values.unsqueeze(0).transpose(0, -1)
    return values.squeeze_(-1)


def _check_quantile(self: Any, q: Any, interpolation: str) -> None:
    if numel(self) == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if q.dim() > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if self._dtype not in (float32, float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if self._dtype is not q._dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if interpolation not in _MODES:
        raise RuntimeError("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but "
                           f"got {interpolation}")
    if q._device.type == "cpu" and not bool(all_values((q >= 0).logical_and(q <= 1)).all()):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")


def _quantile_number(self: Any, q: float, dim: int | None, keepdim: bool, interpolation: str, skip_nan: bool) -> Any:
    if not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
    return _quantile(self, self.detach().new_full((), q), dim, keepdim, interpolation, skip_nan)


for _name, _skip in (("quantile", False), ("nanquantile", True)):
    _rest = "int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"
    composite(f"{_name}(Tensor self, Tensor q, {_rest}",
              lambda self, q, dim, keepdim, interpolation, skip=_skip: _quantile(self, q, dim, keepdim, interpolation,
                                                                                 skip), out=True)
    composite(f"{_name}.scalar(Tensor self, float q, {_rest}",
              lambda self, q, dim, keepdim, interpolation, skip=_skip: _quantile_number(self, q, dim, keepdim,
                                                                                        interpolation, skip), out=True)


# -- differences and integrals ------------------------------------------------------------------------------------
def _diff(self: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    if self.dim() < 1:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    d = wrap_dim(dim, len(self._shape))
    if n == 0:
        return registry.get("zeros_like").call((self, None, None, None, None, None)).copy_(self)
    for other in (prepend, append):
        if other is not None and other.dim() != self.dim():
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for i in range(self.dim() if other is not None else 0):
            if i != d and other._shape[i] != self._shape[i]:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({i}) = {self._shape[i]}, but got tensor.size({i}) = "
                    f"{other._shape[i]}")
    if prepend is not None or append is not None:
        self = _cat.call((tuple(t for t in (prepend, self, append) if t is not None), d))
    if n >= self._shape[d]:
        return self.narrow(d, 0, 0).clone()
    for _ in range(n):
        rest = self._shape[d] - 1
        high, low = _narrow.call((self, d, 1, rest)), _narrow.call((self, d, 0, rest))
        self = high.logical_xor(low) if self._dtype is bool_ else high - low
    return self


composite("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", _diff,
          out=True)


def _slopes(y: Any, dim: int) -> Any:
    n = y._shape[dim]
    return y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)


def _widths(name: str, y: Any, x: Any, dim: int) -> Any:
    """Steps between the places, ready to stand beside the values."""
    if x.dim() == 1:
        if x._shape[0] != y._shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        return x.diff().view((-1,) + (1,) * (y.dim() - 1 - dim))
    missing = y.dim() - x.dim()
    wide = x.view((1,) * missing + tuple(x._shape)) if missing > 0 else x
    return wide.diff(dim=dim - y.dim())


def _trapezoid(y: Any, x: Any, dx: Any, dim: int, running: bool) -> Any:
    name = "cumulative_trapezoid" if running else "trapezoid"
    d = wrap_dim(dim, y.dim())
    if y.dim() == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor." if running else
                         f"Dimension specified as {dim} but tensor has no dimensions")
    if y._shape[d] == 0:
        if running:
            return y.new_zeros(y._shape)
        rest = y._shape[:d] + y._shape[d + 1:]
        return y.new_zeros(rest)
    if y._dtype is bool_ or (x is not None and x._dtype is bool_):
        raise RuntimeError(f"{name}: received a bool input for {'`y`' if x is None else '`x` or `y`'}, but bool is not "
                           "supported")
    if x is None:
        return (_slopes(y, d).cumsum(d) if running else _slopes(y, d).sum(d)) * (dx / 2)
    product = _slopes(y, d) * _widths(name, y, x, d)
    return product.cumsum(d) / 2 if running else product.sum(d) / 2


for _name in ("trapezoid", "cumulative_trapezoid"):
    composite(f"{_name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
              lambda y, x, dim, running=_name != "trapezoid": _trapezoid(y, x, None, dim, running), method=False)
    composite(f"{_name}.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
              lambda y, dx, dim, running=_name != "trapezoid": _trapezoid(y, None, dx, dim, running), method=False)
composite("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
          lambda y, x, dim: _trapezoid(y, x, None, dim, False), method=False)
composite("trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor",
          lambda y, dx, dim: _trapezoid(y, None, dx, dim, False), method=False)


# -- covariance ---------------------------------------------------------------------------------------------------
def _cov(self: Any, correction: int, fweights: Any, aweights: Any) -> Any:
    if self.dim() > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input with "
                           f"{self.dim()} dimensions")
    if self._dtype is bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = self.reshape((1, -1)) if self.dim() < 2 else self
    count = x._shape[1]
    w: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given.dim() > 1:
            raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
                               f"{given.dim()} dimensions")
        if name == "fweights" and given._dtype.is_inexact:
            raise RuntimeError("cov(): expected fweights to have integral dtype but got fweights with "
                               f"{given._dtype.scalar_name} dtype")
        if name == "aweights" and not given._dtype.is_floating_point:
            raise RuntimeError("cov(): expected aweights to have floating point dtype but got aweights with "
                               f"{given._dtype.scalar_name} dtype")
        if numel(given) != count:
            raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input "
                               f"but got {numel(given)} != {count}")
        if given._device.type == "cpu" and numel(given) and bool(all_values(given < 0).any()):
            raise RuntimeError(f"cov(): {name} cannot be negative")
        w = given if w is None else w * given
    total: Any = w.sum() if w is not None else None
    mean = ((x * w).sum(1) / total if w is not None else x.mean(1)) if x._dtype.is_inexact else (
        x.sum(1) / count if w is None else (x * w).sum(1) / total)
    if w is not None and aweights is not None and correction != 0:
        norm: Any = total - correction * (w * aweights).sum() / total
    else:
        norm = (total if w is not None else count) - correction
    norm = max(norm, 0) if isinstance(norm, int) else norm.clamp(min=0)
    centred = x - mean.unsqueeze(1)
    other = (centred * w if w is not None else centred).t()
    product = centred.mm((other.conj() if centred._dtype.is_complex else other).to(centred._dtype))
    return (product / norm).squeeze()


def _corrcoef(self: Any) -> Any:
    if self.dim() > 2:
        raise RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an input with "
                           f"{self.dim()} dimensions")
    c = _cov(self, 1, None, None)
    if c.dim() == 0:
        return c / c
    deviation = (c.diagonal().real if c._dtype.is_complex else c.diagonal()).sqrt()
    c = c / deviation.view((-1, 1)) / deviation.view((1, -1))
    if c._dtype.is_complex:
        return registry.get("complex").call((c.real.clamp(-1, 1), c.imag.clamp(-1, 1)))
    return c.clamp(-1, 1)


composite("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor", _cov)
composite("corrcoef(Tensor self) -> Tensor", _corrcoef)


# -- norms --------------------------------------------------------------------------------------------------------
def _dist_meta(self: Any, other: Any, p: Any) -> Spec:
    broadcast_shapes(self._shape, other._shape)
    dt = promoted(self._dtype, other._dtype)
    if not dt.is_inexact:
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                           f"{dt.scalar_name}")
    return like(self, (), dt.to_real() if dt.is_complex else dt)


def _dist_grad(g: Any, self: Any, other: Any, result: Any, p: Any) -> Any:
    return _norm_backward(g, self - other, result, p, None, False)


op("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", meta=_dist_meta,
   kernel=lambda self, other, p: (self - other).norm(p),
   grad=dict(self=_dist_grad, other=lambda g, self, other, result, p: _dist_grad(-g, self, other, result, p)))


def _renorm_meta(self: Any, p: Any, dim: int, maxnorm: Any) -> Spec:
    if not self._dtype.is_inexact:
        raise RuntimeError(f"renorm: Expected a floating point or complex tensor as input. Got "
                           f"{self._dtype.scalar_name}")
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.dim()} dimensions")
    wrap_dim(dim, self.dim())
    return like(self)


def _others(self: Any, dim: int) -> tuple[int, ...]:
    d = wrap_dim(dim, self.dim())
    return tuple(i for i in range(self.dim()) if i != d)


def _renorm(self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    wide = float32 if self._dtype.itemsize == 2 else None
    size = self.norm(p, _others(self, dim), True, dtype=wide)
    factor = registry.get("where").call((size > maxnorm, maxnorm / (size + 1e-7), 1.0))
    scaled = self * factor
    return scaled if scaled._dtype is self._dtype else scaled.to(self._dtype)


def _renorm_grad(g: Any, self: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    dims = _others(self, dim)
    size = self.norm(p, dims, True)
    inner = (self.conj() * g).real if self._dtype.is_complex else self * g
    inner = inner.sum(dims, True)
    if p == 2:
        slope = self / size
    elif p == math.inf:
        same = self.abs() == size
        slope = self.sgn() * same / same.sum(dims, True)
    else:
        slope = self.sgn() * (self.abs() / size) ** (p - 1)
    inverse = 1 / (size + 1e-7)
    scaled = (g - inverse * slope.masked_fill(size == 0, 0) * inner) * inverse * maxnorm
    return registry.get("where").call((size > maxnorm, scaled.to(g._dtype), g))


op("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", meta=_renorm_meta, inplace=True, out=True,
   kernel=_renorm, grad=dict(self=_renorm_grad))
