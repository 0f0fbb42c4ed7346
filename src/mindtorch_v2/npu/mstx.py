"""`torch.npu.mstx`: marks for msprof, which need a library of the vendor's tools.

Invariant: nothing is marked in silence elsewhere: a call says what is missing and what there is instead.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["mark", "mstx_range", "range_end", "range_start"]


def _missing(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.npu.mstx.{name}() is not available: marks for msprof are made by libms_tools_ext of the vendor's "
        "tools, not by ACL; torch.profiler.record_function marks ranges in traces of torch.profiler"
    )


def mark(message: str, stream: Any = None, domain: str = "default") -> None:
    _missing("mark")


def range_start(message: str, stream: Any = None, domain: str = "default") -> int:
    _missing("range_start")


def range_end(range_id: int, domain: str = "default") -> None:
    _missing("range_end")


def mstx_range(message: str, stream: Any = None, domain: str = "default") -> Any:
    _missing("mstx_range")
