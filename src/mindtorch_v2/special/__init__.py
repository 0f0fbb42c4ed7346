"""`torch.special`: made from the rows `special_<name>` when first asked for.

Invariant: nothing is computed here.
"""
from __future__ import annotations

from .._ops import late

__getattr__ = late.namespace(__name__, "special_")
__dir__ = late.listing(__name__, "special_")
