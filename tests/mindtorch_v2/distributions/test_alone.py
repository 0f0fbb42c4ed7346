"""Distributions without the oracle: formulas against SciPy, samples against moments, a model that trains."""

from __future__ import annotations

import math
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.stats

from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

D = submodule("distributions")

# Ours, SciPy's, and whether there are densities or probabilities.
SCIPY: list[tuple[str, Any, Any, bool]] = [
    ("Normal", lambda t: D.Normal(t(0.5), t(2.0)), scipy.stats.norm(0.5, 2.0), True),
    ("Beta", lambda t: D.Beta(t(2.0), t(3.5)), scipy.stats.beta(2.0, 3.5), True),
    ("Gamma", lambda t: D.Gamma(t(2.5), t(1.5)), scipy.stats.gamma(2.5, scale=1 / 1.5), True),
    ("Chi2", lambda t: D.Chi2(t(4.0)), scipy.stats.chi2(4.0), True),
    ("Cauchy", lambda t: D.Cauchy(t(0.5), t(2.0)), scipy.stats.cauchy(0.5, 2.0), True),
    ("Exponential", lambda t: D.Exponential(t(1.5)), scipy.stats.expon(scale=1 / 1.5), True),
    ("FisherSnedecor", lambda t: D.FisherSnedecor(t(5.0), t(12.0)), scipy.stats.f(5.0, 12.0), True),
    ("GeneralizedPareto", lambda t: D.GeneralizedPareto(0.5, 2.0, 0.3), scipy.stats.genpareto(0.3, 0.5, 2.0), True),
    ("Gumbel", lambda t: D.Gumbel(t(0.5), t(2.0)), scipy.stats.gumbel_r(0.5, 2.0), True),
    ("HalfCauchy", lambda t: D.HalfCauchy(t(2.0)), scipy.stats.halfcauchy(scale=2.0), True),
    ("HalfNormal", lambda t: D.HalfNormal(t(2.0)), scipy.stats.halfnorm(scale=2.0), True),
    ("InverseGamma", lambda t: D.InverseGamma(t(3.5), t(2.0)), scipy.stats.invgamma(3.5, scale=2.0), True),
    ("Laplace", lambda t: D.Laplace(t(0.5), t(2.0)), scipy.stats.laplace(0.5, 2.0), True),
    ("LogNormal", lambda t: D.LogNormal(t(0.5), t(0.7)), scipy.stats.lognorm(0.7, scale=math.exp(0.5)), True),
    ("Pareto", lambda t: D.Pareto(t(1.5), t(4.0)), scipy.stats.pareto(4.0, scale=1.5), True),
    ("StudentT", lambda t: D.StudentT(t(5.0), t(0.5), t(2.0)), scipy.stats.t(5.0, 0.5, 2.0), True),
    ("Uniform", lambda t: D.Uniform(t(-1.0), t(3.0)), scipy.stats.uniform(-1.0, 4.0), True),
    ("VonMises", lambda t: D.VonMises(t(0.5), t(2.0)), scipy.stats.vonmises(2.0, 0.5), True),
    ("Weibull", lambda t: D.Weibull(t(2.0), t(1.5)), scipy.stats.weibull_min(1.5, scale=2.0), True),
    ("Bernoulli", lambda t: D.Bernoulli(t(0.3)), scipy.stats.bernoulli(0.3), False),
    ("Binomial", lambda t: D.Binomial(9, t(0.3)), scipy.stats.binom(9, 0.3), False),
    ("Geometric", lambda t: D.Geometric(t(0.3)), scipy.stats.geom(0.3, loc=-1), False),
    ("NegativeBinomial", lambda t: D.NegativeBinomial(t(5.0), t(0.3)), scipy.stats.nbinom(5.0, 0.7), False),
    ("Poisson", lambda t: D.Poisson(t(3.5)), scipy.stats.poisson(3.5), False),
]


