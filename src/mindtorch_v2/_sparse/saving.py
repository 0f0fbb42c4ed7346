"""Sparse tensors in pickles and checkpoints, in PyTorch's form: a layout, and a tuple of parts.

Invariant: what a file says is checked before it is used: parts are tensors, and fit each other.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._layout import sparse_coo
from .checks import check_compressed, check_coo
from .parts import COMPRESSED, is_coo, parts
from .rows import make_compressed, make_coo


def reduced(t: Any) -> tuple[Any, ...]:
    """The arguments of `_rebuild_sparse_tensor`."""
    p = parts(t)
    if is_coo(t):
        return p.layout, (p.plain, p.values, torch.Size(t._shape), p.coalesced)
    return p.layout, (p.compressed, p.plain, p.values, torch.Size(t._shape))


def rebuilt(layout: Any, data: Any) -> Any:
    """A tensor of what a file holds; ValueError where that is none."""
    if layout is sparse_coo and len(data) in (3, 4):
        indices, values, size = data[:3]
        coalesced = bool(data[3]) if len(data) == 4 else None
        _tensors(indices, values)
        check_coo(indices, values, tuple(size), coalesced)
        return make_coo(indices, values, tuple(size), coalesced, False)
    if layout in COMPRESSED and len(data) == 4:
        outer, inner, values, size = data
        _tensors(outer, inner, values)
        check_compressed(outer, inner, values, tuple(size), layout)
        return make_compressed(outer, inner, values, tuple(size), layout, False)
    raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")


def _tensors(*found: Any) -> None:
    for t in found:
        if not isinstance(t, torch.Tensor):
            raise ValueError(f"a sparse tensor is made of tensors, got {type(t).__name__}")
