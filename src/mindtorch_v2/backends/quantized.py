"""`torch.backends.quantized`: there are no engines for quantized operators."""

from __future__ import annotations

import types
from typing import Any

from . import _flags

_ENGINES = ["none"]


def _put(engine: Any) -> None:
    if engine not in _ENGINES:
        raise RuntimeError(f"{engine} is not a valid value for quantized engine")


class QuantizedEngine(types.ModuleType):
    @property
    def engine(self) -> str:
        """The engine; it may be set after `disable_global_flags` as well."""
        return "none"

    @engine.setter
    def engine(self, value: Any) -> None:
        _put(value)

    supported_engines = _flags.Flag(lambda: list(_ENGINES))


_flags.become(__name__, QuantizedEngine)
