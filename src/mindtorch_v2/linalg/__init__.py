"""`torch.linalg`: made from the rows `linalg_<name>` when first asked for.

Invariant: nothing is computed here.
"""
from __future__ import annotations

from typing import Any

from .._ops import late

_row = late.namespace(__name__, "linalg_")


def __getattr__(name: str) -> Any:
    if name != "LinAlgError":
        return _row(name)
    from .._ops.linalg import LinAlgError

    globals()[name] = LinAlgError
    return LinAlgError


__dir__ = late.listing(__name__, "linalg_")
