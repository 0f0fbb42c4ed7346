"""Attention in blocks: values and gradients against float64 and PyTorch, and what the native functions refuse.

Invariant: the error in float32 is at most one and a half times PyTorch's, sizes on both sides of a block; the number of
threads changes no bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native

# Shapes of queries and keys, width of values, options.
CASES: list[tuple[tuple[int, ...], tuple[int, ...], int, dict[str, bool]]] = [
    ((2, 3, 5, 8), (2, 3, 7, 8), 8, {}),
    ((1, 4, 130, 16), (1, 2, 500, 16), 16, {"enable_gqa": True}),
    ((1, 2, 200, 16), (1, 2, 200, 16), 24, {"is_causal": True}),
    ((1, 2, 450, 8), (1, 2, 100, 8), 8, {"is_causal": True}),
    ((2, 2, 1, 64), (2, 2, 900, 64), 64, {}),
    ((1, 8, 1, 32), (1, 2, 77, 32), 32, {"enable_gqa": True}),
    ((1, 2, 3, 8), (1, 2, 5, 8), 8, {"is_causal": True}),
]
MASKS = ("none", "bool", "float")


def operands(case: int, kind: str) -> tuple[list[Any], Any]:
    """Queries, keys, values and a gradient; a mask whose first row hides everything, or numbers of one row."""
    q, k, width, _ = CASES[case]
    random = np.random.default_rng(case)
    given = [random.standard_normal(shape) for shape in (q, k, (*k[:3], width), (*q[:3], width))]
    mask: Any = None
    if kind == "bool":
        mask = random.random((q[2], k[2])) > 0.4
        mask[0] = False
    elif kind == "float":
        mask = random.standard_normal((1, q[1], 1, k[2]))
    return given, mask


def run(t: Any, case: int, kind: str, dtype: Any) -> list[Any]:
    given, mask = operands(case, kind)
    *inputs, grad = (t.from_numpy(g.astype(np.float32)).to(dtype) for g in given)
    for x in inputs:
        x.requires_grad_()
    if mask is not None:
        mask = t.from_numpy(mask) if kind == "bool" else t.from_numpy(mask.astype(np.float32)).to(dtype)
    out = t.nn.functional.scaled_dot_product_attention(*inputs, attn_mask=mask, **CASES[case][3])
    return [r.detach().double().numpy() for r in (out, *t.autograd.grad(out, inputs, grad))]


def kinds(case: int) -> tuple[str, ...]:
    return ("none",) if CASES[case][3].get("is_causal") else MASKS


PARAMETERS = [(case, kind) for case in range(len(CASES)) for kind in kinds(case)]


@pytest.mark.parametrize("case, kind", PARAMETERS)
def test_error_is_at_most_pytorchs(case: int, kind: str, oracle: Any) -> None:
    exact = run(oracle, case, kind, oracle.float64)
    theirs, mine = run(oracle, case, kind, oracle.float32), run(torch, case, kind, torch.float32)
    for got, wanted, true in zip(mine, theirs, exact):
        assert np.abs(got - true).max() <= 1.5 * np.abs(wanted - true).max() + 3e-7
    for got, true in zip(run(torch, case, kind, torch.float64), exact):
        np.testing.assert_allclose(got, true, atol=1e-13)


@pytest.mark.parametrize("case, kind", PARAMETERS[::3])
def test_halves_are_rounded_once(case: int, kind: str) -> None:
    for half, digits in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        for got, wanted in zip(run(torch, case, kind, half), run(torch, case, kind, torch.float64)):
            np.testing.assert_allclose(got, wanted, atol=digits * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("case, kind", PARAMETERS)
def test_threads_change_nothing(case: int, kind: str) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = run(torch, case, kind, torch.float32)
        torch.set_num_threads(3)
        three = run(torch, case, kind, torch.float32)
    finally:
        torch.set_num_threads(before)
    for a, b in zip(one, three):
        np.testing.assert_array_equal(a, b)


# queries, heads of queries and of keys, keys, width, width of values: few rows, read where they lie.
FEW = [(1, 2, 2, 1, 1, 1), (1, 4, 4, 1000, 64, 64), (1, 8, 2, 385, 80, 130), (1, 4, 2, 383, 33, 7),
       (2, 2, 2, 50, 600, 65), (3, 2, 2, 770, 16, 200), (4, 1, 1, 13, 7, 129), (1, 6, 2, 768, 128, 128)]  # fmt: skip


@pytest.mark.parametrize("sizes", FEW)
@pytest.mark.parametrize("dtype, digits", [("bfloat16", 8), ("float16", 11)])
def test_few_queries_of_halves(dtype: str, digits: int, sizes: tuple[int, ...]) -> None:
    """Keys and values as a cache has them: heads side by side, in longer rows. One rounding, of the result."""
    queries, heads, key_heads, keys, width, values = sizes
    rng = np.random.default_rng(3)
    q = torch.from_numpy(rng.standard_normal((2, heads, queries, width))).to(getattr(torch, dtype))
    cache = torch.from_numpy(rng.standard_normal((2, keys, key_heads, width + values + 3))).to(q.dtype).transpose(1, 2)
    k, v = cache[..., 1 : width + 1], cache[..., width + 1 : width + 1 + values]
    hidden = torch.from_numpy(rng.standard_normal((queries, keys)) > 1)
    hidden[:, 0] = False
    mask = torch.zeros(queries, keys, dtype=torch.float64).masked_fill(hidden, -float("inf"))
    attend = torch.nn.functional.scaled_dot_product_attention
    for given in (None, mask):
        got = attend(q, k, v, None if given is None else given.to(q.dtype), enable_gqa=heads != key_heads)
        want = attend(q.double(), k.double(), v.double(), given, enable_gqa=heads != key_heads)
        error = (got.double() - want).abs().max().item()
        assert got.dtype is q.dtype and error <= 1.1 * 2**-digits * want.abs().max().item() + 1e-6


def test_any_strides() -> None:
    base = torch.from_numpy(np.random.default_rng(5).standard_normal((3, 40, 2, 16)).astype(np.float32))
    for view in (
        base.transpose(1, 2),
        base.permute(0, 2, 3, 1),
        base.transpose(1, 2)[:, :, ::3, ::2],
        base[:1].expand(4, -1, -1, -1),
    ):
        dense = view.contiguous()
        got = torch.nn.functional.scaled_dot_product_attention(view, view, view)
        assert torch.equal(got, torch.nn.functional.scaled_dot_product_attention(dense, dense, dense))


def test_special_scores() -> None:
    """Scores that overflow, and infinities in a mask: a row of nothing is zeros, its gradient too."""
    x = torch.full((1, 1, 4, 4), 100.0, requires_grad=True)
    mask = torch.zeros(4, 4)
    mask[1] = -math.inf
    out = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    assert out[0, 0, 1].tolist() == [0.0] * 4 and out[0, 0, 0].tolist() == [100.0] * 4
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert bool(grad.isfinite().all())
    nan = x.detach().clone()
    nan[0, 0, 2, 0] = math.nan
    assert bool(torch.nn.functional.scaled_dot_product_attention(nan, nan, nan).isnan().all())


def test_second_derivatives_are_those_of_the_parts() -> None:
    x = torch.from_numpy(np.random.default_rng(6).standard_normal((1, 1, 3, 4))).requires_grad_()
    attention = torch.nn.functional.scaled_dot_product_attention
    assert torch.autograd.gradgradcheck(lambda q: attention(q, q, q, is_causal=True), (x,))


def test_refuses_sizes_that_lie() -> None:
    storage = _native.Storage(4 * 64)
    dense: tuple[Any, ...] = (storage, 0, (64, 64, 8, 1), 6)
    none: tuple[Any, ...] = (None, 0, (), 0)
    sizes: list[Any] = [1, 1, 1, 8, 8, 8, 8, False, 1.0]
    _native.attention(*sizes, *dense, *dense, *dense, *none, *dense, *none)
    for place, value in ((3, 9), (4, 9), (5, 9), (6, 9), (0, 2), (1, 3), (2, 2), (3, 0), (4, 2**62), (5, -1)):
        wrong = [*sizes[:place], value, *sizes[place + 1 :]]
        with pytest.raises((RuntimeError, ValueError, IndexError, OverflowError, MemoryError)):
            _native.attention(*wrong, *dense, *dense, *dense, *none, *dense, *none)
