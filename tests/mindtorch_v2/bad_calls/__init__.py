"""Wrong calls by family of operators; `bad_calls/test_bad_calls.py` makes them and asks PyTorch about them."""

from __future__ import annotations

from . import algebra, indexing, layers, losses, parsing, products, randoms, shapes
from ._case import Case, normalise

__all__ = ["CASES", "Case", "normalise"]

CASES: list[Case] = [
    case
    for table in (layers, losses, products, indexing, shapes, algebra, randoms, parsing)
    for case in table.CASES
]
