"""Group norm: values, statistics and layout, with and without parameters.

Invariant: the error in float32 is at most one and a half times PyTorch's, also where the mean is large; the result lies
in memory as the input does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch

SHAPES = [((2, 6, 5, 7), 3), ((3, 4, 11), 4), ((2, 8), 2), ((2, 6, 2, 2), 3), ((2, 600, 3), 4), ((1, 6, 40, 40), 1)]


def run(t: Any, shape: tuple[int, ...], groups: int, weight: bool, bias: bool, dtype: Any) -> list[Any]:
    random = np.random.default_rng(0)
    x = random.standard_normal(shape) * 3 + 100
    parameters = [random.standard_normal(shape[1]) if given else None for given in (weight, bias)]
    w, b = (None if p is None else t.from_numpy(p.astype(dtype)) for p in parameters)
    results = t.native_group_norm(
        t.from_numpy(x.astype(dtype)), w, b, shape[0], shape[1], int(np.prod(shape[2:])), groups, 1e-5
    )
    return [r.double().numpy() for r in results]


@pytest.mark.parametrize("weight, bias", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("shape, groups", SHAPES)
def test_error_is_at_most_pytorchs(shape: tuple[int, ...], groups: int, weight: bool, bias: bool, oracle: Any) -> None:
    exact = run(oracle, shape, groups, weight, bias, np.float64)
    theirs = run(oracle, shape, groups, weight, bias, np.float32)
    mine = run(torch, shape, groups, weight, bias, np.float32)
    for got, wanted, true in zip(mine, theirs, exact):
        assert np.abs(got - true).max() <= 1.5 * np.abs(wanted - true).max() + 1e-6 * max(1.0, np.abs(true).max())
    for got, true in zip(run(torch, shape, groups, weight, bias, np.float64), exact):
        np.testing.assert_allclose(got, true, atol=1e-9)


def test_channels_last_stays() -> None:
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((2, 6, 5, 7)).astype(np.float32))
    spread = x.to(memory_format=torch.channels_last)
    got = torch.nn.functional.group_norm(spread, 3)
    assert got.stride() == spread.stride()
    # Sums run in another order.
    np.testing.assert_allclose(got.numpy(), torch.nn.functional.group_norm(x, 3).numpy(), rtol=1e-5, atol=1e-6)


def test_halves_are_rounded_once() -> None:
    x = torch.from_numpy(np.random.default_rng(2).standard_normal((2, 6, 50)).astype(np.float32))
    for half in (torch.float16, torch.bfloat16):
        small = x.to(half)
        wide = torch.nn.functional.group_norm(small.float(), 3)
        assert torch.equal(torch.nn.functional.group_norm(small, 3), wide.to(half))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "shape, groups", [((2, 6, 5, 7), 3), ((3, 72, 9, 3), 4), ((2, 1040, 3, 3), 2), ((2, 4, 40, 41), 2)]
)
def test_gradients_of_halves(shape: tuple[int, ...], groups: int, last: bool) -> None:
    random = np.random.default_rng(3)
    x, g = (torch.from_numpy(random.standard_normal(shape).astype(np.float32)) for _ in range(2))
    w = torch.from_numpy(random.standard_normal(shape[1]).astype(np.float32))
    mean, var = torch.zeros(shape[1]), torch.ones(shape[1])
    calls = (
        lambda x, w: torch.nn.functional.group_norm(x, groups, w, w),
        lambda x, w: torch.nn.functional.batch_norm(x, mean.to(w.dtype), var.to(w.dtype), w, w, True),
        lambda x, w: torch.nn.functional.batch_norm(x, mean.to(w.dtype), var.to(w.dtype), w, w),
    )
    for half, step in ((torch.float16, 2.0**-10), (torch.bfloat16, 2.0**-7)):
        order = torch.channels_last if last else torch.contiguous_format
        small = [t.to(half) for t in (x.contiguous(memory_format=order), w, g.contiguous(memory_format=order))]
        wide = [t.float() for t in small]
        for call in calls:
            found, exact = (
                torch.autograd.grad(call(*of[:2]), of[:2], of[2])
                for of in ([t.requires_grad_() for t in each[:2]] + each[2:] for each in (small, wide))
            )
            assert found[0].stride() == exact[0].stride()
            for got, wanted in zip(found, exact):
                assert got.dtype is half
                # Statistics of group norm are kept in the dtype of the input.
                atol = step * float(np.abs(wanted.numpy()).max())
                np.testing.assert_allclose(got.float().numpy(), wanted.numpy(), rtol=step, atol=atol)
