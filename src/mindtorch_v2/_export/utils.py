"""`torch._export.utils`: questions about operators."""

from __future__ import annotations

from typing import Any


def _is_cia_op(op: Any) -> bool:
    """Whether an operator is written in terms of others, above autograd."""
    return op._op.composite is not None


def _is_aten_op(op: Any) -> bool:
    """Whether an operator is one of the package's own."""
    return str(op.name()).startswith("aten::")


def _is_custom_op(op: Any) -> bool:
    """Whether an operator comes from outside."""
    return not _is_aten_op(op)
