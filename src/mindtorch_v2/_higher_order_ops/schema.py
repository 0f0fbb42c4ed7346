"""`torch._higher_order_ops.schema`: schemas of operators that take functions; they are plain functions here."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(
    __name__,
    "find_hop_schema",
    "CFunctionSchemaGen HopArgumentInfo HopArgumentInfoGen HopFunctionSchema HopSchemaGenerator HopSchema",
    "{name}: operators that take functions are plain functions here, without schemas",
)
