"""Probability distributions: samples, densities, moments, divergences and transforms, as in PyTorch.

Invariant: a distribution's module is imported when the distribution is first asked for; who looks at the package's
`__dict__` (Pyro walks through it) asks for all.
"""

from __future__ import annotations

import sys as _sys
import typing as _typing
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import Any as _Any

# Where public names live. A module that holds one class has its name here too.
_HOMES = {
    "bernoulli": "Bernoulli",
    "beta": "Beta",
    "binomial": "Binomial",
    "categorical": "Categorical",
    "cauchy": "Cauchy",
    "chi2": "Chi2",
    "continuous_bernoulli": "ContinuousBernoulli",
    "dirichlet": "Dirichlet",
    "distribution": "Distribution",
    "exponential": "Exponential",
    "exp_family": "ExponentialFamily",
    "fishersnedecor": "FisherSnedecor",
    "gamma": "Gamma",
    "generalized_pareto": "GeneralizedPareto",
    "geometric": "Geometric",
    "gumbel": "Gumbel",
    "half_cauchy": "HalfCauchy",
    "half_normal": "HalfNormal",
    "independent": "Independent",
    "inverse_gamma": "InverseGamma",
    "kumaraswamy": "Kumaraswamy",
    "lkj_cholesky": "LKJCholesky",
    "laplace": "Laplace",
    "log_normal": "LogNormal",
    "logistic_normal": "LogisticNormal",
    "lowrank_multivariate_normal": "LowRankMultivariateNormal",
    "mixture_same_family": "MixtureSameFamily",
    "multinomial": "Multinomial",
    "multivariate_normal": "MultivariateNormal",
    "negative_binomial": "NegativeBinomial",
    "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    "pareto": "Pareto",
    "relaxed_bernoulli": "RelaxedBernoulli",
    "relaxed_categorical": "RelaxedOneHotCategorical",
    "studentT": "StudentT",
    "poisson": "Poisson",
    "uniform": "Uniform",
    "von_mises": "VonMises",
    "weibull": "Weibull",
    "wishart": "Wishart",
    "transformed_distribution": "TransformedDistribution",
    "constraint_registry": "biject_to transform_to",
    "kl": "kl_divergence register_kl",
    "transforms": (
        "AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform "
        "CumulativeDistributionTransform ExpTransform IndependentTransform LowerCholeskyTransform "
        "PositiveDefiniteTransform PowerTransform ReshapeTransform SigmoidTransform SoftplusTransform TanhTransform "
        "SoftmaxTransform StackTransform StickBreakingTransform Transform identity_transform"
    ),
    "constraints": "",
    "utils": "",
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> _Any:
    if name in _MODULE_OF:
        value = getattr(_import_module(f".{_MODULE_OF[name]}", __name__), name)
    elif name in _HOMES:
        value = _import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    globals()[name] = value
    return value


class _Package(_ModuleType):
    """The package's own class, for the sake of its `__dict__`."""

    if not _typing.TYPE_CHECKING:

        @property
        def __dict__(self):
            for name in __all__:
                getattr(self, name)
            return globals()


_sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_HOMES})
