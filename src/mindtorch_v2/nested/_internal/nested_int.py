"""`torch.nested._internal.nested_int`."""

from __future__ import annotations

from ..._ragged.numbers import NestedIntNode

__all__ = ["NestedIntNode"]
