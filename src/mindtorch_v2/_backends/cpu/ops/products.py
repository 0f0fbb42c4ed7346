"""CPU line of cross products."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._ops.products import cross_in_parts
from ...._ops.rules.base import wrap_dim
from ...._ops.rules.layout import expand_strides
from ...common.runtime import copy_same_device
from ..lines import cpu, into

Ints = tuple[int, ...]


def _turned(values: Ints, d: int) -> Ints:
    """The dimension of the three at the end."""
    return values[:d] + values[d + 1:] + values[d:d + 1]


def _cross(out: Any, self: Any, other: Any, dim: int) -> None:
    dt, shape = out._dtype, out._shape
    if dt.name not in ("float32", "float64"):
        copy_same_device(out, cross_in_parts(self, other, dim))
        return
    d, code = wrap_dim(dim, len(shape)), dt.code
    _native.cross3(
        self._storage, int(self._offset), _turned(expand_strides(self, shape), d), code,
        other._storage, int(other._offset), _turned(expand_strides(other, shape), d), code,
        out._storage, int(out._offset), _turned(out._stride, d), code,
        _turned(shape, d))


cpu("linalg_cross", into(_cross, calls_ops=True))
