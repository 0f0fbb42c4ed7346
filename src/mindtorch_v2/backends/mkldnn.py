"""`torch.backends.mkldnn`: there is no oneDNN; the flags are kept."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._warn import warn
from . import _flags, _precision
from ._flags import Flag, boolean, kept

VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2
_VALUES: dict[str, Any] = {"enabled": True, "deterministic": False, "allow_tf32": None}
conv = _precision.Precision("mkldnn", "conv")
rnn = _precision.Precision("mkldnn", "rnn")
matmul = _precision.Precision("mkldnn", "matmul")


def is_available() -> bool:
    """There is no oneDNN here: the kernels are the package's own."""
    return False


class verbose:
    """`with torch.backends.mkldnn.verbose(level)`: there is no oneDNN that could say something."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> verbose | None:
        if self.level == VERBOSE_OFF:
            return None
        raise RuntimeError("Failed to set MKLDNN into verbose mode: the package is built without it")

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        return None


def set_flags(
    _enabled: Any = None, _deterministic: Any = None, _allow_tf32: Any = None, _fp32_precision: Any = "none"
) -> tuple[Any, ...]:
    """Set the flags that are not None; returns what they were. `allow_tf32` is for Intel's GPUs, and is not kept."""
    names = ("enabled", "deterministic", "allow_tf32", "fp32_precision")
    before = tuple(vars(MkldnnModule)[name].get() for name in names)
    if _allow_tf32 is not None:
        warn(
            "TF32 acceleration on top of oneDNN is available for Intel GPUs. The current Torch version does not have "
            "Intel GPU Support."
        )
    for name, value in zip(names, (_enabled, _deterministic, None, _fp32_precision)):
        if value is not None:
            vars(MkldnnModule)[name].put(value)
    return before


@contextmanager
def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> Iterator[None]:
    """The flags inside a block."""
    with _flags.bracketed():
        before = set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        with _flags.bracketed():
            set_flags(*before)


class MkldnnModule(types.ModuleType):
    enabled = kept(_VALUES, "enabled", boolean("set_enabled_mkldnn"))
    deterministic = kept(_VALUES, "deterministic", boolean("set_deterministic_mkldnn"))
    allow_tf32 = kept(_VALUES, "allow_tf32", boolean("set_allow_tf32_onednn"))
    fp32_precision = Flag(lambda: _precision.get("mkldnn", "all"), lambda v: _precision.put("mkldnn", "all", v))


_flags.become(__name__, MkldnnModule)