@pytest.mark.parametrize(("name", "make", "theirs", "dense"), SCIPY, ids=[row[0] for row in SCIPY])
def test_formulas_are_scipys(name: str, make: Any, theirs: Any, dense: bool) -> None:
    dtype = torch.float32 if name == "GeneralizedPareto" else torch.float64
    mine = make(lambda v: torch.tensor(v, dtype=dtype))
    torch.manual_seed(3)
    x = mine.sample((20000,))
    seen = x[:30].double().numpy()
    expected = theirs.logpdf(seen) if dense else theirs.logpmf(seen)
    np.testing.assert_allclose(mine.log_prob(x[:30]).numpy(), expected, rtol=1e-4 if name == "VonMises" else 1e-5)
    for ours, wanted in ((lambda: mine.mean, theirs.mean), (lambda: mine.variance, theirs.var)):
        if name not in ("Cauchy", "HalfCauchy", "VonMises"):
            np.testing.assert_allclose(float(ours()), wanted(), rtol=1e-5)
    try:
        np.testing.assert_allclose(mine.cdf(x[:30]).numpy(), theirs.cdf(seen), rtol=1e-4, atol=1e-6)
    except NotImplementedError:
        pass
    # The samples are the distribution's: Kolmogorov and Smirnov's distance for 20000 of them.
    if dense:
        assert scipy.stats.kstest(x.double().numpy(), theirs.cdf).statistic < 0.015
    else:
        assert abs(float(x.mean()) - theirs.mean()) < 5 * theirs.std() / math.sqrt(20000)


def test_vectors_are_scipys() -> None:
    covariance = [[2.0, 0.6], [0.6, 1.5]]
    made = D.MultivariateNormal(torch.tensor([0.5, 1.0]).double(), torch.tensor(covariance).double())
    x = torch.tensor([0.1, -0.4]).double()  # neither has a batch
    expected = scipy.stats.multivariate_normal([0.5, 1.0], covariance).logpdf(x.numpy())
    assert float(made.log_prob(x)) == pytest.approx(expected)
    dirichlet = D.Dirichlet(torch.tensor([0.5, 2.0, 3.0]).double())
    y = torch.tensor([0.25, 0.25, 0.5]).double()
    assert float(dirichlet.log_prob(y)) == pytest.approx(scipy.stats.dirichlet([0.5, 2.0, 3.0]).logpdf(y.numpy()))
    wishart = D.Wishart(torch.tensor(5.0).double(), torch.tensor(covariance).double())
    m = torch.tensor([[3.0, 0.5], [0.5, 2.0]]).double()
    assert float(wishart.log_prob(m)) == pytest.approx(scipy.stats.wishart(5.0, covariance).logpdf(m.numpy()))


def test_entropy_of_an_exponential_family_is_that_of_the_formula() -> None:
    for made in (D.Normal(0.3, 2.0), D.Gamma(2.5, 1.5), D.Exponential(0.7), D.Bernoulli(torch.tensor(0.3))):
        by_autograd = D.ExponentialFamily.entropy(made)
        assert torch.allclose(by_autograd, made.entropy(), atol=1e-5), made


def loss_of(torch: Any, encoder: Any, decoder: Any, x: Any) -> Any:
    """The evidence bound of a variational autoencoder: Bernoulli pixels, a normal code."""
    D = torch.distributions
    mean, spread = encoder(x).chunk(2, -1)
    code = D.Independent(D.Normal(mean, torch.nn.functional.softplus(spread) + 1e-3), 1)
    prior = D.Independent(D.Normal(torch.zeros_like(mean), torch.ones_like(mean)), 1)
    pixels = D.Independent(D.Bernoulli(logits=decoder(code.rsample())), 1)
    return (D.kl_divergence(code, prior) - pixels.log_prob(x)).mean()


def curve(torch: Any, steps: int) -> list[float]:
    torch.manual_seed(0)
    encoder, decoder = torch.nn.Linear(12, 6), torch.nn.Linear(3, 12)
    data = (torch.rand(16, 12) < torch.linspace(0.1, 0.9, 12)).float()
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1, momentum=0.5)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(torch, encoder, decoder, data)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def test_a_variational_autoencoder_learns() -> None:
    losses = curve(torch, 30)
    assert losses[-1] < 0.92 * losses[0]


@pytest.mark.oracle
def test_a_variational_autoencoder_learns_as_the_oracles(oracle: ModuleType) -> None:
    assert curve(torch, 30) == pytest.approx(curve(oracle, 30), rel=1e-4)


def test_policy_gradients_flow() -> None:
    logits = torch.zeros(3, requires_grad=True)
    made = D.Categorical(logits=logits)
    (-made.log_prob(torch.tensor(1)) * 2.0).backward()
    assert torch.allclose(logits.grad, torch.tensor([2 / 3, -4 / 3, 2 / 3]))


@mindtorch_only
def test_import_is_lazy_and_quick() -> None:
    code = (
        "import sys, mindtorch_v2 as t; assert 'mindtorch_v2.distributions' not in sys.modules; t.distributions;"
        "assert 'mindtorch_v2.distributions.normal' not in sys.modules; t.distributions.Normal(0., 1.);"
        "assert 'mindtorch_v2.distributions.kl' not in sys.modules and 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
