"""Writing to memory that is read as well, or that a tensor shows more than once; and the line that warnings name."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from .._subject import subject as torch

SHARED = "some elements of the input tensor and the written-to tensor refer to a single memory location"
MASK = torch.tensor([True, False, True, True])


@pytest.mark.parametrize(
    "call",
    [
        lambda a: torch.cat([a[:2], torch.ones(2)], out=a),
        lambda a: torch.hstack([a[:2], torch.ones(2)], out=a),
        lambda a: torch.stack([a[:2], a[2:]], out=a.view(2, 2)),
        lambda a: torch.masked_select(a, MASK, out=a[:3]),
        lambda a: torch.masked_select(a, MASK, out=a),
        lambda a: torch.index_select(a, 0, torch.tensor([0, 1]), out=a[:2]),
        lambda a: torch.gather(a, 0, torch.tensor([0, 1]), out=a[:2]),
    ],
)
def test_results_that_share_memory_with_what_is_read(call: Callable[[Any], Any]) -> None:
    a = torch.arange(4.0)
    with pytest.raises(RuntimeError, match=SHARED):
        call(a)
    assert a.tolist() == [0, 1, 2, 3]


def warned(call: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught


INDEX = torch.tensor([0, 1])


@pytest.mark.parametrize(
    "name, write, result",
    [
        ("index_put_", lambda e: e.index_put_((INDEX,), torch.tensor([1.0, 2.0])), 2),
        ("index_put_", lambda e: e.__setitem__(INDEX, torch.tensor([1.0, 2.0])), 2),
        ("masked_fill_", lambda e: e.masked_fill_(MASK, 3.0), 3),
        ("index_fill_", lambda e: e.index_fill_(0, INDEX, 4.0), 4),
        ("index_fill_", lambda e: e.index_fill_(-1, INDEX, torch.tensor(5.0)), 5),
    ],
)
def test_expanded_tensors_are_written_with_a_warning(name: str, write: Callable[[Any], Any], result: float) -> None:
    e = torch.zeros(1).expand(4)
    caught = warned(lambda: write(e))
    assert [str(w.message).startswith(f"Use of {name} on expanded tensors is deprecated.") for w in caught] == [True]
    assert e.tolist() == [result] * 4


def test_index_fill_along_another_dimension_than_the_expanded() -> None:
    e = torch.zeros(1, 3).expand(2, 3)
    warned(lambda: e.index_fill_(1, torch.tensor([0, 2]), 1.0))
    assert e.tolist() == [[1, 0, 1]] * 2


def test_triangles_of_expanded_tensors() -> None:
    low, high = torch.ones(1, 3).expand(3, 3), torch.ones(1, 3).expand(3, 3)
    assert low.tril_().tolist() == [[1, 0, 0]] * 3
    assert high.triu_().tolist() == [[0, 0, 1]] * 3


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.add(torch.ones(2), 1, out=torch.ones(3)),
        lambda: torch.ones(2)[torch.ones(2, dtype=torch.uint8)],
        lambda: torch.where(torch.ones(2, dtype=torch.uint8), torch.ones(2), torch.ones(2)),
        lambda: torch.ones(1).std(),
        lambda: torch.zeros(1).expand(4).masked_fill_(MASK, 3.0),
        lambda: torch.zeros(1).expand(4).index_put_((INDEX,), torch.ones(2)),
    ],
)
def test_warnings_name_the_users_line(call: Callable[[], Any]) -> None:
    (caught,) = warned(call)
    assert caught.filename == __file__ and caught.lineno == inspect.getsourcelines(call)[1]
