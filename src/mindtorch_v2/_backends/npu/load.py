"""Registers the NPU's kernels: every family's lines, when a tensor on `npu` is first wanted.

Lazy tables (`_api/lazy_tables.py`) bring the lines in the file of the same name when they are loaded.
"""

from __future__ import annotations

from importlib import import_module

FAMILIES = ("pointwise", "shape", "reduce", "matmul", "index", "random")
# Says that it was done, to tables that are loaded later.
LOADED: list[bool] = []


def load_kernels() -> None:
    for module in ("transfer", "creation", "passes"):
        import_module(f"{__package__}.{module}")
    for family in FAMILIES:
        import_module(f"{__package__}.ops.{family}")
    from ..._api.lazy_tables import load_npu_lines

    LOADED.append(True)
    load_npu_lines()
