"""Random counts: events at given rates, successes among given trials.

Invariant: as many uniform numbers are drawn as PyTorch draws, in its order, so that a seed gives its counts.
"""
from __future__ import annotations

from typing import Any

from .._dispatch.op import Spec
from .rules.base import like
from .rules.pointwise import broadcast_shapes
from .table import op


def _poisson_meta(self: Any, generator: Any) -> Spec:
    if not self._dtype.is_floating_point:
        raise NotImplementedError(f"\"poisson_cpu\" not implemented for '{self._dtype.scalar_name}'")
    return like(self)


op("poisson(Tensor self, Generator? generator=None) -> Tensor", meta=_poisson_meta, method=False,
   grad=dict(self=lambda g: g * 0))


def _binomial_meta(count: Any, prob: Any, generator: Any) -> Spec:
    for name, t in (("count", count), ("prob", prob)):
        if not t._dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {t._dtype.scalar_name}")
    if prob._dtype is not count._dtype:
        raise RuntimeError(f"Found dtype {prob._dtype.scalar_name} but expected {count._dtype.scalar_name}")
    if count._dtype.itemsize < 4:
        raise NotImplementedError(f"\"binomial_cpu\" not implemented for '{count._dtype.scalar_name}'")
    return like(count, broadcast_shapes(count._shape, prob._shape))


op("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", meta=_binomial_meta, method=False,
   nondifferentiable=True)
