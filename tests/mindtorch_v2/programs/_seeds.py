"""From a seed to a judged program.

Invariant: the seed decides everything, the device and functionalize included, so that it alone repeats a failure.
"""

from __future__ import annotations

from typing import Any

from ._machine import Mismatch, Way, report, run, shrink

# Of ten programs in a row, five run on the CPU, three there under functionalize, two on an NPU.
WAYS = [Way("cpu", False)] * 5 + [Way("cpu", True)] * 3 + [Way("npu", False), Way("npu", True)]


def way_of(seed: int) -> Way:
    return WAYS[seed % len(WAYS)]


def judge(seed: int, reference: Any, other: Any) -> tuple[dict[str, int], str | None]:
    """What happened, and the shrunk program where the libraries differ."""
    way = way_of(seed)
    try:
        return run(seed, reference, other, way), None
    except Mismatch as found:
        return {}, report(seed, shrink(found, reference, other, way), other.__name__, way)
