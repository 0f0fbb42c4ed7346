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


# Where both round differently because terms cancel, the judge is PyTorch in a more precise dtype.
PRECISE = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}


def _no_worse(function: Any, sample: Any, actual: Any, expected: Any, precise: str, slack: float) -> bool:
    """Whether our result is at least as near to the precise one as PyTorch's is, or `slack` times as far."""
    oracle = _oracle.load()
    if not isinstance(expected, oracle.Tensor) or _oracle.layout(actual) != _oracle.layout(expected):
        return False

    def upcast(tensor: Any) -> Any:
        return tensor.to(getattr(oracle, precise)) if tensor.is_floating_point() or tensor.is_complex() else tensor

    args, kwargs = _infos.arguments(sample)
    exact = _infos.attempt(
        function,
        _oracle.tree_map(upcast, args, _oracle.is_oracle_tensor),
        _oracle.tree_map(upcast, kwargs, _oracle.is_oracle_tensor),
    )
    if not isinstance(exact, oracle.Tensor) or exact.shape != expected.shape:
        return False
    mine = (upcast(_oracle.to_oracle(actual)) - exact).abs()
    theirs = (upcast(expected) - exact).abs()
    return bool((mine.max() <= theirs.max() * slack).item()) and not bool(mine.isnan().any())


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
        elif case.row in _own.TIES:
            _assert_same_up_to_ties(case.row, actual, expected, args, kwargs, where)
        else:
            actual, expected = (_infos.comparable(case.row, value) for value in (actual, expected))
            try:
                _oracle.assert_same(actual, expected, where=where, computed_in=dtype)
            except AssertionError:
                if dtype not in PRECISE or not _no_worse(
                    theirs, sample, actual, expected, PRECISE[dtype], _own.SENSITIVE.get(case.row, 1.0)
                ):
                    raise


def _assert_same_up_to_ties(row: str, actual: Any, expected: Any, args: Any, kwargs: Any, where: str) -> None:
    oracle = _oracle.load()
    assert _layouts(actual) == _layouts(expected), where
    if isinstance(expected, (list, tuple)):
        _oracle.assert_same(actual[0], expected[0], where=where)
    elif row != "argsort":
        _oracle.assert_same(actual, expected, where=where)
    else:
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        found = oracle.take_along_dim(args[0], _oracle.to_oracle(actual), dim) if args[0].dim() else args[0]
        assert oracle.equal(found, oracle.take_along_dim(args[0], expected, dim) if args[0].dim() else args[0]), where


def _layouts(value: Any) -> Any:
    items = value if isinstance(value, (list, tuple)) else [value]
    return [_oracle.layout(item) for item in items]


OWN = [(row, number, call) for row, calls in _own.SAMPLES.items() for number, call in enumerate(calls)]


@pytest.mark.parametrize(("row", "number", "call"), OWN, ids=[f"{entry[0]}-{entry[1]}" for entry in OWN])
def test_own_samples(row: str, number: int, call: _own.Sample) -> None:
    _oracle.assert_same(call(torch), call(_oracle.load()), where=f"{row} {number}")
