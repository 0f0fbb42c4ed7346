"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from .._size import Size
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What lies above a threshold `loc`; the tail is as heavy as `concentration`, and ends where that is negative."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        return self._expanded(GeneralizedPareto, batch_shape, _instance, "loc", "scale", "concentration")

    def _cases(self, zero: Tensor) -> tuple[Tensor, Tensor]:
        """Where the concentration is zero, which is the exponential distribution, and one to compute with there."""
        exponential = torch.isclose(self.concentration, zero)
        return exponential, torch.where(exponential, torch.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self.icdf(torch.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        exponential, safe = self._cases(torch.tensor(0.0))
        power = 1 / safe + torch.ones_like(z)
        other = torch.where(power == 0, power, power * torch.log1p(safe * z))
        return -self.scale.log() - torch.where(exponential, z, other)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of more than `value`."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        exponential, safe = self._cases(torch.tensor(0.0))
        return torch.where(exponential, -z, -torch.log1p(safe * z) / safe)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return torch.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        exponential, safe = self._cases(torch.zeros_like(self.concentration))
        log_rest = torch.log1p(-value)
        other = self.loc + self.scale / safe * torch.expm1(-safe * log_rest)
        return torch.where(exponential, self.loc - self.scale * log_rest, other)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    @property
    def mean(self) -> Any:
        finite = self.concentration < 1
        safe = torch.where(finite, self.concentration, 0.5)
        return torch.where(finite, self.loc + self.scale / (1 - safe), math.nan)

    @property
    def variance(self) -> Any:
        finite = self.concentration < 0.5
        safe = torch.where(finite, self.concentration, 0.25)
        return torch.where(finite, self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), math.nan)

    def entropy(self) -> Tensor:
        return torch.broadcast_to(torch.log(self.scale) + self.concentration + 1, self._batch_shape)

    @property
    def mode(self) -> Any:
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        upper = torch.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)
