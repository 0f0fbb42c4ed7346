"""Every row on inputs in unusual memory: transposed, offset, stepped, expanded, empty, zero-dimensional.

Invariant: where PyTorch answers we answer the same, strides included; where it refuses we raise its exception type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from . import _infos, _own

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


def eligible() -> list[_infos.Covered]:
    return [case for case in _infos.covered() if case.row not in _own.RANDOM_ROWS | _own.TIES]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", eligible(), ids=lambda case: case.label)
def test_layout(case: _infos.Covered, layout: str) -> None:
    info = case.info
    dtype = next((name for name in ("float64", "int64", "bool") if _infos.supported(info, name)), None)
    if dtype is None or layout in _own.WRONG_LAYOUTS.get(case.row, ()):
        return
    change = LAYOUTS[layout]
    for sample in _infos.samples(info, dtype, count=6):
        args, kwargs = _infos.arguments(sample)
        args = _oracle.tree_map(change, args, _oracle.is_oracle_tensor)
        where = f"{case.label} {layout} {_infos.describe(sample)}"
        mine_args, mine_kwargs = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        expected = _infos.attempt(_infos.in_oracle(info), args, kwargs)
        actual = _infos.attempt(_infos.in_subject(info), mine_args, mine_kwargs)
        if isinstance(expected, _infos.Failure):
            if case.row in _own.MORE_LAYOUTS:
                continue
            assert isinstance(actual, _infos.Failure), f"{where}: no exception, expected {expected}"
            assert actual.kind == expected.kind, f"{where}: {actual}, expected {expected}"
            continue
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual.kind}: {actual.text}"
        _oracle.assert_same(actual, expected, where=where, computed_in=dtype)
