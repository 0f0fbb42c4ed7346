"""`torch.backends.xnnpack`: there is no XNNPACK."""

from __future__ import annotations

import sys
import types


class XnnpackModule(types.ModuleType):
    @property
    def enabled(self) -> bool:
        return False

    def __setattr__(self, name: str, value: object) -> None:
        if name == "enabled":
            raise RuntimeError("Assignment not supported")
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = XnnpackModule
