"""The settings of `fully_shard`: data that programs make before they ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of parameters, reductions and outputs."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Nothing waits on the CPU."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters wait on the CPU."""

    pin_memory: bool = True
