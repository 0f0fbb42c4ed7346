"""Reductions: sums, extremes, moments, norms, scans.

Invariant: a derivative gives back the input's shape through `restore`/`unreduce` of the shape rules, so that every row
treats `dim` and `keepdim` alike.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Spec
from .._dispatch.state import is_grad_enabled
from .._dtype import float32, int64
from .._tensor_base import all_values, numel
from .composites.formulas import zeros_like
from .composites.reduce import restore, unreduce, unreduce_mean
from .composites.rows import ROWS
from .rules import reduce as rules
from .rules.base import KeptRule, like, wrap_dim
from .rules.reduce import (
    BOOL,
    INDEX,
    MEAN,
    SAME,
    SUM,
    Moments,
    Reduction,
    Scan,
    ValueIndex,
    dim_mask_or_all,
    reduced_count,
    reduced_shape,
)
from .table import composite, op

ROWS.expand = registry.get("expand")
_inf = float("inf")


def _first_or_second(name: str) -> Any:
    """PyTorch has one node for the reduction of everything and another for one with `dim`."""
    return lambda self, dim, *rest: f"{name}Backward0" if dim is None else f"{name}Backward1"


# -- sums and products --------------------------------------------------------------------------------------------
op("sum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   meta=Reduction("sum", SUM), out="dim", node=_first_or_second("Sum"),
   grad=dict(self=lambda g, self_shape, dim, keepdim: unreduce(g, self_shape, dim, keepdim)))
op("mean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   meta=Reduction("mean", MEAN), out=True, node=_first_or_second("Mean"),
   grad=dict(self=lambda g, self_shape, dim, keepdim: unreduce_mean(g, self_shape, dim, keepdim)))


def other_factors(x: Any, dim: int) -> Any:
    """For each factor the product of the others: those before it times those after it."""
    n = x._shape[dim]
    if n < 2:
        return zeros_like(x).add(1)
    one = zeros_like(x.narrow(dim, 0, 1)).add(1)
    cat = registry.get("cat")
    before = cat.call(((one, x.narrow(dim, 0, n - 1)), dim)).cumprod(dim)
    after = cat.call(((one, x.narrow(dim, 1, n - 1).flip(dim)), dim)).cumprod(dim).flip(dim)
    return before * after


def _prod_with_zeros(g: Any, x: Any, dim: int) -> Any:
    return g.clone() if x._shape[dim] == 1 else g * other_factors(x, dim).conj()


def _prod_backward(g: Any, self: Any, result: Any, dim: int | None, keepdim: bool) -> Any:
    if self._device.type == "meta" and numel(self) == 0:
        return self.detach() * 0
    if len(self._shape) == 0:
        return g
    if dim is None:
        if self._device.type != "meta" and not all_values(self == 0).any().item():
            return g * (result / self).conj()
        return _prod_with_zeros(g, self.reshape((-1,)), 0).reshape(self._shape)
    d = wrap_dim(dim, len(self._shape))
    if not keepdim:
        g, result = g.unsqueeze(d), result.unsqueeze(d)
    if self._device.type != "meta" and not all_values(self == 0).any().item():
        return g * (result / self).conj()
    return _prod_with_zeros(g, self, d)


op("prod(Tensor self, int? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
   meta=Reduction("prod", SUM), out="dim", node=_first_or_second("Prod"), grad=dict(self=_prod_backward))


def _nansum_meta(self: Any, dim: Any, keepdim: bool, dtype: Any) -> Spec:
    if self._dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    return _SUM_RULE.infer((self, dim, keepdim, dtype))  # type: ignore[no-any-return]


_SUM_RULE = Reduction("sum", SUM)


def nansum(self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if self._dtype.is_inexact:
        self = self.masked_fill(self.isnan(), 0)
    return self.sum(dim, keepdim, dtype=dtype)


op("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", meta=_nansum_meta,
   out=True, kernel=nansum,
   grad=dict(self=lambda g, self, dim, keepdim: unreduce(g, self._shape, dim, keepdim) * self.isnan().logical_not()))


def _nanmean(self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if not self._dtype.is_inexact:
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but got "
                           f"{self._dtype.scalar_name}")
    return self.nansum(dim, keepdim, dtype=dtype) / self.detach().isnan().logical_not().sum(dim, keepdim)


composite("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", _nanmean,
          out=True)


# -- extremes -----------------------------------------------------------------------------------------------------
def _amax_backward(g: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """Elements that share the extreme share its gradient."""
    shape = self._shape
    mask = restore(result, shape, dim, keepdim) == self
    every = tuple(range(len(shape))) if len(dim) == 0 else dim
    return restore(g, shape, dim, keepdim) * mask / mask.sum(every, True)


op("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", meta=Reduction("amax", SAME, nonempty=True),
   out=True, grad=dict(self=_amax_backward))
op("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", meta=Reduction("amin", SAME, nonempty=True),
   out=True, grad=dict(self=_amax_backward))


def _extreme_backward(g: Any, self: Any, result: Any) -> Any:
    mask = (self == result).logical_or(self.isnan().logical_and(result.isnan()))
    return mask * (g / mask.sum())


def value_selecting_backward(g: Any, dim: int, indices: Any, sizes: tuple[int, ...], keepdim: bool) -> Any:
    """The gradient goes where the value came from."""
    d = wrap_dim(dim, len(sizes))
    if len(sizes) == 0:
        return g
    if not keepdim:
        g, indices = g.unsqueeze(d), indices.unsqueeze(d)
    return g.new_zeros(sizes).scatter(d, indices, g)


composite("value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, bool keepdim) -> "
          "Tensor",
          value_selecting_backward, function=False, method=False)


def _selecting(g: Any, indices: Any, self_shape: Any, dim: int, keepdim: bool) -> Any:
    return value_selecting_backward(g, dim, indices, self_shape, keepdim)


def _call_of(name: str) -> Any:
    return lambda self, other: registry.get(name).call((self, other))


for _name, _other in (("max", "maximum"), ("min", "minimum")):
    op(f"{_name}(Tensor self) -> Tensor", meta=Reduction(_name, SAME, nonempty=True),
       node=f"{_name.capitalize()}Backward1", out=True, grad=dict(self=_extreme_backward))
    # Before the overload with `dim`: a tensor of one integer is an operand here, not a dimension.
    composite(f"{_name}.other(Tensor self, Tensor other) -> Tensor", _call_of(_other), out=True)
    op(f"{_name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
       meta=ValueIndex(_name), out=True, nondiff=("indices",), grad=dict(self=_selecting))

op("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", meta=Reduction("argmax", INDEX, nonempty=True),
   out=True, nondifferentiable=True)
op("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", meta=Reduction("argmin", INDEX, nonempty=True),
   out=True, nondifferentiable=True)


def _aminmax_backward(grads: Any, self: Any, min: Any, max: Any, dim: int | None, keepdim: bool) -> Any:
    dims = () if dim is None else (dim,)
    return _amax_backward(grads[0], self, min, dims, keepdim) + _amax_backward(grads[1], self, max, dims, keepdim)


def aminmax_in_parts(self: Any, dim: int | None, keepdim: bool) -> Any:
    dims = () if dim is None else (dim,)
    return self.amin(dims, keepdim), self.amax(dims, keepdim)


op("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", meta=rules.aminmax,
   out=True,
   kernel=aminmax_in_parts, grad=dict(self=_aminmax_backward))

# -- logic --------------------------------------------------------------------------------------------------------
for _name in ("any", "all"):
    op(f"{_name}(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
       meta=Reduction(_name, BOOL, empty_is_none=True), out=True, nondifferentiable=True)


op("count_nonzero(Tensor self, int[1]? dim=None) -> Tensor", meta=rules.count_nonzero, out="ops",
   nondifferentiable=True, kernel=lambda self, dim: (self != 0).sum(dim))


# -- moments ------------------------------------------------------------------------------------------------------
def _freedom(shape: Any, dim: Any, correction: Any) -> Any:
    return reduced_count(shape, dim_mask_or_all(dim, len(shape))) - (1 if correction is None else correction)


def _var_backward(g: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    freedom = _freedom(self._shape, dim, correction)
    centred = self - self.mean(dim or None, True)
    g = restore(g, self._shape, dim, keepdim)
    if freedom <= 0 and (not dim or not self._shape):
        # The same 0/0 or x/0 for every element.
        return g * registry.get("where").call((centred == 0, float("nan"), _inf)).to(g.dtype)
    return g * (2.0 / freedom if freedom else _inf) * centred


def _std_backward(g: Any, self: Any, result: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    half = (g / (result * 2)).masked_fill(result == 0, 0)
    return _var_backward(half, self, dim, correction, keepdim)


def _mean_part(g: Any, self: Any, dim: Any, keepdim: bool) -> Any:
    return unreduce_mean(g, self._shape, dim, keepdim)


def _var_mean_backward(grads: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    return _var_backward(grads[0], self, dim, correction, keepdim) + _mean_part(grads[1], self, dim, keepdim)


def _std_mean_backward(grads: Any, self: Any, result0: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    return _std_backward(grads[0], self, result0, dim, correction, keepdim) + _mean_part(grads[1], self, dim, keepdim)


_MOMENTS = "Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False"
_PLAIN = "Tensor self, bool unbiased=True"
_DIMS = "Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False"


def _moments(name: str, results: str, grad: Any, text: str) -> None:
    o = op(f"{name}.correction({_MOMENTS}) -> {results}", meta=Moments(name, text, "mean" in name),
           out=results == "Tensor", grad=dict(self=grad), method="mean" not in name)
    composite(f"{name}.dim({_DIMS}) -> {results}",
              lambda self, dim, unbiased, keepdim: o.call((self, dim, 1 if unbiased else 0, keepdim)),
              out=results == "Tensor", method="mean" not in name)
    composite(f"{name}({_PLAIN}) -> {results}", lambda self, unbiased: o.call((self, None, 1 if unbiased else 0,
                                                                               False)),
              method="mean" not in name)


_moments("var", "Tensor", _var_backward, "std and var")
_moments("std", "Tensor", _std_backward, "std and var")
_moments("var_mean", "(Tensor, Tensor)", _var_mean_backward, "var_mean")
_moments("std_mean", "(Tensor, Tensor)", _std_mean_backward, "std_mean")


# -- norms and log-sums -------------------------------------------------------------------------------------------
def _norm_meta(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Spec:
    dt = self._dtype
    if isinstance(ord, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    if not dt.is_inexact:
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                           f"{dt.scalar_name}")
    if dtype is not None:
        if not dtype.is_inexact:
            raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex, but got "
                               f"{dtype.scalar_name}")
        if dt.is_complex != dtype.is_complex:
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be {'complex' if dt.is_complex else 'real'} for "
                f"{'complex' if dt.is_complex else 'real'} inputs, but got {dtype.scalar_name}")
        dt = dtype
    mask = dim_mask_or_all(dim, len(self._shape))
    if numel(self) == 0 and (ord < 0 or ord == _inf):
        shown = "inf" if ord == _inf else "-inf" if ord == -_inf else f"{ord:g}"
        if not dim:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {shown} norm on an empty tensor because the "
                               "operation does not have an identity")
        for d in dim:
            if self._shape[d] == 0:
                raise RuntimeError(
                    f"linalg.vector_norm cannot compute the {shown} norm on the dimension "
                    f"{wrap_dim(d, len(self._shape))}because this dimension is empty and the operation does not have "
                    "an identity")
    return like(self, reduced_shape(self._shape, mask, keepdim), dt.to_real() if dt.is_complex else dt)


def norm_in_parts(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    x = self if dtype is None else self.to(dtype)
    if x._dtype.is_complex or ord not in (2, 4):
        x = x.abs()
    dims = () if dim is None else dim
    if ord == _inf:
        return x.amax(dims, keepdim)
    if ord == -_inf:
        return x.amin(dims, keepdim)
    narrow = x._dtype if x._dtype.itemsize < 4 else None
    if narrow is not None:
        x = x.to(float32)
    if ord == 0:
        r = (x != 0).sum(dims, keepdim).to(x._dtype)
    elif ord == 1:
        r = x.sum(dims, keepdim)
    elif ord == 2:
        r = (x * x).sum(dims, keepdim).sqrt()
    else:
        r = x.pow(ord).sum(dims, keepdim).pow(1.0 / ord)
    return r if narrow is None else r.to(narrow)


def _reciprocal(power: Any, norm: Any) -> Any:
    """Of a power of a norm; where that is zero, zero: no factor of what is differentiated on is infinite."""
    return power.reciprocal().masked_fill(norm == 0, 0)


def _norm_backward(g: Any, self: Any, result: Any, ord: Any, dim: Any, keepdim: bool) -> Any:
    shape = self._shape
    g = restore(g, shape, dim, keepdim)
    norm = restore(result, shape, dim, keepdim)
    if ord == 0:
        return None
    if ord == 1:
        return self.sgn() * g
    if ord == 2:
        return g * (self / norm).masked_fill(norm == 0, 0)
    if ord in (_inf, -_inf):
        same = self.abs() == norm
        count = same.sum(dim or None, True)
        return self.sgn() * ((g / count) * same)
    if ord < 1:
        part = self.sgn() * self.abs().pow(ord - 1).masked_fill(self == 0, 0)
        return part * (g * norm.pow(1 - ord))
    if ord < 2:
        part = self.sgn() * self.abs().pow(ord - 1)
        return part * (g * _reciprocal(norm.pow(ord - 1), norm))
    part = self * self.abs().pow(ord - 2)
    return part * (g * _reciprocal(norm.pow(ord - 1), norm))


_VECTOR_NORM = op(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
    "-> Tensor",
    meta=KeptRule(_norm_meta), out=True, kernel=norm_in_parts, grad=dict(self=_norm_backward), function=False,
    method=False)


def _norm_text(self: Any, p: str, dim: Any, keepdim: bool, dtype: Any) -> Any:
    if p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    if p == "fro" and (dim is None or len(dim) <= 2):
        return _VECTOR_NORM.call((self, 2, dim, keepdim, dtype))
    from .._api import lazy_tables

    lazy_tables.load("linalg_composed")
    dims = tuple(range(len(self._shape))) if dim is None else dim
    return registry.get("linalg_matrix_norm.str_ord").call((self, p, dims, keepdim, dtype))


composite("norm(Tensor self, Scalar? p=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
          lambda self, p, dim, keepdim, dtype: _VECTOR_NORM.call((self, 2 if p is None else p, dim, keepdim, dtype)),
          out=True)
composite("norm.fro(Tensor self, str p, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
          _norm_text, out=True)


def logsumexp_in_parts(self: Any, dim: Any, keepdim: bool) -> Any:
    x = self if self._dtype.is_inexact else self.to(float32)
    if numel(x) == 0:
        return x.exp().sum(dim, keepdim).log()
    top = (x.real if x._dtype.is_complex else x).amax(dim, True)
    top = top.masked_fill(top.abs() == _inf, 0)
    out = (x - top).exp().sum(dim, keepdim).log()
    return out + (top if keepdim else top.reshape(out._shape))


op("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", meta=rules.logsumexp, out=True,
   kernel=logsumexp_in_parts,
   grad=dict(self=lambda g, self, result, dim, keepdim: restore(g, self._shape, dim, keepdim) * (
       self - restore(result, self._shape, dim, keepdim)).exp().conj()))


# -- scans --------------------------------------------------------------------------------------------------------
def _reversed_cumsum(g: Any, dim: int) -> Any:
    if numel(g) <= 1 or g._shape[dim] == 1:
        return g
    return g.flip(dim).cumsum(dim).flip(dim)


def _cumprod_backward(g: Any, self: Any, result: Any, dim: int) -> Any:
    if numel(self) <= 1 or self._shape[dim] == 1:
        return g
    if self._device.type != "meta" and not all_values(self == 0).any().item():
        return _reversed_cumsum(g * result.conj(), dim) / self.conj()
    # With a zero among the factors the quotient above is undefined: multiply what is left when one factor is left out.
    x = self.conj()
    if not is_grad_enabled() and self._device.type != "meta":
        # Behind a lane's first zero no gradient is left; its own is made of the products without it.
        zero = self == 0
        count = zero.cumsum(dim)
        own = _reversed_cumsum(g * x.masked_fill(zero & (count == 1), 1).cumprod(dim), dim)
        before = _reversed_cumsum(g * result.conj(), dim) / x
        return before.where(count == 0, own.masked_fill(~(zero & (count == 1)), 0))
    n = x._shape[dim]
    cat = registry.get("cat")
    one = x.narrow(dim, 0, 1).detach() * 0 + 1
    parts = []
    for k in range(n):
        before = x.narrow(dim, 0, k).prod(dim, True) if k else one
        left_out = before
        if k < n - 1:
            left_out = cat.call(((before, before * x.narrow(dim, k + 1, n - k - 1).cumprod(dim)), dim))
        parts.append((g.narrow(dim, k, n - k) * left_out).sum((dim,), True))
    return cat.call((tuple(parts), dim))


op("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", meta=Scan(), inplace=True, out=True,
   grad=dict(self=lambda g, dim: _reversed_cumsum(g, dim)))
op("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", meta=Scan(), inplace=True, out=True,
   grad=dict(self=_cumprod_backward))


def _cummax_rule(name: str) -> Any:
    def rule(self: Any, dim: int) -> list[Spec]:
        if not self._shape and dim not in (-1, 0):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        wrap_dim(dim, len(self._shape))
        if self._dtype.is_complex:
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{self._dtype.scalar_name}'")
        return [like(self), like(self, None, int64)]

    return KeptRule(rule)


for _name in ("cummax", "cummin"):
    op(f"{_name}(Tensor self, int dim) -> (Tensor values, Tensor indices)", meta=_cummax_rule(_name), out=True,
       nondiff=("indices",),
       grad=dict(self=lambda g, indices, self_shape, dim: g if not self_shape else
                 g.new_zeros(self_shape).scatter_add(dim, indices, g)))


def _logcumsumexp_meta(self: Any, dim: int) -> Spec:
    wrap_dim(dim, len(self._shape))
    if not self._dtype.is_inexact:
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{self._dtype.scalar_name}'")
    return like(self)


def _logcumsumexp_backward(g: Any, self: Any, result: Any, dim: int) -> Any:
    # Positive and negative parts apart: the logarithm of the gradient is what stays in range.
    if len(self._shape) == 0 or numel(self) == 0:
        return g
    if g._dtype.is_complex:
        return ((g.log() - result.conj()).flip(dim).logcumsumexp(dim).flip(dim) + self.conj()).exp()
    up = g.masked_fill(g <= 0, 0).log()
    down = (-g).masked_fill(g >= 0, 0).log()
    forward = ((up - result).flip(dim).logcumsumexp(dim).flip(dim) + self).exp()
    backward = ((down - result).flip(dim).logcumsumexp(dim).flip(dim) + self).exp()
    return forward - backward


op("logcumsumexp(Tensor self, int dim) -> Tensor", meta=KeptRule(_logcumsumexp_meta), out=True,
   grad=dict(self=_logcumsumexp_backward))


def _diagonal(g: Any, shape: tuple[int, ...]) -> Any:
    eye = g.detach().new_zeros(shape)
    eye.diagonal().fill_(1)
    return g * eye


op("trace(Tensor self) -> Tensor", meta=rules.trace, kernel=lambda self: self.diagonal().sum(),
   grad=dict(self=lambda g, self_shape: _diagonal(g, self_shape)))
