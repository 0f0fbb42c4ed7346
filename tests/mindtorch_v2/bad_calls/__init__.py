"""Wrong calls by subject; `test_bad_calls.py` makes them and asks PyTorch about them."""

from __future__ import annotations

from importlib import import_module

from ._case import Case, normalise

__all__ = ["CASES", "Case", "normalise"]

TABLES = (
    "algebra arguments attention autograd checkpoints devices dtypes indexing keys layers losses modules names "
    "nn_utils optimizers parsing precision probability products randoms recurrent reductions schedules shapes sizes "
    "storages views"
).split()

CASES: list[Case] = [case for table in TABLES for case in import_module(f"{__name__}.{table}").CASES]
