"""Divergences between distributions of one family."""

from __future__ import annotations

import math
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant


# -- any family ---------------------------------------------------------------------------------------------------
@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot                             "
            "be computed using Bregman divergences"
        )
    of_p = [n.detach().requires_grad_() for n in p._natural_params]
    of_q = q._natural_params
    normalizer = p._log_normalizer(*of_p)
    gradients = torch.autograd.grad(normalizer.sum(), of_p, create_graph=True)
    result = q._log_normalizer(*of_q) - normalizer
    for a, b, g in zip(of_p, of_q, gradients):
        result -= _sum_rightmost((b - a) * g, len(q.event_shape))
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# -- discrete -----------------------------------------------------------------------------------------------------
@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Any:
    softplus = torch.nn.functional.softplus
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones[q.probs == 0] = math.inf
    ones[p.probs == 0] = 0
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros[q.probs == 1] = math.inf
    zeros[p.probs == 1] = 0
    return ones + zeros


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    result = p.total_count * each
    beyond = p.total_count > q.total_count
    result[beyond] = torch.full_like(result[beyond], math.inf)
    return result


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    t = p.probs * (p.logits - q.logits)
    t[(q.probs == 0).expand_as(t)] = math.inf
    t[(p.probs == 0).expand_as(t)] = 0
    return t.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Any:
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


# -- real numbers -------------------------------------------------------------------------------------------------
@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Any:
    p1, p0, q1, q0 = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    p_sum, q_sum = p1 + p0, q1 + q0
    of_q = q1.lgamma() + q0.lgamma() + p_sum.lgamma()
    of_p = p1.lgamma() + p0.lgamma() + q_sum.lgamma()
    first, second = (p1 - q1) * torch.digamma(p1), (p0 - q0) * torch.digamma(p0)
    return of_q - of_p + first + second + (q_sum - p_sum) * torch.digamma(p_sum)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Any:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Any:
    of_p = p._cont_bern_log_norm() + torch.log1p(-p.probs)
    of_q = -q._cont_bern_log_norm() - torch.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + of_p + of_q


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    a_sum, b_sum = a.sum(-1), b.sum(-1)
    normalizers = a_sum.lgamma() - b_sum.lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return normalizers + ((a - b) * (a.digamma() - a_sum.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    normalizers = b * (p.rate / q.rate).log() + (torch.lgamma(b) - torch.lgamma(a))
    return normalizers + (a - b) * torch.digamma(a) + (q.rate - p.rate) * (a / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Any:
    ratio, q_loc, p_loc = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    linear = -ratio.log() - q_loc + p_loc + ratio * euler_constant
    return linear + torch.exp(q_loc + (1 + ratio).lgamma() - p_loc) - (1 + euler_constant)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Any:
    ratio, off = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + off / q.scale + ratio * torch.exp(-off / p.scale) - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    off = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + off - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    result[p.support.lower_bound < q.support.lower_bound] = math.inf
    return result


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    result[(q.low > p.low) | (q.high < p.high)] = math.inf
    return result


# -- normal vectors -----------------------------------------------------------------------------------------------
def _same_event(p: Any, q: Any, what: str) -> int:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {what}Multivariate Normals with                          "
            "different event shapes cannot be computed"
        )
    n: int = p.event_shape[0]
    return n


def _trace_of_square(bmat: Tensor) -> Tensor:
    """trace(X X.T)."""
    return bmat.reshape(-1, bmat.size(-2) * bmat.size(-1)).pow(2).sum(-1).reshape(bmat.shape[:-2])


def _to_low_rank(q: Any) -> tuple[Tensor, Tensor]:
    """D^-1/2 and A, where the inverse of the covariance is D^-1 - A.T A."""
    W, D = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag
    A = torch.linalg.solve_triangular(q._capacitance_tril, W.mT / D.unsqueeze(-2), upper=False)
    return D.rsqrt().unsqueeze(-1), A


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Any:
    n = _same_event(p, q, "")
    of_p, of_q = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    shape = torch.broadcast_shapes(of_q.shape[:-2], of_p.shape[:-2]) + (n, n)
    ratio = torch.linalg.solve_triangular(of_q.expand(shape), of_p.expand(shape), upper=False)
    distance = _batch_mahalanobis(of_q, q.loc - p.loc)
    return q._half_logdet() - p._half_logdet() + 0.5 * (_trace_of_square(ratio) + distance - n)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Any:
    n = _same_event(p, q, "Low Rank ")
    root, A = _to_low_rank(q)
    W, D = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    trace = (D / q._unbroadcasted_cov_diag).sum(-1) + _trace_of_square(W * root)
    trace = trace - _trace_of_square(A * D.sqrt().unsqueeze(-2)) - _trace_of_square(A.matmul(W))
    return 0.5 * (q._logdet() - p._logdet() + trace + q._mahalanobis(q.loc - p.loc) - n)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_low_rank(p: Any, q: Any) -> Any:
    n = _same_event(p, q, "(Low Rank) ")
    root, A = _to_low_rank(q)
    lower = p._unbroadcasted_scale_tril
    trace = _trace_of_square(lower * root) - _trace_of_square(A.matmul(lower))
    return 0.5 * (q._logdet() - 2 * p._half_logdet() + trace + q._mahalanobis(q.loc - p.loc) - n)


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_multivariate(p: Any, q: Any) -> Any:
    n = _same_event(p, q, "(Low Rank) ")
    W, lower = p._unbroadcasted_cov_factor, q._unbroadcasted_scale_tril
    batch = torch.broadcast_shapes(lower.shape[:-2], W.shape[:-2])
    diagonal = torch.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    whole = lower.expand(batch + (n, n))
    trace = _trace_of_square(torch.linalg.solve_triangular(whole, W.expand(batch + (n, W.size(-1))), upper=False))
    trace = trace + _trace_of_square(torch.linalg.solve_triangular(whole, diagonal.expand(batch + (n, n)), upper=False))
    distance = _batch_mahalanobis(lower, q.loc - p.loc)
    return 0.5 * (2 * q._half_logdet() - p._logdet() + trace + distance - n)
