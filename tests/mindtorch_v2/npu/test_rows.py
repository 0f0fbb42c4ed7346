"""Every row on the NPU against PyTorch: dtypes, layouts, in-place forms and gradients.

The rows come from the registry and the samples from PyTorch's own table: a new row is covered without a new line here.
Invariant: a result comes from the NPU, with PyTorch's dtype, shape, strides and values.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from ..parity import _infos, _own
from ..parity.test_forms import with_out
from ..parity.test_gradients import leaves
from ..parity.test_layouts import LAYOUTS, near
from ..parity.test_values import PRECISE, _assert_same_up_to_ties, _layouts
from . import _rows
from ._refused import REFUSED

pytestmark = pytest.mark.oracle
CASES = _rows.cases() if _oracle.available() else ()


def compare(case: Any, dtype: str, sample: Any, actual: Any, expected: Any, args: Any, kwargs: Any, where: str) -> None:
    mine = _rows.results(actual, where)
    if _rows.is_random(case):
        assert _layouts(mine) == _layouts(expected), where
    elif _rows.is_tied(case):
        _assert_same_up_to_ties(case.row, mine, expected, args, kwargs, where)
    else:
        mine, expected = (_infos.comparable(case.row, value) for value in (mine, expected))
        try:
            _oracle.assert_same(mine, expected, where=where, computed_in=dtype)
        except AssertionError:
            given = copy.copy(sample)
            given.input, given.args = args[0], args[1:]
            slack = _rows.SENSITIVE.get(case.row, 1.0)
            if dtype not in PRECISE or not near(case, given, mine, expected, PRECISE[dtype], slack):
                raise


@pytest.mark.parametrize("dtype", _rows.DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_values(case: Any, dtype: str) -> None:
    info = case.info
    if not _infos.supported(info, dtype):
        return
    account = _rows.Account(REFUSED, case.label, dtype)
    for sample in _infos.samples(info, dtype, count=6):
        args, kwargs = _infos.arguments(sample)
        where = f"{case.label} {dtype} {_infos.describe(sample)}"
        mine = _rows.arguments_of(case, args), _rows.arguments(kwargs)
        expected = _infos.attempt(_infos.in_oracle(info), args, kwargs)
        actual = _rows.run(_infos.in_subject(info), *mine)
        if account.add(actual):
            continue
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual.kind}: {actual.text}"
        compare(case, dtype, sample, actual, expected, args, kwargs, where)
    account.close()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_layouts(case: Any, layout: str) -> None:
    info = case.info
    dtype = _rows.first_dtype(case)
    if dtype is None or _rows.is_random(case) or _rows.is_tied(case) or layout in _own.WRONG_LAYOUTS.get(case.row, ()):
        return
    for sample in _infos.samples(info, dtype, count=4):
        args, kwargs = _infos.arguments(sample)
        args = _oracle.tree_map(LAYOUTS[layout], args, _oracle.is_oracle_tensor)
        where = f"{case.label} {layout} {dtype} {_infos.describe(sample)}"
        expected = _infos.attempt(_infos.in_oracle(info), args, kwargs)
        actual = _rows.run(_infos.in_subject(info), _rows.arguments_of(case, args), _rows.arguments(kwargs))
        if _rows.refusal(actual):
            continue  # test_values accounts for it
        if isinstance(expected, _infos.Failure):
            # What depends on values (an index out of range) is only seen on the device: that is for the errors' tests.
            _rows.settle()
            continue
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual.kind}: {actual.text}"
        compare(case, dtype, sample, actual, expected, args, kwargs, where)


def with_inplace() -> list[Any]:
    return [case for case in CASES if case.info.inplace_variant is not None]


@pytest.mark.parametrize("case", with_inplace(), ids=lambda case: case.label)
def test_inplace(case: Any) -> None:
    info = case.info
    method = getattr(torch.Tensor, info.name.rpartition(".")[2] + "_", None)
    dtype = _rows.first_dtype(case)
    if dtype is None or method is None or _rows.is_random(case):
        return
    for sample in _infos.samples(info, dtype, count=4):
        if sample.broadcasts_input:
            continue
        args, kwargs = _infos.arguments(sample)
        kwargs.pop("out", None)
        where = f"{case.label} in place {dtype} {_infos.describe(sample)}"
        target, rest = _infos.fresh(args[0]), args[1:]
        if not isinstance(target, _oracle.load().Tensor):
            continue
        mine = _rows.arguments(target)
        before = mine._version
        expected = _infos.attempt(info.inplace_variant, (target, *rest), kwargs)
        actual = _rows.run(method, (mine, *_rows.arguments(rest)), _rows.arguments(kwargs))
        if isinstance(expected, _infos.Failure) or _rows.refusal(actual):
            _rows.settle()
            continue
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual.kind}: {actual.text}"
        assert actual is mine, where
        assert mine._version == before + 1, f"{where}: the version moved by {mine._version - before}"
        compare(case, dtype, sample, actual, expected, args, kwargs, where)


@pytest.mark.parametrize("case", with_out() if _oracle.available() else (), ids=lambda case: case.label)
def test_out(case: Any) -> None:
    info = case.info
    dtype = _rows.first_dtype(case)
    if dtype is None or _rows.is_tied(case):
        return
    for sample in _infos.samples(info, dtype, count=4):
        args, kwargs = _infos.arguments(sample)
        where = f"{case.label} out= {dtype} {_infos.describe(sample)}"
        expected = _infos.attempt(_infos.in_oracle(info), args, kwargs)
        many = isinstance(expected, (list, tuple))
        if not all(isinstance(item, _oracle.load().Tensor) for item in (expected if many else [expected])):
            continue  # nothing, or a list among the results, has no `out=`
        targets = [in_other_order(item) for item in (expected if many else [expected])]
        given = [_rows.arguments(t) for t in targets]
        theirs = _infos.attempt(_infos.in_oracle(info), args, {**kwargs, "out": tuple(targets) if many else targets[0]})
        actual = _rows.run(
            _infos.in_subject(info),
            _rows.arguments_of(case, args),
            {**_rows.arguments(kwargs), "out": tuple(given) if many else given[0]},
        )
        if isinstance(theirs, _infos.Failure) or _rows.refusal(actual):
            _rows.settle()
            continue
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual.kind}: {actual.text}"
        results = list(actual) if many else [actual]
        assert all(left is right for left, right in zip(results, given)), f"{where}: returned something else"
        compare(
            case, dtype, sample, results if many else results[0], targets if many else targets[0], args, kwargs, where
        )


def in_other_order(t: Any) -> Any:
    """A target of this shape and dtype; where it has two dimensions they lie in memory the other way round."""
    plain = t.detach()
    return (plain.t().clone().contiguous().t() if plain.dim() == 2 and plain.numel() else plain.clone()).fill_(1)


def differentiable() -> list[Any]:
    return [
        case
        for case in CASES
        if case.info.supports_autograd
        and _infos.supported(case.info, "float32")
        and not _rows.is_random(case)
        and case.row not in _own.OTHER_GRADIENTS
    ]


def precise_gradient(info: Any, args: Any, kwargs: Any, weights: Any, position: int) -> Any:
    """PyTorch's gradient in float64: what both are measured by where float32 is not enough."""
    oracle = _oracle.load()

    def widen(t: Any) -> Any:
        return t.detach().double().requires_grad_(t.requires_grad) if t.is_floating_point() else t

    args, kwargs = _oracle.tree_map(widen, (args, kwargs), _oracle.is_oracle_tensor)
    results = leaves(_infos.in_oracle(info)(*args, **kwargs), oracle.Tensor)
    inputs = leaves([args, kwargs], oracle.Tensor)
    return oracle.autograd.grad(results, inputs, [w.double() for w in weights], allow_unused=True)[position]


