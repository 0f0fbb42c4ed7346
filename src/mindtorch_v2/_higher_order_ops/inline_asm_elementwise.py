"""`torch._higher_order_ops.inline_asm_elementwise`: importable; it raises when it is called."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(__name__, "inline_asm_elementwise", "", "{name}: programs run eagerly here, in no graph")
