"""Kronecker and cross products, and combinations of elements.

Invariant: rows without a line on a device are compositions of indexing and multiplication.
"""
from __future__ import annotations

import math
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._sizes import dense_bytes
from .._tensor_base import numel
from .._warn import warn_once
from .rules.base import KeptRule, spec, wrap_dim
from .rules.pointwise import broadcast_shapes, promoted
from .table import composite, op

_UNSAFE_VIEW = registry.get("_unsafe_view")


def _kron(self: Any, other: Any) -> Any:
    if len(self._shape) == 2 == len(other._shape):
        (p, q), (r, s) = self._shape, other._shape
        spread = self.reshape((p, 1, q, 1)) * other.reshape((1, r, 1, s))
        return _UNSAFE_VIEW.call((spread, (p * r, q * s)))
    n = max(self.dim(), other.dim())
    a = (1,) * (n - self.dim()) + tuple(self._shape)
    b = (1,) * (n - other.dim()) + tuple(other._shape)
    left = self.reshape(tuple(x for s in a for x in (s, 1)))
    right = other.reshape(tuple(x for s in b for x in (1, s)))
    return _UNSAFE_VIEW.call((left * right, tuple(x * y for x, y in zip(a, b))))


composite("kron(Tensor self, Tensor other) -> Tensor", _kron, out=True)


_MOST_CHOSEN = 1 << 28


def _combinations(self: Any, r: int, with_replacement: bool) -> Any:
    if self.dim() != 1:
        raise RuntimeError("Expect a 1D vector, but got shape " + str(list(self._shape)))
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return self.new_empty((0,))
    n = numel(self)
    # More of them than can be counted, or than memory holds, are refused before the first is made.
    pool = n + r - 1 if with_replacement else n
    if r > _MOST_CHOSEN or min(r, max(pool - r, 0)) > 64 and pool > 128:
        raise RuntimeError("numel: integer multiplication overflow")
    count = math.comb(pool, r)
    dense_bytes((count, r), self._dtype.itemsize)
    self.new_empty((count, r))
    from itertools import combinations, combinations_with_replacement

    from .._dtype import int64
    from .._from_data import tensor

    chosen = (combinations_with_replacement if with_replacement else combinations)(range(n), r)
    at = tensor(list(chosen), dtype=int64, device=self._device).reshape((-1, r))
    return self.index_select(0, at.reshape((-1,))).reshape(at._shape)


composite("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", _combinations,
          method=False)


_STACK = registry.get("stack")


# -- cross products -----------------------------------------------------------------------------------------------
def _cross_meta(self: Any, other: Any, dim: int) -> Spec:
    if self.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = wrap_dim(dim, self.dim())
    if not self.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if self._shape[d] != 3 or other._shape[d] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {self._shape[d]} and "
                           f"{other._shape[d]}")
    shape = broadcast_shapes(self._shape, other._shape)
    dt = promoted(self._dtype, other._dtype)
    if dt is not self._dtype or dt is not other._dtype:
        raise RuntimeError(f"linalg.cross: expected both inputs to have the same dtype, got "
                           f"{self._dtype.scalar_name} and {other._dtype.scalar_name}")
    return spec(shape, dt, self._device)


def cross_in_parts(self: Any, other: Any, dim: int) -> Any:
    d = wrap_dim(dim, self.dim())
    a, b, c = self.unbind(d)
    x, y, z = other.unbind(d)
    return _STACK.call(((b * z - c * y, c * x - a * z, a * y - b * x), d))


def _conj(t: Any) -> Any:
    return t.conj() if t._dtype.is_complex else t


CROSS: Op = op("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", meta=KeptRule(_cross_meta), out=True,
               kernel=cross_in_parts, function=False, method=False,
               grad=dict(self=lambda g, other, dim: CROSS.call((_conj(other).expand(g._shape), g, dim)),
                         other=lambda g, self, dim: CROSS.call((g, _conj(self).expand(g._shape), dim))))


def _old_cross(self: Any, other: Any, dim: int | None) -> Any:
    if dim is None:
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly "
            "or simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of "
            "linalg.cross in a future release.")
        dim = next((i for i, n in enumerate(self._shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return CROSS.call((self, other, dim))


composite("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", _old_cross, out=True)
