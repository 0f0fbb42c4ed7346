"""What schemas say about memory is true, for every row: what is written, what is shared, what is new.

A mode below autograd looks at every operator that PyTorch's samples reach, with their in-place and out= forms and their
first and second derivatives, so that rows without a public name are looked at too. Composite rows run above the mode:
for them, and for all others again, the memory a public call shares is compared with PyTorch's.
Invariant: a row whose schema is silent about memory on purpose is listed in `_own.py` with the reason.
"""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch
from . import _calls, _infos, _lists, _own
from ._claims import CASES, CPU, OWN, shares

pytestmark = pytest.mark.oracle


@mindtorch_only
@pytest.mark.parametrize("position", range(len(CASES)), ids=[case.label for case in CASES])
def test_schemas_are_true(position: int) -> None:
    assert CPU.at(position) == ()


@mindtorch_only
@pytest.mark.parametrize("row", OWN)
def test_schemas_are_true_for_own_samples(row: str) -> None:
    assert CPU.at_own(row) == ()


@pytest.mark.parametrize("row", _lists.rows())
def test_lists(row: str) -> None:
    for number, call in enumerate(_lists.samples(row)):
        _oracle.assert_same(call(torch), call(_oracle.load()), where=f"{row} {number}")


def sharing(result: Any, args: Any, kwargs: Any, library: Any) -> list[Any]:
    """Per result: which arguments it is, has the memory of, names as its base; and with which results it shares."""
    given, found = _calls.tensors([args, kwargs], library.Tensor), _calls.tensors(result, library.Tensor)
    return [
        (
            [t is other for other in given],
            [shares(t, other) for other in given],
            [t._base is not None and t._base is other for other in given],
            [shares(t, other) for other in found],
        )
        for t in found
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_memory_is_shared_as_in_pytorch(case: _infos.Covered) -> None:
    oracle = _oracle.load()
    dtype = _calls.first_dtype(case)
    if dtype is None or case.row in _own.OTHER_SHARING:
        return
    for call in _calls.of(case, dtype, 5):
        expected = call.in_oracle()
        if isinstance(expected[0], _infos.Failure):
            continue
        actual = call.in_subject()
        if isinstance(actual[0], _infos.Failure):
            continue  # test_values and test_forms account for it
        got, wanted = sharing(*actual, torch), sharing(*expected, oracle)
        assert got == wanted, f"{call.where}: (is, shares, base, others) {got}, expected {wanted}"
        mine, theirs = _calls.tensors(actual[1:], torch.Tensor), _calls.tensors(expected[1:], oracle.Tensor)
        if call.form == _calls.OUT:
            # test_forms compares what is in them; how many steps write to them is PyTorch's affair.
            targets = _calls.tensors(actual[2].pop("out"), torch.Tensor)
            assert all(t._version > 0 for t in targets), call.where
            mine, theirs = mine[: -len(targets)], theirs[: -len(targets)]
        # What PyTorch does not write to is as before, and what it writes to is as PyTorch left it.
        if case.row not in _own.RANDOM_ROWS:
            _oracle.assert_same(mine, theirs, where=call.where)
        assert [t._version for t in mine] == [t._version for t in theirs], call.where
