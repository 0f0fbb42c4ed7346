"""First derivatives of every row in float64 against PyTorch's, and their history.

Invariant: the same inputs require grad, the same outputs require grad, and the gradients agree.
"""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import IS_ORACLE
from .._subject import subject as torch
from . import _infos, _own

pytestmark = pytest.mark.oracle

DTYPE = "float64"


def differentiable() -> list[_infos.Covered]:
    return [case for case in _infos.covered() if case.info.supports_autograd and _infos.supported(case.info, DTYPE)]


def leaves(value: Any, tensor_type: Any) -> list[Any]:
    """Every tensor that requires grad in a nest of arguments or results, in order."""
    found: list[Any] = []

    def visit(item: Any) -> None:
        if isinstance(item, tensor_type):
            if item.requires_grad:
                found.append(item)
        elif isinstance(item, (list, tuple)):
            for part in item:
                visit(part)
        elif isinstance(item, dict):
            for part in item.values():
                visit(part)

    visit(value)
    return found


@pytest.mark.parametrize("case", differentiable(), ids=lambda case: case.label)
def test_gradients(case: _infos.Covered) -> None:
    if case.row in _own.RANDOM_ROWS or case.row in _own.OTHER_GRADIENTS:
        return
    oracle = _oracle.load()
    info = case.info
    for sample in _infos.samples(info, DTYPE, requires_grad=True):
        where = f"{case.label} {_infos.describe(sample)}"
        args, kwargs = _infos.arguments(sample)
        mine_args, mine_kwargs = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        expected = _infos.attempt(_infos.in_oracle(info), args, kwargs)
        actual = _infos.attempt(_infos.in_subject(info), mine_args, mine_kwargs)
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual}"
        theirs, ours = leaves(expected, oracle.Tensor), leaves(actual, torch.Tensor)
        assert len(ours) == len(theirs), f"{where}: {len(ours)} results require grad, expected {len(theirs)}"
        inputs, my_inputs = leaves([args, kwargs], oracle.Tensor), leaves([mine_args, mine_kwargs], torch.Tensor)
        assert len(my_inputs) == len(inputs), where
        if not theirs or not inputs:
            continue
        weights = [oracle.randn_like(result) for result in theirs]
        wanted = oracle.autograd.grad(theirs, inputs, weights, allow_unused=True)
        got = torch.autograd.grad(
            ours, my_inputs, [_oracle.from_oracle(weight) for weight in weights], allow_unused=True
        )
        for position, (left, right) in enumerate(zip(got, wanted)):
            assert (left is None) == (right is None), f"{where}: gradient {position} is {left}, expected {right}"
            if right is not None:
                # Strides of gradients are the engine's business; values and dtypes are compared.
                _oracle.assert_same(
                    left, right.clone(), where=f"{where} gradient {position}", stride=False, computed_in=DTYPE
                )


@pytest.mark.parametrize("case", differentiable(), ids=lambda case: case.label)
def test_grad_fn_names(case: _infos.Covered) -> None:
    oracle = _oracle.load()
    others = []
    for sample in _infos.samples(case.info, DTYPE, requires_grad=True, count=6):
        args, kwargs = _infos.arguments(sample)
        mine = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        theirs = leaves(_infos.attempt(_infos.in_oracle(case.info), args, kwargs), oracle.Tensor)
        ours = leaves(_infos.attempt(_infos.in_subject(case.info), *mine), torch.Tensor)
        wanted, got = ([type(result.grad_fn).__name__ for result in results] for results in (theirs, ours))
        if got != wanted:
            others.append(f"{_infos.describe(sample)}: {got}, expected {wanted}")
    if case.label in _own.OTHER_NODE_NAMES and not IS_ORACLE:
        assert others, "the names are PyTorch's, but listed as others"
    else:
        assert others == []
