"""Kernels over planes and rows: norms by channel, padding, pooling, the largest elements, rows side by side.

Invariant: every value is compared with NumPy's in float64; results do not depend on the number of threads; what does
not fit its storage is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native

F = torch.nn.functional


def values(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    drawn = np.random.default_rng(seed).standard_normal(shape) * 3 + 1
    return torch.from_numpy(drawn).to(getattr(torch, dtype))


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def same_for_any_number_of_threads(set_threads: Callable[[int], None], code: Callable[[], Any]) -> list[Any]:
    seen = []
    for n in (1, 2, 16):
        set_threads(n)
        seen.append([part.detach().numpy() for part in code()])
    for other in seen[1:]:
        for a, b in zip(seen[0], other):
            np.testing.assert_array_equal(a, b)
    return seen[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 6, 5, 9), (3, 4, 70, 70), (1, 8, 9000), (5, 2, 3)])
@pytest.mark.parametrize("groups", [0, 1, 2])
def test_norms_by_channel(shape: tuple[int, ...], groups: int, dtype: str, threads: Callable[[int], None]) -> None:
    x, weight, bias = (values(*s, dtype=dtype, seed=k) for k, s in enumerate((shape, shape[1:2], shape[1:2])))
    grad = values(*shape, dtype=dtype, seed=9)
    for t in (x, weight, bias):
        t.requires_grad_()

    def code() -> list[Any]:
        y = F.group_norm(x, groups, weight, bias) if groups else F.batch_norm(x, None, None, weight, bias, True)
        return [y, *torch.autograd.grad(y, (x, weight, bias), grad)]

    got = same_for_any_number_of_threads(threads, code)
    axes = (2, 3) if groups else (0, 2)
    n, c = shape[:2]
    seen = (n, groups, c // groups, -1) if groups else (n, c, -1)
    by_channel = (1, groups, c // groups, 1) if groups else (1, c, 1)
    xs, gs = (t.detach().double().numpy().reshape(seen) for t in (x, grad))
    w, b = (t.detach().double().numpy().reshape(by_channel) for t in (weight, bias))
    rstd = 1 / np.sqrt(xs.var(axes, keepdims=True) + 1e-5)
    hat = (xs - xs.mean(axes, keepdims=True)) * rstd
    outside = (0, 3) if groups else (0, 2)
    scaled = gs * w
    dx = (scaled - scaled.mean(axes, keepdims=True) - hat * (scaled * hat).mean(axes, keepdims=True)) * rstd
    want = [hat * w + b, dx, (gs * hat).sum(outside), gs.sum(outside)]
    for a, exact in zip(got, want):
        tolerance = 1e-12 if dtype == "float64" else 2e-5
        np.testing.assert_allclose(
            a.reshape(-1), exact.reshape(-1), rtol=tolerance, atol=tolerance * np.abs(exact).max()
        )


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("pads", [(1, 2), (-1, 3), (2, -2), (1, 0, 2, 3), (-1, 2, 3, -2), (1, 1, 1, 1, 1, 2)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "complex64"])
def test_padding(pads: tuple[int, ...], mode: str, dtype: str, threads: Callable[[int], None]) -> None:
    rank = len(pads) // 2
    x = values(2, 3, *(5, 7, 6)[:rank], dtype=dtype)
    if dtype in ("float32", "complex64"):
        x.requires_grad_()

    def code() -> list[Any]:
        y = F.pad(x, pads, mode=mode)
        return (
            [y.float() if dtype == "bfloat16" else y]
            if not x.requires_grad
            else [y, *torch.autograd.grad(y, x, torch.arange(y.numel()).reshape(y.shape).to(y.dtype))]
        )

    got = same_for_any_number_of_threads(threads, code)
    given = x.detach().float().numpy() if dtype == "bfloat16" else x.detach().numpy()
    widths, cuts = [(0, 0), (0, 0)], [slice(None), slice(None)]
    for before, after in reversed(list(zip(pads[::2], pads[1::2]))):
        widths.append((max(before, 0), max(after, 0)))
        cuts.append(slice(max(-before, 0), None if after >= 0 else after))
    numbered = np.pad(np.arange(given.size).reshape(given.shape), widths, "reflect" if mode == "reflect" else "edge")
    # What is cut away on one side can still be seen on the other.
    kept = numbered[tuple(cuts)]
    np.testing.assert_array_equal(got[0], given.reshape(-1)[kept])
    if x.requires_grad:
        want = np.zeros(given.size)
        np.add.at(want, kept.reshape(-1), np.arange(kept.size))
        np.testing.assert_array_equal(got[1].real.reshape(-1), want)


def test_what_leaves_its_plane_is_refused() -> None:
    storage = torch.zeros(64)._storage
    operand = (storage, 0, torch.float32.code)
    for before, mode in (((0, 0, 9), 0), ((0, 0, 4), 2), ((0, 0, 1 << 62), 1)):
        with pytest.raises(ValueError, match="pad"):
            _native.pad_planes(*operand, *operand, 1, (1, 1, 3), (1, 1, 12), before, mode)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        _native.pad_planes(*operand, *operand, 9, (1, 2, 4), (1, 2, 5), (0, 0, 1), 1)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        _native.channel_norm(
            *operand, *operand, None, 0, 0, None, 0, 0, *operand, *operand, None, 0, 0, 2, 5, 7, 0, False, 0.1, False
        )
    with pytest.raises(ValueError, match="5 channels in 2 groups"):
        _native.channel_norm(
            *operand, *operand, None, 0, 0, None, 0, 0, *operand, *operand, None, 0, 0, 1, 5, 7, 2, False, 0.1, False
        )


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "uint8"])
def test_topk(dtype: str, threads: Callable[[int], None]) -> None:
    for n, k in ((1, 1), (7, 0), (40, 3), (300, 30), (1000, 10), (1000, 999)):
        x = values(5, n, 2, dtype=dtype, seed=n)
        if dtype == "float32":
            x[1, n // 2] = float("nan")
        for largest in (True, False):
            got = same_for_any_number_of_threads(
                threads, lambda x=x, k=k, largest=largest: [x.topk(k, 1, largest=largest)[1]]
            )[0]
            order = x.double().numpy()
            keys = np.where(np.isnan(order), np.inf, order)
            keys = -keys if largest else keys
            picked = np.take_along_axis(keys, got, 1)
            np.testing.assert_array_equal(picked, np.sort(keys, 1, kind="stable")[:, :k])


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "norm"])
def test_rows_of_every_length(name: str, threads: Callable[[int], None]) -> None:
    for n in (*range(1, 40), 63, 64, 65, 129, 511, 513, 1025, 3000):
        x = values(70, n, seed=n) * 0.5
        got = same_for_any_number_of_threads(threads, lambda x=x: [getattr(torch, name)(x, dim=1)])[0]
        exact = x.double().numpy()
        want = np.linalg.norm(exact, axis=1) if name == "norm" else getattr(exact, name)(1)
        scale = np.abs(exact).sum(1) if name in ("sum", "mean") else np.abs(want)
        assert (np.abs(got - want) <= 3e-6 * scale + 1e-30).all(), n


def test_products_of_every_height() -> None:
    for m, n, k in itertools.product((5, 8, 13, 15, 29, 64), (7, 16, 17, 33, 48), (1500, 1501)):
        for dtype, tolerance in (("float32", 1e-5), ("bfloat16", 1e-2)):
            a, b = values(m, k, dtype=dtype), values(k, n, dtype=dtype, seed=1)
            want = a.double().numpy() @ b.double().numpy()
            for left, right in ((a, b), (a.t().contiguous().t(), b), (a, b.t().contiguous().t())):
                got = (left @ right).double().numpy()
                assert np.abs(got - want).max() <= tolerance * np.abs(want).max(), (m, n, k, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_arithmetic_of_halves(dtype: str) -> None:
    a, b = (values(37, 21, dtype=dtype, seed=k) for k in (0, 1))
    a[0, :4] = torch.tensor([float("nan"), float("inf"), -0.0, 60000.0])
    for left, right in ((a, b), (a.t(), b.t()), (a[:, ::2], b[:, ::2]), (a, b[0]), (a[:, :1], b)):
        for name in ("add", "sub", "mul", "div"):
            exact = getattr(torch, name)(left.float(), right.float()).to(getattr(torch, dtype))
            got = getattr(torch, name)(left, right)
            np.testing.assert_array_equal(got.float().numpy(), exact.float().numpy())
