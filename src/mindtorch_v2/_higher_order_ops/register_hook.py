"""`torch._higher_order_ops.register_hook`: importable; it raises when it is called."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(__name__, "register_hook_op", "", "{name}: programs run eagerly here, in no graph")
