"""`torch.linalg`: made from the rows `linalg_<name>` when first asked for.

Invariant: nothing is computed here.
"""
from __future__ import annotations

from .._ops import late

__getattr__ = late.namespace(__name__, "linalg_")
__dir__ = late.listing(__name__, "linalg_")
