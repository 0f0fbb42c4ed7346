"""`torch._dynamo._trace_wrapped_higher_order_op`: a mode that libraries enter around functions of single places."""

from __future__ import annotations

from typing import Any

from ..overrides import TorchFunctionMode


class TransformGetItemToIndex(TorchFunctionMode):
    """Indexing with tensors of no dimension that stand for many values. Here indexing does that by itself, so that the
    mode changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))
