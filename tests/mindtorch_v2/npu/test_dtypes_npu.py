"""Every row on the NPU in the dtypes that `test_rows.py` leaves out, and in every layout in more dtypes than one.

Invariant: a result is PyTorch's, or the error says what the vendor does not have. What is refused in the usual dtypes
is accounted for in `_refused.py`; of the others the vendor's functions take fewer, and say so.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from .. import _oracle
from ..parity import _infos, _own
from ..parity.test_layouts import LAYOUTS, near
from ..parity.test_values import PRECISE
from . import _rows
from .test_rows import CASES, compare

pytestmark = pytest.mark.oracle
OTHERS = ("float64", "int32", "uint8", "complex64")

# Results that are free, with the reason.
FREE: dict[str, str] = {
    **dict.fromkeys(("qr", "linalg_qr"), "columns of complex factors are free up to a factor of length one"),
    "logcumsumexp": "the imaginary part of a complex logarithm is free up to a whole circle",
}


def refused(outcome: Any) -> bool:
    """By us before the call, or by the vendor, whose refusal lists what its function accepts."""
    return _rows.refusal(outcome) or (isinstance(outcome, _infos.Failure) and "; accepted: " in outcome.text)


def check(case: Any, dtype: str, count: int, layout: str | None = None) -> None:
    info = case.info
    for sample in _infos.samples(info, dtype, count=count):
        args, kwargs = _infos.arguments(sample)
        if layout is not None:
            args = _oracle.tree_map(LAYOUTS[layout], args, _oracle.is_oracle_tensor)
        where = f"{case.label} {layout or ''} {dtype} {_infos.describe(sample)}"
        expected = _infos.attempt(_infos.in_oracle(info), args, kwargs)
        actual = _rows.run(_infos.in_subject(info), _rows.arguments_of(case, args), _rows.arguments(kwargs))
        if refused(actual):
            continue
        if isinstance(expected, _infos.Failure):
            # What depends on values (an index out of range) is only seen on the device: that is for the errors' tests.
            _rows.settle()
            continue
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual.kind}: {actual.text}"
        try:
            compare(case, dtype, sample, actual, expected, args, kwargs, where)
        except AssertionError:
            moved = copy.copy(sample)
            moved.input, moved.args = args[0], args[1:]
            if dtype not in PRECISE or not near(
                case, moved, _rows.results(actual, where), expected, PRECISE[dtype], _rows.SENSITIVE.get(case.row, 1.0)
            ):
                raise


@pytest.mark.parametrize("dtype", OTHERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_other_dtypes(case: Any, dtype: str) -> None:
    if _infos.supported(case.info, dtype) and not (dtype == "complex64" and case.row in FREE):
        check(case, dtype, 2)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_layouts_in_other_dtypes(case: Any, layout: str) -> None:
    if layout in _own.WRONG_LAYOUTS.get(case.row, ()):
        return
    first = _rows.first_dtype(case)
    for dtype in _rows.DTYPES:
        # Rows whose results may be any of several are left to this test in their first dtype too.
        if _infos.supported(case.info, dtype) and (dtype != first or _rows.is_tied(case)):
            check(case, dtype, 1, layout)
