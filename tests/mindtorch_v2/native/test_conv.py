"""Convolution and its gradients: the float kernels against the plain columns that complex numbers take.

Invariant: the cases meet every way the kernels have (few rows and many, places across images and within, strides,
dilations, groups, ranks, transposed) with edges of every kind; results do not depend on the number of threads.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native

# images, groups, channels and results of a group, sizes, kernel, stride, padding, dilation, transposed
Case = tuple[
    int, int, int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], bool
]

NAMED: list[Case] = [
    (2, 1, 5, 20, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1), False),
    (5, 1, 17, 7, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1), False),
    (1, 1, 3, 64, (40, 37), (7, 7), (2, 2), (3, 3), (1, 1), False),
    (2, 6, 1, 1, (23, 30), (3, 3), (1, 1), (1, 1), (1, 1), False),
    (2, 6, 1, 2, (23, 30), (5, 5), (2, 2), (2, 2), (1, 1), False),
    (2, 1, 40, 3, (20, 35), (3, 3), (1, 1), (1, 1), (1, 1), False),
    (3, 4, 8, 9, (12, 12), (3, 3), (1, 1), (2, 2), (2, 2), False),
    (2, 1, 30, 40, (70,), (9,), (1,), (4,), (1,), False),
    (1, 1, 4, 6, (5, 9, 8), (3, 3, 3), (1, 2, 1), (1, 1, 1), (1, 1, 1), False),
    (2, 1, 12, 16, (9, 9), (4, 4), (2, 2), (1, 1), (1, 1), True),
    (2, 2, 6, 4, (9, 11), (3, 2), (3, 4), (0, 1), (1, 1), True),
    (1, 1, 2, 5, (30, 30), (1, 1), (3, 3), (0, 0), (1, 1), False),
    (4, 1, 1, 1, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1), False),
    (1, 1, 300, 8, (6, 6), (3, 3), (1, 1), (1, 1), (1, 1), False),
    (1, 1, 1, 4, (3, 3), (3, 3), (5, 5), (40, 40), (1, 1), False),
    # Enough channels and places for tiles of 2 x 2 results: sizes even and odd, every padding, groups, many weights.
    (2, 1, 40, 33, (12, 31), (3, 3), (1, 1), (1, 1), (1, 1), False),
    (8, 1, 64, 26, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1), False),
    (2, 2, 32, 27, (9, 14), (3, 3), (1, 1), (2, 2), (1, 1), False),
    (1, 1, 24, 24, (20, 75), (3, 3), (1, 1), (0, 0), (1, 1), False),
    (2, 1, 25, 27, (3, 70), (3, 3), (1, 1), (0, 2), (1, 1), False),
    (2, 1, 26, 24, (10, 11), (3, 3), (1, 1), (1, 1), (1, 1), True),
    (9, 1, 264, 270, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1), False),
    # Each channel by itself: planes narrower than a vector, several bands of rows, rows that share what they read.
    (2, 9, 1, 1, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1), False),
    (2, 5, 1, 1, (7, 7), (7, 7), (1, 1), (3, 3), (1, 1), False),
    (1, 4, 1, 1, (14, 13), (5, 5), (2, 2), (2, 2), (1, 1), False),
    (1, 2, 1, 1, (3, 40), (7, 7), (2, 2), (3, 3), (1, 1), False),
    (1, 1, 1, 1, (90, 1200), (5, 3), (1, 1), (2, 1), (1, 1), False),
    (1, 3, 2, 1, (4, 6, 18), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), False),
    # Enough planes to be read where they lie: by masks, strides of either dimension, several results of a plane.
    (2, 9, 1, 1, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1), False),
    (4, 6, 1, 1, (14, 13), (5, 5), (2, 2), (2, 2), (1, 1), False),
    (2, 9, 1, 2, (17, 40), (3, 3), (2, 1), (1, 1), (1, 1), False),
    (2, 8, 1, 1, (19, 21), (3, 3), (1, 2), (0, 5), (2, 3), False),
    (4, 5, 1, 1, (9, 37), (2, 4), (3, 2), (1, 1), (1, 1), False),
    (3, 6, 1, 1, (30, 33), (7, 7), (1, 1), (3, 3), (1, 1), False),
    (2, 8, 1, 1, (4, 35), (3, 5), (2, 2), (4, 4), (1, 1), False),
    (4, 4, 1, 1, (9, 12), (4, 4), (2, 2), (1, 1), (1, 1), True),
    (2, 10, 1, 1, (8, 9), (1, 1), (3, 2), (0, 0), (1, 1), False),
    # Few rows, read where they lie; weights that are few for many places.
    (2, 8, 4, 4, (14, 14), (3, 3), (1, 1), (1, 1), (1, 1), False),
    (1, 4, 8, 8, (15, 12), (3, 3), (2, 2), (1, 1), (1, 1), False),
    (1, 1, 5, 6, (60, 70), (3, 3), (1, 1), (1, 1), (1, 1), False),
]


def drawn(count: int) -> list[Case]:
    rng = random.Random(7)

    def several(values: list[int]) -> tuple[int, ...]:
        return tuple(rng.choice(values) for _ in range(rank))

    cases: list[Case] = []
    while len(cases) < count:
        rank, transposed = rng.choice([1, 2, 2, 3]), rng.random() < 0.3
        kernel, dilation = several([1, 2, 3, 5]), several([1, 1, 2])
        padding = several([0] if transposed else [0, 1, 2, 4])
        sizes = several([1, 5, 9, 17, 33] if rank < 3 else [3, 5, 8])
        if transposed or all(n + 2 * p > d * (k - 1) for n, p, d, k in zip(sizes, padding, dilation, kernel)):
            images, groups = rng.choice([1, 2, 5]), rng.choice([1, 1, 2, 3])
            channels, results = rng.choice([1, 2, 5]), rng.choice([1, 3, 4, 13])
            stride = several([1, 1, 2, 3])
            cases.append((images, groups, channels, results, sizes, kernel, stride, padding, dilation, transposed))
    return cases


def answers(case: Case, dtype: Any, bias: bool = True) -> list[Any]:
    """The result and the gradients of input, weight and bias, as NumPy arrays."""
    images, groups, channels, results, sizes, kernel, stride, padding, dilation, transposed = case
    rng = np.random.default_rng(3)
    inner, outer = channels * groups, results * groups
    shape = (inner, results, *kernel) if transposed else (outer, channels, *kernel)
    given = [rng.standard_normal((images, inner, *sizes)), rng.standard_normal(shape), rng.standard_normal(outer)]
    x, w, b = (torch.from_numpy(a).to(dtype).requires_grad_() for a in given)
    zeros = (0,) * len(sizes)
    y = torch.convolution(x, w, b if bias else None, stride, padding, dilation, transposed, zeros, groups)
    if y.numel() == 0:
        return []
    grad = torch.from_numpy(np.random.default_rng(4).standard_normal(tuple(y.shape))).to(dtype)
    found = torch.autograd.grad(y, (x, w, b) if bias else (x, w), grad)
    return [t.detach().numpy() for t in (y, *found)]


def compare(case: Case, dtype: Any, tolerance: float) -> None:
    for got, want in zip(answers(case, dtype), answers(case, torch.complex128)):
        scale = max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(got / scale, want.real / scale, rtol=0, atol=tolerance, err_msg=str(case))


@pytest.mark.parametrize("case", NAMED, ids=str)
def test_named(case: Case) -> None:
    compare(case, torch.float32, 1e-5)
    compare(case, torch.float64, 1e-13)


def test_drawn() -> None:
    for case in drawn(60):
        compare(case, torch.float32, 1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_two_byte_floats(dtype: Any) -> None:
    """Operands are rounded once, sums are float32's, and results are rounded once."""
    step = 2.0**-8 if dtype is torch.bfloat16 else 2.0**-11

    def rounded(case: Case, of: Any) -> list[Any]:
        # The same numbers in both dtypes: those of the narrow one.
        images, groups, channels, results, sizes, kernel, stride, padding, dilation, transposed = case
        rng = np.random.default_rng(3)
        inner, outer = channels * groups, results * groups
        shape = (inner, results, *kernel) if transposed else (outer, channels, *kernel)
        given = [rng.standard_normal((images, inner, *sizes)), rng.standard_normal(shape), rng.standard_normal(outer)]
        x, w, b = (torch.from_numpy(a).to(dtype).to(of).requires_grad_() for a in given)
        y = torch.convolution(x, w, b, stride, padding, dilation, transposed, (0,) * len(sizes), groups)
        grad = torch.from_numpy(np.random.default_rng(4).standard_normal(tuple(y.shape))).to(dtype).to(of)
        return [t.detach().double().numpy() for t in (y, *torch.autograd.grad(y, (x, w, b), grad))]

    for case in NAMED:
        for got, want in zip(rounded(case, dtype), rounded(case, torch.float64)):
            scale = np.abs(want).max(initial=1.0)
            np.testing.assert_allclose(got / scale, want / scale, rtol=step, atol=step, err_msg=str(case))


