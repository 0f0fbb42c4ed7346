"""Registers the NPU's kernels: every family's lines, when a tensor on `npu` is first wanted.

Tables that are loaded late (`_ops/late.py`) bring the lines in the file of the same name when they are loaded.
"""
from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

FAMILIES = ("transfer", "creation", "pointwise", "activation", "shape", "reduce", "matmul", "norm", "loss", "index",
            "random", "sort")
# Says that it was done, to tables that are loaded later.
LOADED: list[bool] = []


def load_kernels() -> None:
    for family in FAMILIES:
        if find_spec(f"{__package__}.{family}") is not None:
            import_module(f"{__package__}.{family}")
    from ..._ops.late import load_npu_lines

    LOADED.append(True)
    load_npu_lines()
