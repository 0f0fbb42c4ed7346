"""`torch.nested._internal.ops`: dimensions of a jagged nested tensor and of its values."""

from __future__ import annotations

from typing import Any

from ..._ops.rules.base import wrap_dim
from ..._ragged.parts import parts

__all__: list[str] = []


def _outer_to_inner_dim(ndim: int, dim: Any, ragged_dim: int, canonicalize: bool = False) -> Any:
    """The dimension of the values that a dimension is; that of the many is the packed one. Lists lose repetitions."""
    if isinstance(dim, (tuple, list)):
        inner = [_outer_to_inner_dim(ndim, d, ragged_dim) for d in dim]
        return type(dim)(dict.fromkeys(inner))
    if canonicalize:
        dim = wrap_dim(dim, ndim)
    if not 0 <= dim < ndim:
        raise AssertionError(f"dim {dim} out of range for ndim {ndim}")
    return ragged_dim - 1 if dim == 0 else dim - 1


def extract_kwargs(arg: Any) -> dict[str, Any]:
    """What a nested tensor of the same structure is made with, beside its values."""
    structure = parts(arg).structure
    return {
        "offsets": structure.offsets,
        "lengths": structure.lengths,
        "_metadata_cache": structure.cache,
        "_ragged_idx": structure.ragged,
    }
