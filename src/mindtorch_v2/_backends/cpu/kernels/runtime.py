"""The CPU's memory: allocation, copies and fills by the native module.

Invariant: importing this module registers the device.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._device import device
from ...._dispatch.keys import CPU as CPU_KEY
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase
from ...common.runtime import RUNTIMES, Runtime

_copy: Final[Any] = _native.copy
_fill: Final[Any] = _native.fill
_Storage: Final[Any] = _native.Storage


@final
class CpuRuntime(Runtime):
    def allocate(self, nbytes: int, dev: device) -> Any:
        return _Storage(nbytes)

    def copy(self, dst: TensorBase, src: TensorBase) -> None:
        _copy(
            dst._storage, int(dst._offset), dst._stride, dst._dtype.code,
            src._storage, int(src._offset), expand_strides(src, dst._shape), src._dtype.code,
            dst._shape)

    def fill(self, dst: TensorBase, value: Any) -> None:
        _fill(dst._storage, int(dst._offset), dst._stride, dst._dtype.code, dst._shape, value)


RUNTIMES[int(CPU_KEY)] = CpuRuntime()
