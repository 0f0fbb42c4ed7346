"""Jagged layout: reductions. One over the ragged dimension gives a dense tensor, any other a nested one.

Invariant: what is padded counts as the identity of the reduction.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._dispatch.op import Op
from .._dispatch.registry import get
from .._ops.rules.base import wrap_dim
from .construct import padded_to
from .history import values_of, wrap
from .parts import structure_of
from .table import JAGGED, serves


def _end(dtype: Any, low: bool) -> Any:
    if not dtype.is_floating_point:
        return float("-inf") if low else float("inf")
    info = torch.finfo(dtype)
    return info.min if low else info.max


_IDENTITIES: dict[str, Any] = {
    "sum": lambda dtype: 0,
    "prod": lambda dtype: 1,
    "any": lambda dtype: False,
    "all": lambda dtype: True,
    "amax": lambda dtype: _end(dtype, True),
    "argmax": lambda dtype: _end(dtype, True),
    "max": lambda dtype: _end(dtype, True),
    "amin": lambda dtype: _end(dtype, False),
    "argmin": lambda dtype: _end(dtype, False),
    "min": lambda dtype: _end(dtype, False),
    "mean": None,
}


def _mapped(found: Any, fn: Any) -> Any:
    """`fn` of each result; tuples with names stay such."""
    if not isinstance(found, (tuple, list)):
        return fn(found)
    made = [fn(t) for t in found]
    return type(found)(made) if not hasattr(found, "_fields") else type(found)(*made)


class _Dims:
    """Which dimensions a reduction goes over, by what they are."""

    def __init__(self, self_: Any, dims: list[int]) -> None:
        ragged = structure_of(self_).ragged
        known = [wrap_dim(d, self_.dim()) for d in dims]
        self.batch, self.ragged = 0 in known, ragged in known
        self.others = any(d not in (0, ragged) for d in known)
        self.inner = list(dict.fromkeys([ragged - 1 if d == 0 else d - 1 for d in known]))


@serves(JAGGED, "sum", "mean", "prod", "any", "all", "amax", "amin", "argmax", "argmin", "max.dim", "min.dim")
def _reduce(op: Op, self: Any, dim: Any, keepdim: bool, *rest: Any) -> Any:
    name, structure = op.title(), structure_of(self)
    listed = isinstance(dim, (tuple, list))
    if dim is None or (listed and not dim):
        found = op.call((values_of(self), dim, keepdim, *rest))
        return _mapped(found, lambda t: t.unsqueeze(structure.ragged)) if keepdim else found
    dims = _Dims(self, list(dim) if listed else [dim])
    if dims.ragged and structure.lengths is not None:
        raise RuntimeError(
            f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with "
            "holes"
        )
    given = tuple(dims.inner) if listed else dims.inner[0]
    if dims.ragged and not dims.batch:
        if dims.others:
            raise _two_kinds(name)
        return _over_ragged(op, self, listed, keepdim, rest)
    if dims.batch and not dims.ragged:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested "
            "tensors"
        )
    found = op.call((values_of(self), given, keepdim, *rest))
    if dims.ragged:
        return _mapped(found, lambda t: t.unsqueeze(0)) if keepdim else found
    lost = 0 if keepdim else len([d for d in dims.inner if d < structure.ragged - 1])
    return _mapped(found, lambda t: wrap(t, structure.at(structure.ragged - lost)))


def _two_kinds(name: str) -> Exception:
    if name == "mean":
        return AssertionError("Cannot reduce on both ragged and non-batch dimensions without also reducing on batch")
    return RuntimeError(
        f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
    )


def _over_ragged(op: Op, self: Any, listed: bool, keepdim: bool, rest: tuple[Any, ...]) -> Any:
    """Over the ragged dimension alone: a dense result, of a padded tensor."""
    structure = structure_of(self)
    at = (structure.ragged,) if listed else structure.ragged
    identity = _IDENTITIES[op.title()]
    if identity is not None:
        return op.call((padded_to(self, identity(self.dtype)), at, keepdim, *rest))
    total = get("sum").call((padded_to(self, 0), at, True, *rest))
    lengths = structure.each_length().view(-1, *[1] * (total.dim() - 1))
    mean = total / lengths
    return mean if keepdim else mean.squeeze(structure.ragged)


@serves(JAGGED, "max", "min", "_is_all_true", "_is_any_true")
def _whole(op: Op, self: Any) -> Any:
    return op.call((values_of(self),))
