"""Divergences: every registered pair against PyTorch, and how a pair is found."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule
from ._both import GRADIENT_TOLERANCES, TOLERANCES
from ._table import COVARIANCE, LOWER, MATRIX, Numbers

D = submodule("distributions")

# Two makers for each family, so that p and q differ.
FAMILIES: dict[str, Any] = {
    "Bernoulli": lambda D, t, i: D.Bernoulli([t(0.1, 1.0), t(0.3, 0.6)][i]),
    "Beta": lambda D, t, i: D.Beta(*[(t(0.5, 2.0), t(1.5, 3.0)), (t(1.0, 0.7), t(2.0, 5.0))][i]),
    "Binomial": lambda D, t, i: D.Binomial(6, [t(0.2, 0.7), t(0.3, 0.6)][i]),
    "Categorical": lambda D, t, i: D.Categorical([t(MATRIX), t(0.0, 0.5, 0.5)][i]),
    "Cauchy": lambda D, t, i: D.Cauchy(*[(t(0.0, 1.0), t(1.0, 2.0)), (t(0.5, -1.0), t(0.7, 3.0))][i]),
    "ContinuousBernoulli": lambda D, t, i: D.ContinuousBernoulli([t(0.2, 0.5), t(0.4, 0.9)][i]),
    "Dirichlet": lambda D, t, i: D.Dirichlet([t([[0.5, 1.0, 2.0]]), t(3.0, 0.3, 1.0)][i]),
    "Exponential": lambda D, t, i: D.Exponential([t(0.5, 2.0), t(1.5, 0.7)][i]),
    "Gamma": lambda D, t, i: D.Gamma(*[(t(0.5, 3.0), t(1.0, 2.0)), (t(2.0, 1.5), t(0.4, 3.0))][i]),
    "Geometric": lambda D, t, i: D.Geometric([t(0.3, 0.8), t(0.5, 0.2)][i]),
    "Gumbel": lambda D, t, i: D.Gumbel(*[(t(0.0, 1.0), t(1.0, 2.0)), (t(0.5, -1.0), t(0.7, 3.0))][i]),
    "HalfNormal": lambda D, t, i: D.HalfNormal([t(0.5, 2.0), t(1.5, 0.7)][i]),
    "Independent": lambda D, t, i: D.Independent(D.Normal([t([[0.0, 1.0]]), t([[2.0, 3.0]])][i], t(1.0, 2.0)), 1),
    "Laplace": lambda D, t, i: D.Laplace(*[(t(0.0, 1.0), t(1.0, 2.0)), (t(0.5, -1.0), t(0.7, 3.0))][i]),
    "LowRankMultivariateNormal": lambda D, t, i: D.LowRankMultivariateNormal(
        [t([[0.0, 1.0, 2.0]] * 2), t(1.0, 0.0, -1.0)][i],
        [t([[1.0], [0.5], [0.1]]), t([[0.2], [2.0], [1.0]])][i],
        t(0.5, 1.0, 2.0),
    ),
    "MultivariateNormal": lambda D, t, i: (
        D.MultivariateNormal(t(0.0, 1.0, 2.0), t(COVARIANCE)),
        D.MultivariateNormal(t([[0.5, 0.0, 1.0]] * 2), scale_tril=t(LOWER)),
    )[i],
    "Normal": lambda D, t, i: D.Normal(*[(t(0.0, 1.0), t(1.0, 2.0)), (t(0.5, -1.0), t(0.7, 3.0))][i]),
    "OneHotCategorical": lambda D, t, i: D.OneHotCategorical(logits=[t(0.1, 0.5, 2.0), t(1.0, 0.0, -1.0)][i]),
    "Pareto": lambda D, t, i: D.Pareto(*[(t(1.0, 0.5), t(3.0, 0.9)), (t(0.8, 0.6), t(2.5, 1.0))][i]),
    "Poisson": lambda D, t, i: D.Poisson([t(0.5, 2.0), t(1.5, 7.0)][i]),
    "TransformedDistribution": lambda D, t, i: D.LogNormal(
        *[(t(0.0, 1.0), t(1.0, 2.0)), (t(0.5, -1.0), t(0.7, 3.0))][i]
    ),
    "Uniform": lambda D, t, i: D.Uniform(*[(t(0.1, 0.3), t(0.9, 0.5)), (t(0.0, 0.4), t(1.0, 2.0))][i]),
    "ExponentialFamily": lambda D, t, i: D.Wishart([t(5.0), t(6.0)][i], t(COVARIANCE)),
}


def pairs(torch: Any) -> set[tuple[str, str]]:
    return {(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY}


def one(name: str, torch: Any, dtype: str, side: int) -> tuple[Any, list[Any]]:
    numbers = Numbers(torch, dtype, grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = FAMILIES[name](torch.distributions, numbers, side)
    return made, numbers.leaves


def answer(torch: Any, p_name: str, q_name: str, dtype: str) -> Any:
    p, of_p = one(p_name, torch, dtype, 0)
    q, of_q = one(q_name, torch, dtype, 1)
    try:
        value = torch.distributions.kl_divergence(p, q)
    except Exception as error:
        return type(error).__name__, str(error)
    if not value.requires_grad:
        return value, ()
    grads = torch.autograd.grad(value[value.isfinite()].sum(), of_p + of_q, allow_unused=True)
    return value.detach(), grads


def test_the_same_pairs_are_registered(oracle: ModuleType) -> None:
    assert pairs(torch) == pairs(oracle)
    assert {name for pair in pairs(torch) for name in pair} == set(FAMILIES)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_pair_as_the_oracle(oracle: ModuleType, dtype: str) -> None:
    for p, q in sorted(pairs(oracle)):
        mine, theirs = (answer(t, p, q, dtype) for t in (torch, oracle))
        where = f"{p} and {q}"
        if isinstance(theirs[0], str):
            assert mine == theirs, where
            continue
        _oracle.assert_same(mine[0], theirs[0], *TOLERANCES[dtype], where=where, stride=False)
        assert [g is None for g in mine[1]] == [g is None for g in theirs[1]], where
        for left, right in zip(mine[1], theirs[1]):
            if right is not None:
                _oracle.assert_same(left, right, *GRADIENT_TOLERANCES[dtype], where=where, stride=False)


def test_dispatch() -> None:
    class A(D.Normal):
        pass

    class B(D.Normal):
        pass

    registry = dict(D.kl._KL_REGISTRY)
    try:
        D.register_kl(A, D.Normal)(lambda p, q: "left")
        D.register_kl(D.Normal, B)(lambda p, q: "right")
        assert D.kl_divergence(A(0.0, 1.0), D.Normal(0.0, 1.0)) == "left"
        assert D.kl_divergence(D.Normal(0.0, 1.0), B(0.0, 1.0)) == "right"
        with pytest.warns(RuntimeWarning) as caught:
            assert D.kl_divergence(A(0.0, 1.0), B(0.0, 1.0)) == "left"
        assert str(caught[0].message) == "Ambiguous kl_divergence(A, B). Please register_kl(A, B)"
        D.register_kl(A, B)(lambda p, q: "exact")
        assert D.kl_divergence(A(0.0, 1.0), B(0.0, 1.0)) == "exact"
    finally:
        D.kl._KL_REGISTRY.clear()
        D.kl._KL_REGISTRY.update(registry)
        D.kl._KL_MEMOIZE.clear()


def test_no_formula() -> None:
    with pytest.raises(NotImplementedError) as caught:
        D.kl_divergence(D.StudentT(3.0), D.VonMises(torch.tensor(0.0), torch.tensor(1.0)))
    assert str(caught.value) == "No KL(p || q) is implemented for p type StudentT and q type VonMises"


def test_divergence_is_the_mean_of_the_log_ratio() -> None:
    torch.manual_seed(0)
    cases = [
        (D.Normal(0.0, 1.0), D.Normal(0.5, 1.5)),
        (D.Gamma(2.0, 1.0), D.Gamma(3.0, 2.0)),
        (D.Laplace(0.0, 1.0), D.Normal(0.5, 1.5)),
        (D.Beta(2.0, 3.0), D.Beta(1.5, 1.5)),
        (D.Categorical(torch.tensor([0.2, 0.8])), D.Categorical(torch.tensor([0.5, 0.5]))),
    ]
    for p, q in cases:
        x = p.sample((40000,))
        estimate = (p.log_prob(x) - q.log_prob(x)).mean()
        assert abs(float(estimate - D.kl_divergence(p, q))) < 0.02, (p, q)
