"""`torch.backends.cudnn`: there is no cuDNN; the flags are kept."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _flags, _precision
from ._flags import Flag, boolean, kept

_VALUES: dict[str, Any] = {
    "enabled": True,
    "benchmark": False,
    "benchmark_limit": None,
    "deterministic": False,
    "depthwise_kernel": "auto",
}
CUDNN_TENSOR_DTYPES: set[Any] = set()
conv = _precision.Precision("cuda", "conv")
rnn = _precision.Precision("cuda", "rnn")


def version() -> int | None:
    """There is no cuDNN."""
    return None


def is_available() -> bool:
    return False


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN could compute with a tensor: never."""
    return False


def _allow_tf32() -> bool:
    return _precision.get("cuda", "conv") == "tf32" and _precision.get("cuda", "rnn") == "tf32"


def _set_allow_tf32(value: Any) -> None:
    boolean("set_allow_tf32_cublas")(value)
    for op in ("conv", "rnn"):
        _precision.put("cuda", op, "tf32" if value else "none")


def set_flags(
    _enabled: Any = None,
    _benchmark: Any = None,
    _benchmark_limit: Any = None,
    _deterministic: Any = None,
    _allow_tf32: Any = None,
    _fp32_precision: Any = "none",
    _depthwise_kernel: Any = None,
) -> tuple[Any, ...]:
    """Set the flags that are not None; returns what they were."""
    module: Any = CudnnModule
    names = "enabled benchmark benchmark_limit deterministic allow_tf32 fp32_precision depthwise_kernel".split()
    given = (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision, _depthwise_kernel)
    before = tuple(vars(module)[name].get() for name in names)
    for name, value in zip(names, given):
        if value is not None:
            vars(module)[name].put(value)
    return before


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> Iterator[None]:
    """The flags inside a block."""
    with _flags.bracketed():
        before = set_flags(
            enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision, depthwise_kernel
        )
    try:
        yield
    finally:
        with _flags.bracketed():
            set_flags(*before)


class CudnnModule(types.ModuleType):
    enabled = kept(_VALUES, "enabled", boolean("set_enabled_cudnn"))
    deterministic = kept(_VALUES, "deterministic", boolean("set_deterministic_cudnn"))
    benchmark = kept(_VALUES, "benchmark", boolean("set_benchmark_cudnn"))
    benchmark_limit = kept(_VALUES, "benchmark_limit")
    depthwise_kernel = kept(_VALUES, "depthwise_kernel")
    allow_tf32 = Flag(_allow_tf32, _set_allow_tf32)
    fp32_precision = Flag(lambda: _precision.get("cuda", "all"), lambda v: _precision.put("cuda", "all", v))


_flags.become(__name__, CudnnModule)
