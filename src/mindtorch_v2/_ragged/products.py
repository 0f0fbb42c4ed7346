"""Jagged layout: products of matrices.

Invariant: a product over the ragged dimension gives a dense tensor, one beside it a nested one.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._dispatch.op import Op
from .construct import from_padded, padded_to
from .history import components, values_of, wrap
from .jagged import same_raggedness
from .parts import is_nested, parts, structure_of
from .table import JAGGED, serves


@serves(JAGGED, "linear")
def _linear(op: Op, input: Any, weight: Any, bias: Any) -> Any:
    structure = structure_of(input) if is_nested(input) else None
    if structure is None or structure.lengths is not None or structure.ragged != 1:
        raise ValueError(
            "NestedTensor linear_default(input: jt, weight: t, bias: t?): expected input to be a contiguous jagged "
            "layout NestedTensor"
        )
    if is_nested(weight) or is_nested(bias):
        raise ValueError(
            f"NestedTensor linear_default(input: jt, weight: t, bias: t?): expected "
            f"{'weight to be a tensor' if is_nested(weight) else 'bias to be a optional tensor'}"
        )
    return wrap(op.call((values_of(input), weight, bias)), structure)


def _through_padded(op: Op, self: Any, other: Any) -> Any:
    """A product with a dense tensor of as many dimensions: padded, and back."""
    nested = self if is_nested(self) else other
    structure = structure_of(nested)
    dense = padded_to(nested, 0.0)
    found = op.call((dense, other) if nested is self else (self, dense))
    return wrap(from_padded(found, structure, parts(nested).values.shape[structure.ragged - 1]), structure)


@serves(JAGGED, "matmul", "bmm")
def _matmul(op: Op, self: Any, other: Any) -> Any:
    if op.name == "bmm" and (self.dim() != 3 or other.dim() != 3):
        raise ValueError(f"bmm(): {'input' if self.dim() != 3 else 'mat2'} must be 3D")
    found = _product(op, self, other)
    if found is None:
        raise RuntimeError(f"matmul(): not supported between inputs of shapes {_shown(self)} and {other.shape}")
    return found


def _shown(t: Any) -> Any:
    return tuple(t._shape) if is_nested(t) else t.shape


def _product(op: Op, self: Any, other: Any) -> Any:
    if is_nested(self) and not is_nested(other):
        structure, ndim = structure_of(self), self.dim()
        if structure.ragged >= ndim - 1:
            return None
        if ndim >= 3 and ndim == other.dim():
            return _through_padded(op, self, other)
        return wrap(torch.matmul(values_of(self), other), structure) if other.dim() == 2 < ndim else None
    if not is_nested(self):
        structure, ndim = structure_of(other), other.dim()
        if structure.ragged < 2:
            return None
        if ndim >= 3 and ndim == self.dim():
            return _through_padded(op, self, other)
        return wrap(torch.matmul(self, values_of(other)), structure) if self.dim() == 2 < ndim else None
    mine, theirs = structure_of(self), structure_of(other)
    if self.dim() > 3 and other.dim() > 3 and same_raggedness(self, other):
        return wrap(torch.matmul(values_of(self), values_of(other)), mine)
    if self.dim() == other.dim() == 3 and (mine.ragged, theirs.ragged) == (2, 1) and mine.size == theirs.size:
        return torch.stack([torch.matmul(a, b) for a, b in zip(components(self), components(other))])
    return None
