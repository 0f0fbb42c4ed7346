"""`torch._higher_order_ops.flex_attention`: importable; it raises when it is called."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(__name__, "flex_attention flex_attention_backward", "", "{name}: programs run eagerly here, in no graph")
