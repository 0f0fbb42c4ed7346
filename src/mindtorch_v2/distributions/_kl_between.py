"""Divergences between distributions of different families."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import Formula, register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

# Where p has values that q has not: the parameter of p that gives shape and dtype of the infinity.
_INFINITE: tuple[tuple[type, str, tuple[type, ...]], ...] = (
    (Beta, "concentration1", (Pareto,)),
    (ContinuousBernoulli, "probs", (Pareto,)),
    (Exponential, "rate", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gamma, "concentration", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gumbel, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Laplace, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Normal, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Pareto, "scale", (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, "rate", (Bernoulli, Binomial)),
)


def _infinity(name: str) -> Formula:
    return lambda p, q: torch.full_like(getattr(p, name), math.inf)


for _p, _name, _qs in _INFINITE:
    _formula = _infinity(_name)
    for _q in _qs:
        register_kl(_p, _q)(_formula)


def _x_log_x(x: Tensor) -> Tensor:
    return torch.special.xlogy(x, x)


def _mean_log(p: Uniform) -> Tensor:
    """The expectation of log x under a uniform distribution."""
    width = p.high - p.low
    return (_x_log_x(p.high) - _x_log_x(p.low) - width) / width


def _gamma_normalizer(q: Gamma) -> Tensor:
    return q.concentration.lgamma() - q.concentration * q.rate.log()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


# -- beta and continuous Bernoulli --------------------------------------------------------------------------------
def _to_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()


register_kl(Beta, ContinuousBernoulli)(_to_continuous_bernoulli)


@register_kl(Beta, Exponential)
def _beta_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Any:
    total = p.concentration1 + p.concentration0
    mean_log = p.concentration1.digamma() - total.digamma()
    linear = q.rate * p.concentration1 / total
    return -p.entropy() + _gamma_normalizer(q) - (q.concentration - 1) * mean_log + linear


@register_kl(Beta, Normal)
def _beta_normal(p: Any, q: Any) -> Any:
    mean, variance = p.mean, q.scale.pow(2)
    of_square = mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)
    off = of_square * 0.5 - q.loc * mean + q.loc.pow(2) * 0.5
    return -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + off / variance


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    result[(q.low > p.support.lower_bound) | (q.high < p.support.upper_bound)] = math.inf
    return result


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p: Any, q: Any) -> Any:
    normalizer = 0.5 * (math.log(2.0 * math.pi) + torch.square(q.loc / q.scale)) + torch.log(q.scale)
    mean = p.mean
    off = p.variance + torch.square(mean) - 2.0 * q.loc * mean
    return -p.entropy() + normalizer + off / (2.0 * torch.square(q.scale))


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    # As PyTorch has it: either bound inside, or at the border of, the unit interval is enough.
    outside = torch.max(torch.ge(q.low, p.support.lower_bound), torch.le(q.high, p.support.upper_bound))
    return torch.where(outside, torch.ones_like(result) * math.inf, result)


# -- exponential and gamma ----------------------------------------------------------------------------------------
@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    powers = -q.concentration * torch.log(ratio)
    return powers + ratio + q.concentration.lgamma() + q.concentration * euler_constant - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Any:
    product, off = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - off + torch.exp(off) * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def _exponential_normal(p: Any, q: Any) -> Any:
    variance, squared = q.scale.pow(2), p.rate.pow(2)
    normalizer = 0.5 * torch.log(squared * variance * 2 * math.pi)
    return normalizer - 1 + (squared.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5) / variance


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Any:
    alpha, product, off = p.concentration, p.rate * q.scale, q.loc / q.scale
    of_p = (alpha - 1) * alpha.digamma() - alpha.lgamma() - alpha
    tail = torch.exp(off) * (1 + product.reciprocal()).pow(-alpha) - off
    return of_p + (product.log() + alpha / product) + tail


@register_kl(Gamma, Normal)
def _gamma_normal(p: Any, q: Any) -> Any:
    alpha, variance, squared = p.concentration, q.scale.pow(2), p.rate.pow(2)
    normalizer = 0.5 * torch.log(squared * variance * 2 * math.pi) - alpha - alpha.lgamma()
    off = 0.5 * (alpha.pow(2) + alpha) / squared - q.loc * alpha / p.rate + 0.5 * q.loc.pow(2)
    return normalizer + (alpha - 1) * alpha.digamma() + off / variance


# -- Gumbel, Laplace, normal --------------------------------------------------------------------------------------
@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    normalizer = (ratio / math.sqrt(2 * math.pi)).log()
    spread = (math.pi * ratio * 0.5).pow(2) / 3
    off = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return -normalizer + spread + off - (euler_constant + 1)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    off = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -0.5 * torch.log(2 * ratio / math.pi) + ratio + off / variance - 1


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Any:
    mean, off, ratio = p.loc / q.scale, q.loc / q.scale, (p.scale / q.scale).pow(2)
    tail = torch.exp(-mean + 0.5 * ratio + off)
    return -(ratio.log() * 0.5) + (mean - off) + tail - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Any:
    off = p.loc - q.loc
    steps = off / p.scale
    inside = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * steps.pow(2))
    distance = (inside + off * torch.erf(math.sqrt(0.5) * steps)) / q.scale
    return -torch.log(p.scale / q.scale) + distance - 0.5 * (1 + math.log(0.5 * math.pi))


# -- Pareto -------------------------------------------------------------------------------------------------------
@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    result[p.alpha <= 1] = math.inf
    return result


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Any:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    powers = p.alpha.log() - mean_log + _gamma_normalizer(q) + (1 - q.concentration) * mean_log
    result = powers + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1
    result[p.alpha <= 1] = math.inf
    return result


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Any:
    part = p.scale / (p.alpha - 1)
    normalizer = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    off = p.alpha * part.pow(2) / (p.alpha - 2) + (p.alpha * part - q.loc).pow(2)
    result = normalizer + off / (2 * q.scale.pow(2)) - 1
    result[p.alpha <= 2] = math.inf
    return result


# -- uniform ------------------------------------------------------------------------------------------------------
@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    of_rest = (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    q1, q0 = q.concentration1, q.concentration0
    normalizer = q1.lgamma() + q0.lgamma() - (q1 + q0).lgamma()
    result = (q0 - 1) * of_rest + normalizer - torch.log(width) - (q1 - 1) * _mean_log(p)
    result[(p.high > q.support.upper_bound) | (p.low < q.support.lower_bound)] = math.inf
    return result


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    result = _to_continuous_bernoulli(p, q)
    outside = torch.max(torch.ge(p.high, q.support.upper_bound), torch.le(p.low, q.support.lower_bound))
    return torch.where(outside, torch.ones_like(result) * math.inf, result)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Any:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    result[p.low < q.support.lower_bound] = math.inf
    return result


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Any:
    powers = _gamma_normalizer(q) + (1 - q.concentration) * _mean_log(p)
    result = -(p.high - p.low).log() + powers + q.rate * (p.high + p.low) / 2
    result[p.low < q.support.lower_bound] = math.inf
    return result


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Any:
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * (torch.exp(-high) - torch.exp(-low))


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    off = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(math.pi * 2) * q.scale / width).log() + 0.5 * off / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Any:
    normalizer = (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    result = _mean_log(p) * (q.alpha + 1) - normalizer
    result[p.low < q.support.lower_bound] = math.inf
    return result
