"""The multivariate normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from .._size import Size
from .._tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Matrix times vector; both have batches, which broadcast."""
    return torch.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """x.T (L L.T)^-1 x, where the batch of x may be larger than that of L.

    Vectors that share a factor are solved for at once: their dimensions are brought to the front, where the factor's
    have size one.
    """
    n, batch = bx.size(-1), bx.shape[:-1]
    inner = bL.dim() - 2
    outer = len(batch) - inner
    split = batch[:outer]
    for own, whole in zip(bL.shape[:-2], batch[outer:]):
        split += (whole // own, own)
    ahead, after = range(outer, outer + 2 * inner, 2), range(outer + 1, outer + 2 * inner, 2)
    bx = bx.reshape(split + (n,)).permute([*range(outer), *ahead, *after, outer + 2 * inner])
    factors = bL.reshape(-1, n, n)
    vectors = bx.reshape(-1, factors.size(0), n).permute(1, 2, 0)
    solved = torch.linalg.solve_triangular(factors, vectors, upper=False).pow(2).sum(-2).t()
    back = [i for pair in zip(range(outer, outer + inner), range(outer + inner, outer + 2 * inner)) for i in pair]
    return solved.reshape(bx.shape[:-1]).permute([*range(outer), *back]).reshape(batch)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The factor of the inverse, without inverting: flipped, the factor of P is an upper triangle."""
    flipped = torch.linalg.cholesky(torch.flip(P, (-2, -1)))
    inverse = torch.transpose(torch.flip(flipped, (-2, -1)), -2, -1)
    one = torch.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return torch.linalg.solve_triangular(inverse, one, upper=False)


def one_matrix(covariance_matrix: Any, precision_matrix: Any, scale_tril: Any) -> tuple[str, Any]:
    """Name and value of the one that is given; the name is empty if there is another number of them."""
    given = {"scale_tril": scale_tril, "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix}
    found = [(name, value) for name, value in given.items() if value is not None]
    return found[0] if len(found) == 1 else ("", None)


def to_scale_tril(name: str, matrix: Tensor) -> Tensor:
    """The lower triangular factor of the covariance."""
    if name == "scale_tril":
        return matrix
    return torch.linalg.cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)


class MultivariateNormal(Distribution):
    """Normal vectors with mean `loc` and a covariance, its inverse, or its lower triangular factor."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = one_matrix(covariance_matrix, precision_matrix, scale_tril)
        if not name:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{what} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = to_scale_tril(name, matrix)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        names = ("loc", "covariance_matrix", "scale_tril", "precision_matrix")
        kept = ("_unbroadcasted_scale_tril",)
        return self._expanded(MultivariateNormal, batch_shape, _instance, *names, kept=kept)

    def _squared(self, value: Tensor) -> Tensor:
        """A matrix for each of the batch."""
        return value.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        return self._squared(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        return self._squared(torch.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT))

    @lazy_property
    def precision_matrix(self) -> Any:
        return self._squared(torch.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def _half_logdet(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_logdet()

    def entropy(self) -> Tensor:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_logdet()
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
