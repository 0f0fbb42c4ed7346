"""Every row on inputs in unusual memory: transposed, offset, stepped, expanded, empty, zero-dimensional.

Invariant: where PyTorch answers we answer the same, strides included; where it refuses we raise its exception type.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from . import _infos, _own
from .test_values import PRECISE, _assert_same_up_to_ties, _layouts, _no_worse

pytestmark = pytest.mark.oracle


def transposed(t: Any) -> Any:
    order = list(reversed(range(t.dim())))
    return t.permute(order).contiguous().permute(order)


def offset(t: Any) -> Any:
    made = t.new_empty(t.numel() + 3)[3:].view(t.shape)
    return made.copy_(t)


def stepped(t: Any) -> Any:
    if t.dim() == 0:
        return t
    made = t.new_empty((*t.shape[:-1], 2 * t.shape[-1]))[..., ::2]
    return made.copy_(t)


def expanded(t: Any) -> Any:
    if t.dim() == 0 or t.shape[0] == 0:
        return t
    return t[:1].clone().expand(t.shape)


def emptied(t: Any) -> Any:
    return t if t.dim() == 0 else t[:0]


def flattened_to_zero_dim(t: Any) -> Any:
    return t.reshape(-1)[0].clone() if t.numel() else t


def channels_last(t: Any) -> Any:
    return t.contiguous(memory_format=_oracle.load().channels_last) if t.dim() == 4 else transposed(t)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": transposed,
    "offset": offset,
    "stepped": stepped,
    "expanded": expanded,
    "emptied": emptied,
    "zero_dim": flattened_to_zero_dim,
    "channels_last": channels_last,
}


# Samples of every dtype in every layout, and more of the first of these that the row has.
FIRST = ("float64", "int64", "bool")
COUNT, MORE = 2, 6


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", _infos.covered(), ids=lambda case: case.label)
def test_layout(case: _infos.Covered, layout: str) -> None:
    if layout in _own.WRONG_LAYOUTS.get(case.row, ()):
        return
    first = next((name for name in FIRST if _infos.supported(case.info, name)), None)
    for dtype in _infos.DTYPES:
        if _infos.supported(case.info, dtype):
            compare(case, layout, dtype, MORE if dtype == first else COUNT)


def compare(case: _infos.Covered, layout: str, dtype: str, count: int) -> None:
    info, change = case.info, LAYOUTS[layout]
    for sample in _infos.samples(info, dtype, count=count):
        args, kwargs = _infos.arguments(sample)
        args = _oracle.tree_map(change, args, _oracle.is_oracle_tensor)
        where = f"{case.label} {layout} {dtype} {_infos.describe(sample)}"
        mine_args, mine_kwargs = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        _oracle.load().manual_seed(0)
        expected = _infos.attempt(_infos.in_oracle(info), args, kwargs)
        torch.manual_seed(0)
        actual = _infos.attempt(_infos.in_subject(info), mine_args, mine_kwargs)
        if isinstance(expected, _infos.Failure):
            if case.row in _own.MORE_LAYOUTS or "INTERNAL ASSERT FAILED" in expected.text:
                continue  # the latter PyTorch itself calls a bug
            assert isinstance(actual, _infos.Failure), f"{where}: no exception, expected {expected}"
            assert actual.kind == expected.kind, f"{where}: {actual}, expected {expected}"
            continue
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual.kind}: {actual.text}"
        if case.row in _own.RANDOM_ROWS:
            assert _layouts(actual) == _layouts(expected), where
            continue
        if case.row in _own.TIES:
            _assert_same_up_to_ties(case.row, actual, expected, args, kwargs, where)
            continue
        actual, expected = (_infos.comparable(case.row, value) for value in (actual, expected))
        try:
            _oracle.assert_same(actual, expected, where=where, computed_in=dtype)
        except AssertionError:
            moved = copy.copy(sample)
            moved.input, moved.args = args[0], args[1:]
            if dtype not in PRECISE or not near(
                case, moved, actual, expected, PRECISE[dtype], _own.SENSITIVE.get(case.row, 1.0)
            ):
                raise


def near(case: _infos.Covered, sample: Any, actual: Any, expected: Any, precise: str, slack: float) -> bool:
    """Whether each result is no farther from the precise one than PyTorch's, or `slack` times as far."""
    function = _infos.in_oracle(case.info)
    if not isinstance(expected, (list, tuple)):
        return _no_worse(function, sample, actual, expected, precise, slack)

    def one(position: int) -> Callable[..., Any]:
        return lambda *args, **kwargs: function(*args, **kwargs)[position]

    pairs = enumerate(zip(actual, expected))
    return all(right is None or _no_worse(one(i), sample, left, right, precise, slack) for i, (left, right) in pairs)
