"""Derivatives of every row against finite differences, first and second order, by mindtorch_v2's own gradcheck.

Invariant: no derivative is only as right as PyTorch's; it is right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule
from . import _infos, _own
from .test_gradients import DTYPE, differentiable, leaves

pytestmark = pytest.mark.oracle

# Finite differences need two evaluations per element and direction.
MAX_CHECKED = 60


def smooth() -> list[_infos.Covered]:
    return [
        case
        for case in differentiable()
        if case.row not in _own.NOT_SMOOTH | _own.RANDOM_ROWS
        and (case.info.name, case.info.variant_test_name) not in _own.NOT_SMOOTH_VARIANTS
    ]


def checkable(case: _infos.Covered, count: int) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """(function, inputs) pairs for gradcheck: the function takes exactly the tensors that require grad."""
    found: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    wrapper = _infos.rebound(case.info.gradcheck_wrapper) or case.info.gradcheck_wrapper
    function = functools.partial(wrapper, _infos.in_subject(case.info))
    for sample in _infos.samples(case.info, DTYPE, requires_grad=True, count=3 * count):
        args, kwargs = _infos.arguments(sample)
        mine_args, mine_kwargs = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        inputs = tuple(leaves([mine_args, mine_kwargs], torch.Tensor))
        if not inputs or not 0 < sum(item.numel() for item in inputs) <= MAX_CHECKED:
            continue
        found.append((_bound(function, mine_args, mine_kwargs, inputs), inputs))
        if len(found) == count:
            break
    return found


def _bound(function: Callable[..., Any], args: Any, kwargs: Any, inputs: tuple[Any, ...]) -> Callable[..., Any]:
    positions = {id(tensor): index for index, tensor in enumerate(inputs)}

    def call(*values: Any) -> Any:
        def put(item: Any) -> Any:
            return values[positions[id(item)]] if id(item) in positions else item

        is_tensor = _oracle.is_subject_tensor
        result = function(*_oracle.tree_map(put, args, is_tensor), **_oracle.tree_map(put, kwargs, is_tensor))
        made = result if isinstance(result, (list, tuple)) else (result,)
        return tuple(item for item in made if item.is_floating_point())

    return call


@pytest.mark.parametrize("case", smooth(), ids=lambda case: case.label)
def test_gradcheck(case: _infos.Covered) -> None:
    autograd = submodule("autograd")
    for function, inputs in checkable(case, 2):
        assert autograd.gradcheck(function, inputs)


@pytest.mark.parametrize("case", smooth(), ids=lambda case: case.label)
def test_gradgradcheck(case: _infos.Covered) -> None:
    if not case.info.supports_gradgrad:
        return
    autograd = submodule("autograd")
    for function, inputs in checkable(case, 1):
        assert autograd.gradgradcheck(function, inputs)
