"""Constructor arguments of every distribution, as a function of the library and the dtype.

Invariant: the arguments are the same numbers in both libraries; every public class of `torch.distributions` is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Make = Callable[[Any, "Numbers"], Any]


class Numbers:
    """Tensors of one dtype in one library; those that are leaves remember themselves, for gradients."""

    def __init__(self, torch: Any, dtype: str = "float64", grad: bool = False, device: str = "cpu") -> None:
        self.torch = torch
        self.dtype = getattr(torch, dtype)
        self.grad = grad
        self.device = device
        self.leaves: list[Any] = []

    def __call__(self, *values: Any) -> Any:
        made = self.torch.tensor(values[0] if len(values) == 1 else list(values), dtype=self.dtype, device=self.device)
        if self.grad:
            made.requires_grad_()
            self.leaves.append(made)
        return made


class Row(NamedTuple):
    name: str
    make: Make
    # Values that the support does not contain, and a parameter value that the constraint refuses.
    outside: Any = None


COVARIANCE = [[2.0, 0.6, 0.1], [0.6, 1.5, -0.3], [0.1, -0.3, 0.8]]
LOWER = [[1.4, 0.0, 0.0], [0.4, 1.1, 0.0], [-0.2, 0.3, 0.7]]
THREE = [0.2, 0.5, 0.3]
MATRIX = [[0.1, 0.7, 0.2], [0.3, 0.3, 0.4]]

ROWS: list[Row] = [
    Row("Bernoulli", lambda D, t: D.Bernoulli(t(0.1, 0.5, 0.9))),
    Row("Bernoulli logits", lambda D, t: D.Bernoulli(logits=t([[-2.0, 0.0], [1.0, 3.0]]))),
    Row("Beta", lambda D, t: D.Beta(t(0.4, 2.0, 9.0), t(0.7, 3.0, 8.0))),
    Row("Beta scalar", lambda D, t: D.Beta(t([2.5]), 1.5)),
    Row("Binomial", lambda D, t: D.Binomial(7, t(0.1, 0.5, 0.8))),
    Row("Binomial logits", lambda D, t: D.Binomial(5, logits=t(-1.0, 0.0, 2.0))),
    Row("Binomial many", lambda D, t: D.Binomial(40, probs=t(0.3, 0.7))),
    Row("Categorical", lambda D, t: D.Categorical(t(MATRIX))),
    Row("Categorical logits", lambda D, t: D.Categorical(logits=t(-1.0, 0.5, 2.0))),
    Row("Cauchy", lambda D, t: D.Cauchy(t(-1.0, 0.0, 2.0), t(0.5, 1.0, 3.0))),
    Row("Chi2", lambda D, t: D.Chi2(t(0.5, 3.0, 12.0))),
    Row("ContinuousBernoulli", lambda D, t: D.ContinuousBernoulli(t(0.1, 0.5, 0.8))),
    Row("ContinuousBernoulli logits", lambda D, t: D.ContinuousBernoulli(logits=t(-1.5, 0.0, 0.7))),
    Row("Dirichlet", lambda D, t: D.Dirichlet(t([[0.3, 1.0, 4.0], [2.0, 7.0, 0.9]]))),
    Row("Exponential", lambda D, t: D.Exponential(t(0.3, 1.0, 6.0))),
    Row("FisherSnedecor", lambda D, t: D.FisherSnedecor(t(3.0, 5.0), t(6.0, 9.0))),
    Row("Gamma", lambda D, t: D.Gamma(t(0.2, 1.0, 15.0), t(0.5, 1.0, 4.0))),
    Row("GeneralizedPareto", lambda D, t: D.GeneralizedPareto(t(0.0, 1.0, -1.0), t(1.0, 2.0, 0.5), t(0.2, 0.0, -0.4))),
    Row("Geometric", lambda D, t: D.Geometric(t(0.2, 0.6, 0.9))),
    Row("Geometric logits", lambda D, t: D.Geometric(logits=t(-1.0, 1.0))),
    Row("Gumbel", lambda D, t: D.Gumbel(t(0.0, 1.0), t(1.0, 0.4))),
    Row("HalfCauchy", lambda D, t: D.HalfCauchy(t(0.5, 2.0))),
    Row("HalfNormal", lambda D, t: D.HalfNormal(t(0.5, 2.0))),
    Row(
        "Independent", lambda D, t: D.Independent(D.Normal(t([[0.0, 1.0], [2.0, 3.0]]), t([[1.0, 2.0], [0.5, 1.5]])), 1)
    ),
    Row("Independent discrete", lambda D, t: D.Independent(D.Bernoulli(t(MATRIX)), 1)),
    Row("InverseGamma", lambda D, t: D.InverseGamma(t(1.5, 3.0, 0.7), t(1.0, 2.0, 0.5))),
    Row("Kumaraswamy", lambda D, t: D.Kumaraswamy(t(0.6, 2.0), t(0.5, 3.0))),
    Row("LKJCholesky", lambda D, t: D.LKJCholesky(3, t(0.7, 2.0))),
    Row("Laplace", lambda D, t: D.Laplace(t(0.0, -1.0), t(1.0, 2.5))),
    Row("LogNormal", lambda D, t: D.LogNormal(t(0.0, 1.0), t(0.3, 0.8))),
    Row("LogisticNormal", lambda D, t: D.LogisticNormal(t([[0.0, 1.0], [-1.0, 0.5]]), t([[1.0, 0.5], [0.7, 0.2]]))),
    Row(
        "LowRankMultivariateNormal",
        lambda D, t: D.LowRankMultivariateNormal(
            t([[0.0, 1.0, 2.0]] * 2), t([[1.0, 0.2], [0.5, -0.3], [0.1, 2.0]]), t(0.5, 1.0, 2.0)
        ),
    ),
    Row(
        "MixtureSameFamily",
        lambda D, t: D.MixtureSameFamily(D.Categorical(t(THREE)), D.Normal(t(-1.0, 0.0, 2.0), t(0.5, 1.0, 0.3))),
    ),
    Row(
        "MixtureSameFamily vectors",
        lambda D, t: D.MixtureSameFamily(
            D.Categorical(t([[0.4, 0.6]] * 2)),
            D.Independent(D.Normal(t([[[0.0, 1.0], [2.0, 3.0]]] * 2), t([[[1.0, 0.5], [0.7, 0.4]]] * 2)), 1),
        ),
    ),
    Row("Multinomial", lambda D, t: D.Multinomial(6, t(MATRIX))),
    Row("Multinomial logits", lambda D, t: D.Multinomial(4, logits=t(-1.0, 0.0, 1.0))),
    Row("MultivariateNormal", lambda D, t: D.MultivariateNormal(t([[0.0, 1.0, 2.0]] * 2), t(COVARIANCE))),
    Row(
        "MultivariateNormal precision",
        lambda D, t: D.MultivariateNormal(t(0.0, 1.0, 2.0), precision_matrix=t(COVARIANCE)),
    ),
    Row("MultivariateNormal tril", lambda D, t: D.MultivariateNormal(t(0.0, 1.0, 2.0), scale_tril=t([LOWER] * 2))),
    Row("NegativeBinomial", lambda D, t: D.NegativeBinomial(t(3.0, 8.0), t(0.2, 0.6))),
    Row("NegativeBinomial logits", lambda D, t: D.NegativeBinomial(4, logits=t(-1.0, 0.5))),
    Row("Normal", lambda D, t: D.Normal(t([[0.0], [1.0]]), t(0.5, 1.0, 3.0))),
    Row("OneHotCategorical", lambda D, t: D.OneHotCategorical(t(MATRIX))),
    Row("OneHotCategoricalStraightThrough", lambda D, t: D.OneHotCategoricalStraightThrough(logits=t(0.1, 0.7, -1.0))),
    Row("Pareto", lambda D, t: D.Pareto(t(1.0, 0.5), t(3.0, 2.5))),
    Row("Poisson", lambda D, t: D.Poisson(t(0.2, 3.0, 30.0))),
    Row("RelaxedBernoulli", lambda D, t: D.RelaxedBernoulli(t(0.7), t(0.2, 0.6))),
    Row("RelaxedBernoulli logits", lambda D, t: D.RelaxedBernoulli(t(2.0), logits=t(-1.0, 0.5))),
    Row("LogitRelaxedBernoulli", lambda D, t: D.relaxed_bernoulli.LogitRelaxedBernoulli(t(0.7), t(0.2, 0.6))),
    Row("RelaxedOneHotCategorical", lambda D, t: D.RelaxedOneHotCategorical(t(0.8), t(MATRIX))),
    Row("ExpRelaxedCategorical", lambda D, t: D.relaxed_categorical.ExpRelaxedCategorical(t(0.8), logits=t(THREE))),
    Row("StudentT", lambda D, t: D.StudentT(t(0.8, 1.5, 7.0), t(0.0, 1.0, 2.0), t(1.0, 0.5, 2.0))),
    Row(
        "TransformedDistribution",
        lambda D, t: D.TransformedDistribution(
            D.Normal(t(0.0, 1.0), t(1.0, 0.5)), [D.AffineTransform(t(0.5), t(-2.0)), D.ExpTransform()]
        ),
    ),
    Row(
        "TransformedDistribution vectors",
        lambda D, t: D.TransformedDistribution(
            D.Normal(t([[0.0, 1.0]] * 3), t(1.0, 0.5)), [D.TanhTransform(), D.StickBreakingTransform()]
        ),
    ),
    Row("Uniform", lambda D, t: D.Uniform(t(0.0, -1.0), t(1.0, 3.0))),
    Row("VonMises", lambda D, t: D.VonMises(t(0.0, 1.0, -2.0), t(0.3, 2.0, 20.0))),
    Row("Weibull", lambda D, t: D.Weibull(t(1.0, 2.0), t(0.8, 3.0))),
    Row("Wishart", lambda D, t: D.Wishart(t(5.0, 7.5), t(COVARIANCE))),
    Row("Wishart precision", lambda D, t: D.Wishart(6, precision_matrix=t(COVARIANCE))),
    Row("Wishart tril", lambda D, t: D.Wishart(t([4.0]), scale_tril=t([LOWER] * 1))),
]
