"""CPU lines of fractional pooling: where windows start comes from the row's file, the native kernel walks over them."""

from __future__ import annotations

import math
from typing import Any

from .... import _native
from ...._dispatch import registry
from ...._ops.fractional import pool_in_parts, starts_of
from ...._tensor_base import numel
from ..kernels.dense import deliver, dense, operand, target, triple
from ..lines import cpu, into

Ints = tuple[int, ...]
_cat = registry.get("cat")
_pool: Any = _native.pool_fractional
# Places within a plane are counted in 32 bits there.
_MOST = 2**31 - 1


def _serve(rank: int) -> None:
    def largest(outs: Any, self: Any, kernel_size: Ints, output_size: Ints, random_samples: Any) -> None:
        kernel, wanted, sizes = tuple(kernel_size), tuple(output_size), self._shape[-rank:]
        if numel(outs[0]) == 0:
            return
        if math.prod(sizes) > _MOST or 0 in kernel:
            for out, found in zip(outs, pool_in_parts(rank, self, kernel, wanted, random_samples)):
                deliver(out, found)
            return
        starts = starts_of(rank, self, kernel, wanted, random_samples)
        if rank == 2:
            starts.insert(0, starts[0].new_zeros((*starts[0]._shape[:-1], 1)))
        first, second = target(outs[0], self._dtype), target(outs[1], outs[1]._dtype)
        _pool(*operand(dense(self)), *operand(first), *operand(second), *operand(dense(_cat.call((tuple(starts), -1)))),
              numel(self) // math.prod(sizes), triple(sizes, 1), triple(wanted, 1), triple(kernel, 1))
        deliver(outs[0], first)
        deliver(outs[1], second)

    cpu(f"fractional_max_pool{rank}d", into(largest))


_serve(2)
_serve(3)
