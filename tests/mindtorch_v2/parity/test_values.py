"""Values, dtypes, shapes and strides of every row against PyTorch, over PyTorch's own sample inputs.

Invariant: what PyTorch computes we compute; what PyTorch refuses is tested elsewhere.
"""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from . import _infos, _own

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("dtype", _infos.DTYPES)
@pytest.mark.parametrize("case", _infos.covered(), ids=lambda case: case.label)
def test_values(case: _infos.Covered, dtype: str) -> None:
    info = case.info
    if not _infos.supported(info, dtype):
        return
    theirs, ours = _infos.in_oracle(info), _infos.in_subject(info)
    for sample in _infos.samples(info, dtype):
        args, kwargs = _infos.arguments(sample)
        mine = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        expected = _infos.attempt(theirs, args, kwargs)
        assert not isinstance(expected, _infos.Failure), (expected, _infos.describe(sample))
        actual = _infos.attempt(ours, *mine)
        where = f"{case.label} {dtype} {_infos.describe(sample)}"
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual.kind}: {actual.text}"
        if case.row in _own.RANDOM_ROWS:
            assert _layouts(actual) == _layouts(expected), where
        else:
            _oracle.assert_same(actual, expected, where=where, **_infos.tolerance(dtype))


def _layouts(value: Any) -> Any:
    items = value if isinstance(value, (list, tuple)) else [value]
    return [_oracle.layout(item) for item in items]


OWN = [(row, number, call) for row, calls in _own.SAMPLES.items() for number, call in enumerate(calls)]


@pytest.mark.parametrize(("row", "number", "call"), OWN, ids=[f"{entry[0]}-{entry[1]}" for entry in OWN])
def test_own_samples(row: str, number: int, call: _own.Sample) -> None:
    _oracle.assert_same(call(torch), call(_oracle.load()), where=f"{row} {number}", **_infos.tolerance("float32"))
