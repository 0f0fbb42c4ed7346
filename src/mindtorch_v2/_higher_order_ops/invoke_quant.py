"""`torch._higher_order_ops.invoke_quant`: a part of a program that a compiler may compute in low precision.

It runs as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, repr=True)
class InvokeQuant:
    """What a compiler would do with the part: said, and not done."""

    codegen_low_precision: bool = True

    def __call__(self, subgraph: Callable[..., Any], *args: Any, scheme: str | None = None, **kwargs: Any) -> Any:
        return subgraph(*args, **kwargs)


def invoke_quant_packed(subgraph: Callable[..., Any], *args: Any) -> Any:
    """Run the part."""
    return subgraph(*args)
