"""Exponential families: densities exp(<t(x), parameters> - log normalizer + carrier measure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution whose entropy and divergences follow from its log normalizer."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    if TYPE_CHECKING:
        _log_normalizer: Any
    else:

        def _log_normalizer(self, *natural_params):
            raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        result = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        result += normalizer
        for p, g in zip(params, torch.autograd.grad(normalizer.sum(), params, create_graph=True)):
            result -= (p * g).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
