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
    engine = _flags.Flag(lambda: "none", _put)
    supported_engines = _flags.Flag(lambda: list(_ENGINES))


_flags.become(__name__, QuantizedEngine)
