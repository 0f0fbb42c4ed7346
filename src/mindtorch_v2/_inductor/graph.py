"""`torch._inductor.graph`: importable; graphs are not lowered."""

from __future__ import annotations

from .._unserved import offer as _offer
from . import WHY

_offer(__name__, "", "GraphLowering", WHY)
