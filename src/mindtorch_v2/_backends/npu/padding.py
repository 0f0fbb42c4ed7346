"""NPU lines of padding modes.

Invariant: padding that cuts something away is composed; the vendor only adds.
"""
from __future__ import annotations

from typing import Any

from ..._dispatch import registry
from .lines import choose, line, npu


def _cuts(self: Any, padding: tuple[int, ...]) -> bool:
    return any(p < 0 for p in padding)


def _cuts_backward(grad_output: Any, self: Any, padding: tuple[int, ...]) -> bool:
    return any(p < 0 for p in padding)


def _serve(name: str, question: Any, text: str) -> None:
    composed = registry.get(name).row.fallback
    npu(name, choose(question, {False: line(text, absent=composed), True: composed}))


for _kind in ("reflection", "replication"):
    for _rank in (1, 2, 3):
        _name, _vendor = f"{_kind}_pad{_rank}d", f"aclnn{_kind.capitalize()}Pad{_rank}d"
        _serve(_name, _cuts, f"{_vendor}(self, padding, out)")
        _serve(f"{_name}_backward", _cuts_backward, f"{_vendor}Backward(grad_output, self, padding, out)")