# Channels and results that fill tiles of 16 words of k by 16, that do not, and kernels that reach places side by side.
# Images, channels, size, results, kernel, stride, padding, dilation, groups.
TILED = [
    (2, 64, 14, 64, 3, 1, 1, 1, 1), (1, 3, 30, 20, 7, 2, 3, 1, 1), (2, 33, 9, 17, 3, 1, 1, 1, 1),
    (2, 32, 13, 64, 3, 2, 1, 1, 2), (1, 64, 20, 8, 1, 1, 0, 1, 1), (3, 128, 7, 130, 1, 1, 0, 1, 1),
    (2, 48, 16, 40, 1, 2, 0, 1, 1), (1, 64, 18, 48, 3, 1, 2, 2, 1), (2, 20, 10, 12, 3, 1, 1, 1, 2),
    (16, 5, 40, 9, 3, 1, 1, 1, 1), (1, 256, 5, 256, 3, 1, 1, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("case", TILED, ids=str)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_bfloat16_by_layout_and_threads(case: tuple[int, ...], layout: Any) -> None:
    images, channels, size, results, kernel, stride, padding, dilation, groups = case
    torch.manual_seed(0)
    x = torch.randn(images, channels, size, size + 1).bfloat16()
    w, b = torch.randn(results, channels // groups, kernel, kernel).bfloat16(), torch.randn(results).bfloat16()

    def run(dtype: Any, grad: Any) -> list[Any]:
        a, c = (t.to(dtype).contiguous(memory_format=layout).requires_grad_() for t in (x, w))
        y = torch.nn.functional.conv2d(a, c, b.to(dtype), stride, padding, dilation, groups)
        grad = torch.randn(y.shape).bfloat16() if grad is None else grad
        seed = grad.to(dtype).contiguous(memory_format=layout)
        return [grad, y.detach(), *torch.autograd.grad(y, (a, c), seed)]

    grad, *want = run(torch.float64, None)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 16):
            torch.set_num_threads(threads)
            found.append(run(torch.bfloat16, grad)[1:])
    finally:
        torch.set_num_threads(before)
    for got, other, third, exact in zip(*found, want):
        assert torch.equal(got, other) and torch.equal(got, third)
        error = (got.double() - exact).abs() / (exact.abs() * 2.0**-8 + exact.abs().max() * 2.0**-15)
        assert float(error.max()) <= 1


def test_what_is_not_finite_stays_where_it_belongs() -> None:
    # Tiles mix their places: a result that is not finite has all of them computed one by one.
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 32, 12, 12)), rng.standard_normal((32, 32, 3, 3))
    x[0, 3, 4, 5], x[1, 2, 0, 0] = np.inf, np.nan
    got = torch.nn.functional.conv2d(torch.tensor(x).float(), torch.tensor(w).float(), padding=1)
    for n, y, z in ((0, 4, 5), (1, 0, 0)):
        near = got[n, :, max(0, y - 1) : y + 2, max(0, z - 1) : z + 2]
        assert not near.isfinite().any() and near.isinf().all() == (n == 0)
        assert int(got[n].isfinite().logical_not().sum()) == near.numel()


