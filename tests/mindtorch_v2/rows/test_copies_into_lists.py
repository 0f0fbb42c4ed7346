"""`out=` of the copies that come as a list: unbind_copy, split_copy, split_with_sizes_copy."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import mindtorch_v2

CALLS = [
    "t.unbind_copy(x, out={})",
    "t.unbind_copy(x, 1, out={})",
    "t.split_copy(x, 1, out={})",
    "t.split_copy(x, 2, 1, out={})",
    "t.split_with_sizes_copy(x, [1, 1], out={})",
    "t.split_with_sizes_copy(x, (1, 2), dim=1, out={})",
]
TARGETS = [
    "[t.zeros(0), t.zeros(0)]",
    "(t.zeros(3), t.zeros(3))",
    "[t.zeros(2), t.zeros(2), t.zeros(2)]",
    "[t.zeros(1, 3), t.zeros(1, 3)]",
    "[t.zeros(1, 3, dtype=t.int64), t.zeros(1, 3)]",
    "[t.zeros(3), t.zeros(3, dtype=t.float64)]",
    "[t.zeros(2, 2), t.zeros(2, 1)]",
    "[t.zeros(3)]",
    "[]",
    "t.zeros(3)",
    "[1, 2]",
]


def answer(library: Any, call: str, target: str) -> Any:
    scope = {"t": library, "x": library.arange(6.0).view(2, 3)}
    out = eval(target, scope)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = eval(call.format("out"), {**scope, "out": out})
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return result, [(tuple(o.shape), str(o.dtype), o.tolist()) for o in out], len(caught)


@pytest.mark.parametrize("call", CALLS)
def test_as_pytorch(oracle: Any, call: str) -> None:
    assert [answer(mindtorch_v2, call, each) for each in TARGETS] == [answer(oracle, call, each) for each in TARGETS]


def test_the_tensors_given_are_written() -> None:
    t = mindtorch_v2
    out = [t.empty(0), t.empty(0)]
    before = [each._version for each in out]
    assert t.unbind_copy(t.arange(6.0).view(2, 3), out=out) is None
    assert [each.tolist() for each in out] == [[0, 1, 2], [3, 4, 5]]
    assert all(each._version > old for each, old in zip(out, before))
