"""CPU lines of products of bytes."""

from __future__ import annotations

from typing import Any

from .... import _native
from ...._dispatch import registry
from ...._dispatch.keys import CPU
from ...._dispatch.op import FnKernel
from ...._dtype import int8, int32, uint8
from ...recorded import Whole
from ..kernels.dense import fresh
from ..lines import cpu

_INT_MM = registry.get("_int_mm")
_served = _native.cpu_level() == "avx512"


def _fits(self: Any, mat2: Any) -> bool:
    """What the native function takes; the parts refuse all else."""
    if not _served or len(self._shape) != 2 or len(mat2._shape) != 2 or self._shape[1] != mat2._shape[0]:
        return False
    return self._dtype in (int8, uint8) and mat2._dtype is int8 and 0 not in self._shape + mat2._shape


def _product(self: Any, mat2: Any) -> Any:
    rows, inner = self._shape
    columns = mat2._shape[1]
    out = fresh((rows, columns), int32)
    served = _native.gemm_bytes(self._storage, int(self._offset), self._stride, self._dtype.code, mat2._storage,
                                int(mat2._offset), mat2._stride, mat2._dtype.code, out._storage, int(out._offset),
                                out._stride, out._dtype.code, rows, columns, inner)  # fmt: skip
    assert served, "the level of instructions has changed"
    return out


cpu("_int_mm", FnKernel(Whole(_INT_MM, int(CPU), _fits, _product, None)))
