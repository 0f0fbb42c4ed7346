"""The CPU's memory: allocation, copies and fills by the native module.

Invariant: importing this module registers the device.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._device import device
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dtype import FIRST_STORED, dtype, int16, int32, uint8
from ...._mypyc import i64
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase
from ...common.runtime import RUNTIMES, Runtime

_copy: Final[Any] = _native.copy
_fill: Final[Any] = _native.fill
_Storage: Final[Any] = _native.Storage


def same_bits(to: dtype, source: dtype) -> i64:
    """The code with which elements that are only stored are copied: that of bytes, words or double words."""
    if to is not source:
        stored = source if source.code >= FIRST_STORED else to
        raise NotImplementedError(f"\"copy_\" not implemented for '{stored.scalar_name}'")
    return uint8.code if to.itemsize == 1 else int16.code if to.itemsize == 2 else int32.code


@final
class CpuRuntime(Runtime):
    def allocate(self, nbytes: int, dev: device) -> Any:
        return _Storage(nbytes)

    def copy(self, dst: TensorBase, src: TensorBase) -> None:
        to = dst._dtype.code
        source = src._dtype.code
        if to >= FIRST_STORED or source >= FIRST_STORED:
            to = source = same_bits(dst._dtype, src._dtype)
        _copy(
            dst._storage, int(dst._offset), dst._stride, to,
            src._storage, int(src._offset), expand_strides(src, dst._shape), source,
            dst._shape)

    def fill(self, dst: TensorBase, value: Any) -> None:
        if dst._dtype.code >= FIRST_STORED:
            raise NotImplementedError(f"\"fill_cpu\" not implemented for '{dst._dtype.scalar_name}'")
        _fill(dst._storage, int(dst._offset), dst._stride, dst._dtype.code, dst._shape, value)


RUNTIMES[int(CPU_KEY)] = CpuRuntime()