def test_any_number_of_threads() -> None:
    before = torch.get_num_threads()
    try:
        for case in NAMED:
            found = []
            for threads in (1, 2, 16):
                torch.set_num_threads(threads)
                found.append(answers(case, torch.float32))
            for other in found[1:]:
                for a, b in zip(found[0], other):
                    np.testing.assert_array_equal(a, b)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64], ids=str)
@pytest.mark.parametrize("size", [(9,), (5, 4), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_kernels_that_cover_their_images(size: tuple[int, ...], dtype: Any, bias: bool) -> None:
    rng = np.random.default_rng(7)
    x, w, g, b = (
        torch.from_numpy(rng.standard_normal(shape)).to(dtype).requires_grad_()
        for shape in ((3, 6, *size), (7, 6, *size), (3, 7) + (1,) * len(size), (7,))
    )
    rows, weights, grads = (t.detach().to(torch.complex128).numpy().reshape(len(t), -1) for t in (x, w, g))
    added = b.detach().to(torch.complex128).numpy() if bias else 0
    convolve = getattr(torch.nn.functional, f"conv{len(size)}d")
    turned = getattr(torch.nn.functional, f"conv_transpose{len(size)}d")
    step = {torch.float32: 1e-5, torch.bfloat16: 2.0**-6, torch.complex64: 1e-5}[dtype]

    def check(got: Any, want: Any) -> None:
        found = got.detach().resolve_conj().to(torch.complex128).numpy().reshape(want.shape)
        np.testing.assert_allclose(found, want, rtol=step, atol=step * np.abs(want).max())

    y = convolve(x, w, b if bias else None)
    assert y.shape == g.shape
    check(y, rows @ weights.T + added)
    dx, dw = torch.autograd.grad(y, (x, w), g.detach())
    check(dx, grads @ weights.conj())
    check(dw, grads.T @ rows.conj())
    back = turned(g, w)
    check(back, grads @ weights)
    dg, dw = torch.autograd.grad(back, (g, w), x.detach())
    check(dg, rows @ weights.conj().T)
    check(dw, grads.conj().T @ rows)


def test_padding_out_of_proportion_is_left_to_columns() -> None:
    # A copy with that much around it would be far larger than what is read and written.
    storage = _native.Storage(64)
    sizes = ((1, 1, 3), (1, 1, 2), (1, 1, 1), (1, 1, 100_000_000), (0, 0, 50_000_000), (1, 1, 1))
    assert _native.conv(storage, 0, 6, storage, 0, 6, None, 0, 0, storage, 0, 6, 1, 1, 1, 1, *sizes) is False
    x = torch.ones(1, 1, 3)
    assert torch.nn.functional.conv1d(x, torch.ones(1, 1, 1), stride=30_000_000, padding=50_000_000).sum() == 0


def test_operands_are_checked() -> None:
    storage = _native.Storage(64)
    ones = (1, 1, 1)
    window = ((1, 4, 4), (1, 4, 4), ones, ones, (0, 0, 0), ones)
    for kernel in (_native.conv, _native.conv_input, _native.conv_weight):
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            kernel(storage, 1, 6, storage, 0, 6, None, 0, 0, storage, 0, 6, 1, 1, 1, 1, *window)
        with pytest.raises(ValueError, match="two dtypes"):
            kernel(storage, 0, 6, _native.Storage(256), 0, 7, None, 0, 0, storage, 0, 6, 1, 1, 1, 1, *window)
        with pytest.raises(RuntimeError, match="overflowed"):
            kernel(storage, 0, 6, storage, 0, 6, None, 0, 0, storage, 0, 6, 1 << 62, 1, 4, 1, *window)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        _native.plane_sums(storage, 0, 6, storage, 0, 6, 1, 17, 1)


@pytest.mark.oracle
def test_error_as_small_as_pytorch_s(oracle: Any) -> None:
    rng = np.random.default_rng(0)
    for shape, weight, stride in [((2, 64, 28, 28), (64, 64, 3, 3), 1), ((1, 3, 64, 64), (32, 3, 7, 7), 2),
                                  ((4, 128, 7, 7), (128, 128, 3, 3), 1),
                                  ((4, 256, 8, 8), (64, 256, 3, 3), 1)]:  # fmt: skip
        x, w = rng.standard_normal(shape).astype(np.float32), rng.standard_normal(weight).astype(np.float32)
        errors = []
        for library in (torch, oracle):
            one, two = library.from_numpy(x), library.from_numpy(w)
            got = library.nn.functional.conv2d(one, two, stride=stride, padding=1).numpy()
            exact = oracle.nn.functional.conv2d(
                oracle.from_numpy(x).double(), oracle.from_numpy(w).double(), stride=stride, padding=1
            ).numpy()
            errors.append(float(np.sqrt(np.mean((got - exact) ** 2))))
        assert errors[0] <= 1.5 * errors[1], (shape, errors)


LOWER = """
from mindtorch_v2 import _native
from tests.mindtorch_v2.native import test_conv as t
import os
assert _native.cpu_level() == os.environ["MINDTORCH_CPU"]
for case in t.NAMED:
    t.compare(case, t.torch.float32, 1e-5)
"""


@pytest.mark.parametrize("level", ["baseline", "avx2"])
def test_lower_levels_of_instructions(level: str) -> None:
    if level != "baseline" and _native.cpu_level() == "baseline":
        pytest.skip("this CPU has no other level")
    subprocess.run([sys.executable, "-c", LOWER], check=True, env={**os.environ, "MINDTORCH_CPU": level})
