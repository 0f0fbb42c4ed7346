"""Native softmax, layer norm, negative log likelihood and variance, against NumPy and against PyTorch.

Invariant: every kernel is called through raw operands (storage, offset, strides, code) of arrays that NumPy owns, in
dense, permuted, stepped and offset layouts; a call that must fail is also shown to have written nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native

from ._arrays import FLOATS, NONE, Array, close, code, dense, layouts, new, operand, random, read, tensor, values

# ---------------------------------------------------------------- softmax


def softmax_reference(x: Array, dim: int, log: bool) -> Array:
    x = x.astype(np.float64)
    shifted = x - x.max(dim, keepdims=True)
    if log:
        return shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))
    e = np.exp(shifted)
    return e / e.sum(dim, keepdims=True)


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(5,), (4, 4), (3, 70), (70, 3), (2, 33, 17), (9, 700), (2, 3, 4, 5)])
def test_softmax(log: int, dtype: Any, shape: tuple[int, ...]) -> None:
    x = random(shape, dtype)
    for dim in range(len(shape)):
        want = softmax_reference(x, dim, bool(log))
        grad = random(shape, dtype, seed=1)
        for given in layouts(x):
            y = read(_native.softmax(log, *operand(given), *new(shape, dtype), shape, dim), shape, dtype)
            close(y, want)
        y64, g64 = y.astype(np.float64), grad.astype(np.float64)
        if log:
            dx = g64 - np.exp(y64) * g64.sum(dim, keepdims=True)
        else:
            dx = y64 * (g64 - (g64 * y64).sum(dim, keepdims=True))
        for g, given in zip(layouts(grad), layouts(y)):
            out = np.empty(shape, dtype)
            _native.softmax_backward(log, *operand(g), *operand(given), *operand(out), shape, dim - len(shape))
            close(out, dx, scale=20)


def test_softmax_is_written_into_strided_results_and_in_place() -> None:
    x = random((6, 40), np.float32)
    want = softmax_reference(x, 1, False)
    for out in layouts(np.zeros_like(x)):
        _native.softmax(0, *operand(x), *operand(out), x.shape, 1)
        close(out, want)
    _native.softmax(0, *operand(x), *operand(x), x.shape, 1)
    close(x, want)


@pytest.mark.parametrize("log", [0, 1])
def test_softmax_edges(log: int) -> None:
    inf, nan = math.inf, math.nan
    x = np.array([[-inf, -inf], [inf, 0], [nan, 1], [-inf, 1], [-1e4, 0], [1e30, 1e30]], np.float32)
    got = read(_native.softmax(log, *operand(x), *new(x.shape, x.dtype), x.shape, -1), x.shape, x.dtype)
    assert np.isnan(got[:3]).all()
    np.testing.assert_array_equal(got[3], [-inf, 0] if log else [0, 1])
    np.testing.assert_allclose(got[4], [-1e4, 0] if log else [0, 1])
    np.testing.assert_allclose(got[5], [math.log(0.5)] * 2 if log else [0.5, 0.5], rtol=1e-6)
    empty = np.zeros((3, 0), np.float32)
    assert _native.softmax(log, *operand(empty), *new((3, 0), np.float32), (3, 0), 1).nbytes == 0
    scalar = np.array(3.0)
    got = read(_native.softmax(log, *operand(scalar), *new((), np.float64), (), 0), (), np.float64)
    assert got == (0.0 if log else 1.0)


def test_softmax_names_the_kernel_that_is_missing() -> None:
    x = np.zeros((2, 2), np.int32)
    for log, dim, name in [(0, 1, "softmax_lastdim"), (0, 0, "softmax"), (1, 1, "log_softmax_lastdim")]:
        with pytest.raises(NotImplementedError, match=f"\"{name}_kernel_impl\" not implemented for 'Int'"):
            _native.softmax(log, *operand(x), *new((2, 2), np.int32), (2, 2), dim)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        _native.softmax(0, *operand(x), *new((2, 2), np.int32), (2, 2), 2)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_softmax_as_pytorch(torch: Any, dtype: Any) -> None:
    x = random((5, 19, 23), dtype) * np.asarray(4, dtype)
    for dim in range(3):
        for log, function in enumerate((torch.softmax, torch.log_softmax)):
            got = read(_native.softmax(log, *operand(x), *new(x.shape, dtype), x.shape, dim), x.shape, dtype)
            close(got, values(torch, function(tensor(torch, x), dim)))


# ---------------------------------------------------------------- layer norm


def layer_norm(x: Array, weight: Array | None, bias: Array | None, eps: float = 1e-5) -> tuple[Array, Array, Array]:
    rows, inner = x.shape
    stats = np.float64 if x.dtype == np.float64 else np.float32
    mean, rstd = np.empty(rows, stats), np.empty(rows, stats)
    w = NONE if weight is None else operand(weight)
    b = NONE if bias is None else operand(bias)
    out = _native.layer_norm(
        *operand(x), *w, *b, *new(x.shape, x.dtype), *operand(mean), *operand(rstd), rows, inner, eps
    )
    return read(out, x.shape, x.dtype), mean, rstd


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 33), (7, 1000), (2, 9001), (300, 128)])
@pytest.mark.parametrize("affine", ["", "w", "b", "wb"])
def test_layer_norm(dtype: Any, shape: tuple[int, int], affine: str) -> None:
    rows, inner = shape
    x, grad = random(shape, dtype), random(shape, dtype, seed=1)
    weight = random((inner,), dtype, seed=2) if "w" in affine else None
    bias = random((inner,), dtype, seed=3) if "b" in affine else None
    y, mean, rstd = layer_norm(x, weight, bias)
    x64, g64 = x.astype(np.float64), grad.astype(np.float64)
    w64 = np.ones(inner) if weight is None else weight.astype(np.float64)
    hat = (x64 - x64.mean(1, keepdims=True)) / np.sqrt(x64.var(1, keepdims=True) + 1e-5)
    close(y, hat * w64 + (0 if bias is None else bias.astype(np.float64)), scale=4)
    close(mean, x64.mean(1))
    close(rstd, 1 / np.sqrt(x64.var(1) + 1e-5), scale=4)

    dx, dw, db = np.empty(shape, dtype), np.empty(inner, dtype), np.empty(inner, dtype)
    w = NONE if weight is None else operand(weight)
    shared = (*operand(grad), *operand(x), *operand(mean), *operand(rstd), *w)
    _native.layer_norm_backward(*shared, *operand(dx), *operand(dw), *operand(db), rows, inner)
    gw = g64 * w64
    want = (gw - gw.mean(1, keepdims=True) - hat * (gw * hat).mean(1, keepdims=True)) / np.sqrt(
        x64.var(1, keepdims=True) + 1e-5
    )
    if inner > 1:  # a single element has variance 0: its gradient is noise times 1/sqrt(eps)
        close(dx, want, scale=20)
    close(dw, (g64 * hat).sum(0), scale=20 * math.sqrt(rows))
    close(db, g64.sum(0), scale=4 * math.sqrt(rows))
    alone = np.empty(shape, dtype)
    _native.layer_norm_backward(*shared, *operand(alone), *NONE, *NONE, rows, inner)
    np.testing.assert_array_equal(alone, dx)


@pytest.mark.oracle
@pytest.mark.parametrize("mixed", [False, True])
def test_layer_norm_as_pytorch(torch: Any, mixed: bool) -> None:
    for dtype in FLOATS if not mixed else FLOATS[2:]:
        x = random((6, 50), dtype) * np.asarray(3, dtype) + np.asarray(7, dtype)
        parameter = np.dtype(np.float32) if mixed else dtype
        weight, bias = random((50,), parameter, seed=2), random((50,), parameter, seed=3)
        y, mean, rstd = layer_norm(x, weight, bias)
        want = torch.native_layer_norm(tensor(torch, x), (50,), tensor(torch, weight), tensor(torch, bias), 1e-5)
        close(y, values(torch, want[0]), scale=4)
        close(mean.astype(dtype), values(torch, want[1]).reshape(-1))
        close(rstd.astype(dtype), values(torch, want[2]).reshape(-1))


# ---------------------------------------------------------------- negative log likelihood


def nll(logp: Array, target: Array, weight: Array | None, reduction: int, ignore: int) -> tuple[Array, Array]:
    n, c = logp.shape
    shape = (n,) if reduction == 0 else ()
    total = np.empty((), logp.dtype)
    w = NONE if weight is None else operand(weight)
    out = _native.nll_loss(
        *operand(logp), *operand(target), *w, *new(shape, logp.dtype), *operand(total), n, c, reduction, ignore
    )
    return read(out, shape, logp.dtype), total


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(4, 21, 10, 11), (1, 3, 1, 5), (2, 3, 4, 1), (2, 1, 3, 3), (0, 3, 2, 2)])
def test_nll_loss_of_images(reduction: str, shape: tuple[int, ...]) -> None:
    """Images in any order of memory give what the matrix of their places gives."""
    n, c, h, w = shape
    given = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    target = (torch.arange(n * h * w) * 5 % c).reshape(n, h, w)
    weight = torch.arange(1.0, c + 1, dtype=torch.float64)
    rows = given.permute(0, 2, 3, 1).reshape(-1, c).requires_grad_()
    want = torch.nn.functional.nll_loss(rows, target.reshape(-1), weight, reduction=reduction, ignore_index=2)
    up = torch.full_like(want, 0.5)
    (grad,) = torch.autograd.grad(want, [rows], up)
    orders = (given, given.contiguous(memory_format=torch.channels_last), given.mT.contiguous().mT)
    for x in (t.clone().requires_grad_() for t in orders):
        found = torch.nn.functional.nll_loss(x, target, weight, reduction=reduction, ignore_index=2)
        torch.testing.assert_close(found.reshape(want.shape), want, equal_nan=True)
        (dx,) = torch.autograd.grad(found, [x], up.reshape(found.shape))
        torch.testing.assert_close(dx.permute(0, 2, 3, 1).reshape(-1, c), grad, equal_nan=True)


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_loss(reduction: int, dtype: Any, weighted: bool) -> None:
    logp = random((6, 5), dtype)
    target = np.array([0, 4, 2, 2, 1, 3])
    weight = np.abs(random((5,), dtype, seed=1)) if weighted else None
    keep = target != 2
    w = np.where(keep, 1.0 if weight is None else weight.astype(np.float64)[target], 0.0)
    losses = -logp.astype(np.float64)[np.arange(6), target] * w
    want = (losses, losses.sum() / w.sum(), losses.sum())[reduction]
    for given in layouts(logp):
        loss, total = nll(given, target, weight, reduction, 2)
        close(loss, want, scale=4)
        close(total, 0.0 if reduction == 0 else w.sum(), scale=2)
    grad = random((6,) if reduction == 0 else (), dtype, seed=4)
    g = np.broadcast_to(grad.astype(np.float64), (6,)) * w / (w.sum() if reduction == 1 else 1)
    want_grad = np.zeros((6, 5))
    want_grad[np.arange(6), target] = -g
    for out in layouts(np.full((6, 5), 7, dtype)):
        _native.nll_loss_backward(
            *operand(grad), *operand(target), *(NONE if weight is None else operand(weight)), *operand(total),
            *operand(out), 6, 5, reduction, 2,
        )  # fmt: skip
        close(out, want_grad, scale=4)


def test_nll_loss_edges() -> None:
    logp = random((3, 4), np.float32)
    loss, total = nll(logp, np.array([1, 1, 1]), None, 1, 1)
    assert np.isnan(loss) and total == 0
    loss, total = nll(logp[:0], np.zeros(0, np.int64), None, 2, -100)
    assert loss == 0 and total == 0
    loss, total = nll(logp, np.array([1, 0, 3], np.uint8), None, 2, -100)
    close(loss, -(logp[0, 1] + logp[1, 0] + logp[2, 3]))
    for bad in (4, -1):
        with pytest.raises(IndexError, match=f"Target {bad} is out of bounds."):
            nll(logp, np.array([0, bad, 1]), None, 1, -100)
    with pytest.raises(RuntimeError, match="expected target dtype to be Long or Byte, but got Int"):
        nll(logp, np.zeros(3, np.int32), None, 1, -100)


@pytest.mark.oracle
def test_nll_loss_as_pytorch(torch: Any) -> None:
    logp, target, weight = random((3, 4), np.float32), np.array([0, 1, 2]), np.zeros(4, np.float32)
    arguments = [(None, 0), (None, 1), (None, 2), (weight, 1), (weight, 2)]
    for w, reduction in arguments:
        tw = None if w is None else tensor(torch, w)
        want = torch.ops.aten.nll_loss_forward(tensor(torch, logp), tensor(torch, target), tw, reduction, 1)
        loss, total = nll(logp, target, w, reduction, 1)
        np.testing.assert_array_equal(np.isnan(loss), np.isnan(want[0].numpy()))
        close(np.nan_to_num(loss), np.nan_to_num(want[0].numpy()))
        close(total, want[1].numpy())
        out = np.empty((3, 4), np.float32)
        grad = np.ones((3,) if reduction == 0 else (), np.float32)
        _native.nll_loss_backward(
            *operand(grad), *operand(target), *(NONE if w is None else operand(w)), *operand(total), *operand(out),
            3, 4, reduction, 1,
        )  # fmt: skip
        back = torch.ops.aten.nll_loss_backward(
            tensor(torch, grad), tensor(torch, logp), tensor(torch, target), tw, reduction, 1, want[1]
        )
        np.testing.assert_array_equal(out, back.numpy())


# ---------------------------------------------------------------- variance


def var(x: Array, dims: tuple[int, ...], correction: float, root: bool, with_mean: bool = False) -> tuple[Array, Array]:
    kept = tuple(1 if d in dims else s for d, s in enumerate(x.shape))
    strides = tuple(0 if d in dims else s for d, s in enumerate(dense(kept)))
    mean = np.full(kept, 7, x.dtype)
    m = (*operand(mean)[:2], strides, code(x.dtype)) if with_mean else NONE
    out = _native.var(*operand(x), None, 0, strides, code(x.dtype), *m, x.shape, correction, int(root))
    return read(out, kept, x.dtype), mean


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(4, 4), (300, 70), (70, 300), (3, 40, 50), (2, 3, 4, 5)])
def test_var(dtype: Any, shape: tuple[int, ...]) -> None:
    x = random(shape, dtype) + np.asarray(3, dtype)
    x64 = x.astype(np.float64)
    reductions = [(d,) for d in range(len(shape))] + [(0, 1), tuple(range(len(shape))), (0, len(shape) - 1)]
    for dims in reductions:
        for given in layouts(x):
            got, mean = var(given, dims, 1, False, with_mean=True)
            close(got, x64.var(dims, ddof=1, keepdims=True), scale=2)
            close(mean, x64.mean(dims, keepdims=True), scale=2)
            close(var(given, dims, 0, True)[0], x64.std(dims, keepdims=True), scale=2)


def test_var_is_accurate_far_from_zero_and_for_long_rows() -> None:
    x = (np.random.default_rng(0).standard_normal(500_000) * 0.01 + 1000).astype(np.float32)
    got, mean = var(x, (0,), 1, False, with_mean=True)
    np.testing.assert_allclose(got, x.astype(np.float64).var(ddof=1), rtol=1e-6)
    np.testing.assert_allclose(mean, x.astype(np.float64).mean(), rtol=1e-7)
    columns = np.ascontiguousarray(x.reshape(10, -1).T)
    np.testing.assert_allclose(
        var(columns, (0,), 1, False)[0], columns.astype(np.float64).var(0, ddof=1, keepdims=True), rtol=1e-6
    )


@pytest.mark.parametrize("correction", [0, 1, 2, 3, 0.5])
def test_var_of_few_elements(correction: float) -> None:
    freedom = max(0, 2 - correction)
    got = var(np.array([1.0, 3.0]), (0,), correction, False)[0]
    assert got[0] == (math.inf if freedom == 0 else 2 / freedom)
    one = var(np.array([1.0]), (0,), correction, False)[0]
    assert one[0] == 0 if correction < 1 else np.isnan(one[0])
    assert np.isnan(var(np.zeros((2, 0), np.float32), (1,), correction, True)[0]).all()
    assert np.isnan(var(np.array([1.0, math.inf]), (0,), 0, False)[0]).all()
