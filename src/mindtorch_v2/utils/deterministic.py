"""`torch.utils.deterministic`: whether deterministic mode fills uninitialised memory."""

from __future__ import annotations

import sys
import types

from .._dispatch.op import plain_name
from .._ops.determinism import STATE


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether, in deterministic mode, `torch.empty` and `resize_` fill what nobody has written."""
        return STATE.fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {plain_name(mode)}")
        STATE.fill = mode


sys.modules[__name__].__class__ = _Deterministic
