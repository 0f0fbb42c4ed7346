"""`torch.linalg`: made from the rows `linalg_<name>` when first asked for.

Invariant: nothing is computed here.
"""

from __future__ import annotations as _annotations

from typing import Any as _Any

from .._api import lazy_tables as _late

_row = _late.namespace(__name__, "linalg_")


def __getattr__(name: str) -> _Any:
    if name != "LinAlgError":
        return _row(name)
    from .._ops.linalg import LinAlgError

    globals()[name] = LinAlgError
    return LinAlgError


_listing = _late.listing(__name__, "linalg_")


def __dir__() -> list[str]:
    return sorted({*_listing(), "LinAlgError"})
