"""Attributes that nodes have by what they are: `grad_fn._saved_self`, `AccumulateGrad.variable`.

Invariant: not compiled, because a compiled function does not become a method of the classes it is put into.
"""
from __future__ import annotations

from typing import Any

from .node import ACCUMULATE


def saved_attribute(node: Any, name: str) -> Any:
    """`__getattr__` of nodes."""
    formulas = node._formulas
    if formulas is not None:
        if name.startswith("_saved_"):
            return formulas.saved_value(node, name[7:])
        if name.startswith("_raw_saved_") and formulas.saves_tensor(name[11:]):
            from .saved_hooks import SavedTensorHandle

            return SavedTensorHandle(node, formulas.names.index(name[11:]))
    if name == "variable" and node._kind == ACCUMULATE:
        return node._payload
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")
