"""`torch.special`: the rows `special_<name>`.

Invariant: nothing is computed here.
"""

from __future__ import annotations as _annotations

from .._api import lazy_tables as _late

__getattr__ = _late.namespace(__name__, "special_")
__dir__ = _late.listing(__name__, "special_")