def error_of(found: Any, exact: Any) -> float:
    return float((found.double() - exact).abs().max())


@pytest.mark.parametrize("case", differentiable(), ids=lambda case: case.label)
def test_gradients(case: Any) -> None:
    oracle = _oracle.load()
    info = case.info
    account = _rows.Account(REFUSED, case.label, "gradient")
    for sample in _infos.samples(info, "float32", requires_grad=True, count=6):
        where = f"{case.label} gradient {_infos.describe(sample)}"
        args, kwargs = _infos.arguments(sample)
        moved = _rows.arguments_of(case, args), _rows.arguments(kwargs)
        expected = _infos.attempt(_infos.in_oracle(info), args, kwargs)
        actual = _rows.run(_infos.in_subject(info), *moved)
        if _rows.refusal(actual):
            continue  # test_values accounts for it
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual.kind}: {actual.text}"
        theirs, ours = leaves(expected, oracle.Tensor), leaves(actual, torch.Tensor)
        assert len(ours) == len(theirs), where
        inputs, my_inputs = leaves([args, kwargs], oracle.Tensor), leaves(list(moved), torch.Tensor)
        if not theirs or not inputs:
            continue
        weights = [oracle.randn_like(result) for result in theirs]
        wanted = oracle.autograd.grad(theirs, inputs, weights, allow_unused=True)
        got = _infos.attempt(
            torch.autograd.grad, (ours, my_inputs, [_rows.arguments(w) for w in weights]), {"allow_unused": True}
        )
        if account.add(got):
            continue
        assert not isinstance(got, _infos.Failure), f"{where}: {got.kind}: {got.text}"
        for position, (left, right) in enumerate(zip(got, wanted)):
            assert (left is None) == (right is None), f"{where}: gradient {position} is {left}, expected {right}"
            if right is not None:
                mine = _rows.results(left, where)
                try:
                    # A gradient sums many rounded terms, in another order than PyTorch's.
                    _oracle.assert_same(
                        mine, right.clone(), where=f"{where} {position}", stride=False, rtol=1e-4, atol=1e-4
                    )
                except AssertionError:
                    exact = precise_gradient(info, args, kwargs, weights, position)
                    if not error_of(_oracle.to_oracle(mine), exact) <= 2 * error_of(right, exact):
                        raise
    account.close()


# Compared elsewhere: an NPU draws numbers of its own (test_rejection_npu.py), and PyTorch's CPU does not have the parts
# of synchronised batch normalization (test_sync_norm_npu.py).
_ELSEWHERE = {"poisson", "binomial", *_own.SYNCHRONISED}
OWN = [
    (row, number, call)
    for row, calls in _own.SAMPLES.items()
    if row not in _ELSEWHERE
    for number, call in enumerate(calls)
]


@pytest.mark.parametrize(("row", "number", "call"), OWN, ids=[f"{entry[0]}-{entry[1]}" for entry in OWN])
def test_own_samples(row: str, number: int, call: Any) -> None:
    actual = _rows.run(call, (torch,), {})
    if _rows.refusal(actual):
        assert REFUSED.get(row) == "all", f"{row}: {actual.text}"
        return
    assert not isinstance(actual, _infos.Failure), f"{row} {number}: {actual.kind}: {actual.text}"
    fetched = _rows.results(actual, f"{row} {number}")
    _oracle.assert_same(fetched, call(_oracle.load()), where=f"{row} {number}")
