"""NPU lines of checksums: exclusive ors of halves, until one number is left."""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._dtype import float64, int64, uint64
from ...._tensor_base import numel
from ..helpers import dims
from ..lines import npu, parts

_cat = registry.get("cat")


def _folded(bits: Any, dim: int) -> Any:
    """One slice along a dimension: its halves joined, and what is left over carried along."""
    while bits._shape[dim] > 1:
        half = bits._shape[dim] // 2
        joined = bits.narrow(dim, 0, half).bitwise_xor(bits.narrow(dim, half, half))
        if bits._shape[dim] % 2:
            joined = _cat.call(((joined, bits.narrow(dim, 2 * half, 1)), dim))
        bits = joined
    return bits


def _hash(self: Any, dim: tuple[int, ...], keepdim: bool, mode: int) -> Any:
    bits = self.to(float64).view(int64) if self._dtype.is_floating_point else self.to(int64)
    every = dims(self, dim)
    if not numel(self):
        shape = [1 if d in every else n for d, n in enumerate(self._shape)]
        bits = bits.new_zeros(tuple(shape))
    for d in every:
        bits = _folded(bits, d)
    if not keepdim:
        bits = bits.reshape(tuple(n for d, n in enumerate(self._shape) if d not in every))
    return bits.contiguous().clone().view(uint64)


npu("hash_tensor", parts(_hash))
