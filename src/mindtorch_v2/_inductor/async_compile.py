"""`torch._inductor.async_compile`: importable; nothing is compiled."""

from __future__ import annotations

from .._unserved import offer as _offer
from . import WHY

_offer(__name__, "", "AsyncCompile", WHY)
