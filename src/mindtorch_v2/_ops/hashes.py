"""Checksums of tensors.

Invariant: a hash depends on the values as 64-bit numbers, not on their order or the dtype that held them.
"""
from __future__ import annotations

from typing import Any

from .._dispatch.op import Spec
from .._dtype import bool as bool_
from .._dtype import int8, int16, int32, int64, uint8, uint64
from .._tensor_base import numel
from .rules.base import like
from .rules.out import Target
from .rules.reduce import dim_mask_or_all, reduced_shape
from .table import op


def _hash_meta(self: Any, dim: tuple[int, ...], keepdim: bool, mode: int) -> Spec:
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    mask = dim_mask_or_all(dim, self.dim())
    if not numel(self):
        if not dim:
            raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify "
                               "the reduction dim with the 'dim' argument.")
        for d in dim:
            if self._shape[d] == 0:
                raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    dt = self._dtype
    if dt not in (bool_, uint8, int8, int16, int32, int64) and (not dt.is_floating_point or dt.itemsize < 2):
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{dt.scalar_name}'")
    return like(self, reduced_shape(self._shape, mask, keepdim), uint64)


op("hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor", meta=_hash_meta,
   out=Target("same", "Expected result to be of dtype uint64, but got {got}"), nondifferentiable=True)
