"""COO tensors repeated along dimensions of size one and new leading ones.

Invariant: the copies of an entry, one for each place along the dimensions that grow, follow each other.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import mindtorch_v2 as torch

from .parts import coo, is_coo, parts
from .refusals import refused
from .table import row


@row("_sparse_broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)")
def BROADCAST(self: Any, size: Any) -> Any:
    if not is_coo(self):
        raise refused("_sparse_broadcast_to", [self])
    p, size = parts(self), tuple(size)
    new = len(size) - self.dim()
    if new < 0:
        raise RuntimeError("input not broadcastable to size with smaller dimensionality")
    heads = p.sparse_dim + new
    grown = list(range(new))
    for d in range(new, len(size)):
        old = self._shape[d - new]
        if old != size[d] and old != 1:
            raise RuntimeError("input not broadcastable")
        if old != size[d] and d < heads:
            grown.append(d)
    values = p.values.expand(p.nnz, *size[heads:])
    places = list(product(*(range(size[d]) for d in grown)))
    indices = torch.empty((heads, p.nnz, len(places)), dtype=torch.int64, device=p.plain.device)
    for d in range(heads):
        if d not in grown:
            indices[d] = p.plain[d - new].unsqueeze(1)
    for i, d in enumerate(grown):
        indices[d] = torch.tensor([place[i] for place in places], dtype=torch.int64, device=p.plain.device)
    kept = [d for d in range(heads) if d not in grown]
    in_order = not grown or not kept or min(grown) > max(kept)
    repeated = values.repeat_interleave(len(places), 0)
    return coo(indices.reshape(heads, p.nnz * len(places)), repeated, size, p.coalesced and in_order)
