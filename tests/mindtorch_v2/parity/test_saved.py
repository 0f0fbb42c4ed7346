"""Saved values of every row in the user's keeping: packed and unpacked, or computed again, they give the same
gradients.

Invariant: a row's formulas see of its saved values what unpacking returns, and nothing else.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import pytest

from .. import _oracle
from .._subject import SUBJECT_NAME
from .._subject import subject as torch
from . import _infos
from .test_gradients import DTYPE, differentiable, leaves

pytestmark = pytest.mark.oracle

checkpoint: Any = importlib.import_module(SUBJECT_NAME + ".utils.checkpoint").checkpoint


def gradients(case: _infos.Covered, sample: Any, around: Any, again: bool) -> Any:
    """The gradients of one call made within `around`, or through a checkpoint."""
    args, kwargs = (_oracle.convert_argument(part) for part in _infos.arguments(sample))
    function = _infos.in_subject(case.info)
    # Of the result what is determined: of a loss that depends on the phases of eigenvectors there is no gradient.
    determined = sample.output_process_fn_grad
    torch.manual_seed(0)
    if again:
        result = checkpoint(lambda: determined(function(*args, **kwargs)), use_reentrant=False)
    else:
        with around:
            result = determined(function(*args, **kwargs))
    outputs, inputs = leaves(result, torch.Tensor), leaves([args, kwargs], torch.Tensor)
    if not outputs or not inputs:
        return []
    # Another state than the call began with, to tell drawing again from drawing on.
    torch.manual_seed(1)
    return torch.autograd.grad(outputs, inputs, [torch.ones_like(o) for o in outputs], allow_unused=True)


def same(got: Any, wanted: Any, where: str) -> None:
    assert len(got) == len(wanted)
    for left, right in zip(got, wanted):
        assert (left is None) == (right is None), where
        if right is not None:
            assert torch.equal(left.nan_to_num(), right.nan_to_num()), where


@pytest.mark.parametrize("case", differentiable(), ids=lambda case: case.label)
def test_gradients_from_kept_and_repeated_values(case: _infos.Covered) -> None:
    packing = torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)
    for sample in _infos.samples(case.info, DTYPE, requires_grad=True, count=3):
        where = f"{case.label} {_infos.describe(sample)}"
        plain = gradients(case, sample, contextlib.nullcontext(), False)
        same(gradients(case, sample, packing, False), plain, where)
        same(gradients(case, sample, packing, True), plain, where + ", computed again")
