"""The fused, indexing, scanning and product kernels of the native module, against NumPy and against PyTorch.

Invariant: every kernel is called through raw operands (storage, offset, strides, code) of arrays that NumPy owns, in
dense, permuted, stepped and offset layouts; a call that must fail is also shown to have written nothing.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mindtorch_v2 import _native

Array = Any
CODES = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
    "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 12, "float8_e5m2": 13, "float8_e4m3fn": 14,
    "uint16": 15, "uint32": 16, "uint64": 17,
}  # fmt: skip
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), BFLOAT16]
TOLERANCE = {"float32": 2e-6, "float64": 1e-13, "float16": 2e-3, "bfloat16": 1.6e-2}
ALL = [np.dtype(name) for name in CODES if not name.startswith(("bfloat", "float8"))] + [BFLOAT16]
NONE = (None, 0, (), 0)


def code(dtype: Any) -> int:
    return CODES[np.dtype(dtype).name]


def operand(array: Array) -> tuple[Any, int, tuple[int, ...], int]:
    """The memory an array covers as a foreign storage, and the array's place in it."""
    if array.size == 0:
        strides = tuple(s // array.itemsize for s in array.strides)
        return _native.Storage(0), 0, strides, code(array.dtype)
    low, high = np.lib.array_utils.byte_bounds(array)
    storage = _native.Storage.wrap(low, high - low, array)
    offset = (array.__array_interface__["data"][0] - low) // array.itemsize
    return storage, offset, tuple(s // array.itemsize for s in array.strides), code(array.dtype)


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def new(shape: tuple[int, ...], dtype: Any) -> tuple[None, int, tuple[int, ...], int]:
    """A result that the kernel shall allocate."""
    return None, 0, dense(shape), code(dtype)


def read(storage: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    count = math.prod(shape)
    return np.frombuffer(storage, dtype=np.dtype(dtype), count=count).reshape(shape)


def random(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -100), min(info.max, 100), shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def layouts(array: Array) -> list[Array]:
    """The same values dense, column-major, inside a larger array with steps, and backwards in memory."""
    wide = np.zeros(tuple(2 * s + 1 for s in array.shape), array.dtype)
    inner = wide[tuple(slice(1, None, 2) for _ in array.shape)]
    inner[...] = array
    backwards = np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    return [np.ascontiguousarray(array), np.asfortranarray(array), inner, backwards]


def close(got: Array, want: Array, scale: float = 1.0) -> None:
    name = got.dtype.name
    tolerance = TOLERANCE.get(name, 0.0) * scale
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
        return
    kind = np.complex128 if got.dtype.kind == "c" else np.float64
    if got.dtype.kind == "c":
        tolerance = scale * (2e-5 if name == "complex64" else 1e-12)
    np.testing.assert_allclose(got.astype(kind), np.asarray(want).astype(kind), rtol=tolerance, atol=tolerance)


def tensor(torch: Any, array: Array) -> Any:
    """A PyTorch tensor with the array's values."""
    array = np.ascontiguousarray(array)
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def values(torch: Any, result: Any) -> Array:
    result = result.detach().contiguous()
    if result.dtype == torch.bfloat16:
        return result.view(torch.int16).numpy().view(BFLOAT16)
    return result.numpy()


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    module.set_num_threads(1)
    return module


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


# ---------------------------------------------------------------- gather and scatter


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_gather(dtype: Any) -> None:
    x = random((5, 6, 7), dtype)
    rng = np.random.default_rng(1)
    for dim in range(3):
        shape = (3, 4, 2)
        index = rng.integers(0, x.shape[dim], shape)
        cut = x[tuple(slice(None) if d == dim else slice(shape[d]) for d in range(3))]
        want = np.take_along_axis(cut, index, dim)
        for given, where in zip(layouts(x), layouts(index)):
            out = _native.gather(*operand(given), *operand(where), *new(shape, dtype), shape, x.shape, dim)
            np.testing.assert_array_equal(read(out, shape, dtype), want)
        narrow = index.astype(np.int32)
        out = _native.gather(*operand(x), *operand(narrow), *new(shape, dtype), shape, x.shape, dim)
        np.testing.assert_array_equal(read(out, shape, dtype), want)


@pytest.mark.parametrize("bad", [7, -1])
def test_indices_out_of_range_change_nothing(bad: int) -> None:
    x = random((5, 7), np.float32)
    before = x.copy()
    index = np.array([[0, 1, bad]])
    text = f"index {bad} is out of bounds for dimension 1 with size 7"
    with pytest.raises(RuntimeError, match=text):
        _native.gather(*operand(x), *operand(index), *new((1, 3), np.float32), (1, 3), (5, 7), 1)
    with pytest.raises(RuntimeError, match=text):
        _native.scatter(*operand(x), *operand(index), 1.0, 0, (), 0, (1, 3), (5, 7), 1, 0)
    line, ones = np.array([0, 1, bad]), np.ones((5, 3), np.float32)
    with pytest.raises(RuntimeError, match=text):
        _native.index_add(*operand(x), (5, 7), 1, *operand(line), 3, *operand(ones), 1)
    with pytest.raises(IndexError, match="index out of range in self"):
        _native.index_add(*operand(x), (5, 7), 1, *operand(line), 3, *operand(ones), 2)
    with pytest.raises(RuntimeError, match=f"INDICES element is out of DATA bounds, id={bad} axis_dim=7"):
        _native.index_select(*operand(x), (5, 7), 1, *operand(line), 3, *new((5, 3), np.float32))
    with pytest.raises(IndexError, match="index out of range in self"):
        _native.index_select(*operand(x), (5, 7), 0, *operand(line), 3, *new((3, 7), np.float32))
    with pytest.raises(IndexError, match="index out of range in self"):
        _native.embedding(*operand(x), *operand(line), *new((3, 7), np.float32), 3, 5, 7)
    np.testing.assert_array_equal(x, before)


COMBINE = {0: lambda a, b: b, 1: lambda a, b: a + b, 2: lambda a, b: a * b, 3: max, 4: min}


@pytest.mark.parametrize("reduce", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "bool", "complex64", "float16"])
def test_scatter(reduce: int, dtype: str) -> None:
    if dtype == "complex64" and reduce > 2:
        x = np.zeros(3, dtype)
        with pytest.raises(NotImplementedError, match="reduce_am.*not implemented for 'ComplexFloat'"):
            _native.scatter(*operand(x), *operand(np.array([0])), *operand(x[:1]), (1,), (3,), 0, reduce)
        return
    rng = np.random.default_rng(2)
    for dim in range(3):
        shape = (3, 4, 5)
        index = rng.integers(0, (5, 6, 7)[dim], shape)
        source = random(shape, dtype, seed=3)
        for k in range(4):
            out = layouts(random((5, 6, 7), dtype))[k]
            want = out.copy()
            for at in np.ndindex(*shape):
                to = tuple(index[at] if d == dim else at[d] for d in range(3))
                with np.errstate(over="ignore"):
                    want[to] = COMBINE[reduce](want[to], source[at])
            _native.scatter(
                *operand(out), *operand(layouts(index)[k]), *operand(layouts(source)[k]), shape, out.shape, dim, reduce
            )
            close(out, want)


def test_scatter_of_a_number_and_of_expanded_indices() -> None:
    out = np.zeros((4, 50_000), np.int16)
    index = np.broadcast_to(np.array([[1], [1], [3]]), (3, 50_000))
    _native.scatter(*operand(out), *operand(index), 5, 0, (), 0, index.shape, out.shape, 0, 1)
    np.testing.assert_array_equal(out.sum(1), [0, 500_000, 0, 250_000])
    scalar = np.zeros((), np.float32)
    _native.scatter(*operand(scalar), *operand(np.array(0)), 2.5, 0, (), 0, (), (), 0, 0)
    assert scalar == 2.5
    with pytest.raises(RuntimeError, match="is larger than"):
        _native.scatter(*operand(out), *operand(index), 5, 0, (), 0, index.shape, (4, 3), 0, 1)


@pytest.mark.oracle
@pytest.mark.parametrize("how", ["sum", "prod", "amax", "amin"])
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float16), BFLOAT16], ids=str)
def test_scatter_as_pytorch(torch: Any, how: str, dtype: Any) -> None:
    out, source = random((4, 6), dtype), random((9, 6), dtype, seed=1)
    source[3, 3] = np.nan
    index = np.random.default_rng(0).integers(0, 4, (9, 6))
    want = tensor(torch, out).scatter_reduce(0, tensor(torch, index), tensor(torch, source), how)
    number = {"sum": 1, "prod": 2, "amax": 3, "amin": 4}[how]
    _native.scatter(*operand(out), *operand(index), *operand(source), (9, 6), (4, 6), 0, number)
    np.testing.assert_array_equal(out.astype(np.float32), values(torch, want).astype(np.float32))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float16), BFLOAT16], ids=str)
def test_sums_of_repeated_indices_round_as_pytorch(torch: Any, dtype: Any) -> None:
    source, index = random((40, 6), dtype, seed=1), np.random.default_rng(0).integers(0, 3, 40)
    i, s = tensor(torch, index), tensor(torch, source)
    for alpha in (1, 2):
        out = random((3, 6), dtype)
        want = tensor(torch, out).index_add(0, i, s, alpha=alpha)
        _native.index_add(*operand(out), (3, 6), 0, *operand(index), 40, *operand(source), alpha)
        np.testing.assert_array_equal(out, values(torch, want))
    line = np.ascontiguousarray(source[:, 0])
    out = random((3,), dtype)
    want = tensor(torch, out).index_add(0, i, tensor(torch, line))
    _native.index_add(*operand(out), (3,), 0, *operand(index), 40, *operand(line), 1)
    np.testing.assert_array_equal(out, values(torch, want))
    out = random((3, 6), dtype)
    want = tensor(torch, out).index_put((i,), s, accumulate=True)
    arguments, shape, _ = restride(out, {0: index}, 0)
    _native.index_put(*arguments, *operand(source), shape, 1)
    np.testing.assert_array_equal(out, values(torch, want))
    got = _native.embedding_backward(*operand(source), *operand(index), *new((3, 6), dtype), 40, 3, 6, -1, 0)
    want = torch.ops.aten.embedding_dense_backward(s, i, 3, -1, False)
    np.testing.assert_array_equal(read(got, (3, 6), dtype), values(torch, want))


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_index_select_and_add(dtype: Any) -> None:
    x = random((5, 6, 7), dtype)
    for dim in range(3):
        index = np.array([4, 0, 3, 3])
        want = np.take(x, index, dim)
        for given in layouts(x):
            out = _native.index_select(*operand(given), x.shape, dim, *operand(index), 4, *new(want.shape, dtype))
            np.testing.assert_array_equal(read(out, want.shape, dtype), want)
        stepped = np.repeat(index.astype(np.int32), 2)[::2]
        target = np.zeros(want.shape[::-1], dtype).T
        _native.index_select(*operand(x), x.shape, dim, *operand(stepped), 4, *operand(target))
        np.testing.assert_array_equal(target, want)
        if dtype.name in ("uint16", "uint32", "uint64"):
            with pytest.raises(NotImplementedError, match="index_add_"):
                _native.index_add(*operand(x), x.shape, dim, *operand(index), 4, *operand(want), 1)
            continue
        for alpha in (1, 2):
            for out, source in zip(layouts(x), layouts(want)):
                expected = np.moveaxis(out.copy(), dim, 0)
                for i, row in zip(index, np.moveaxis(source, dim, 0)):
                    with np.errstate(over="ignore"):
                        expected[i] = expected[i] + (
                            row if alpha == 1 or dtype == np.bool_ else row * row.dtype.type(2)
                        )
                _native.index_add(*operand(out), x.shape, dim, *operand(index), 4, *operand(source), alpha)
                close(np.moveaxis(out, dim, 0), expected)


def test_index_select_of_many_rows_and_scalars() -> None:
    x = random((1000, 64), np.float32)
    index = np.random.default_rng(0).integers(0, 1000, 5000)
    out = _native.index_select(*operand(x), x.shape, 0, *operand(index), 5000, *new((5000, 64), np.float32))
    np.testing.assert_array_equal(read(out, (5000, 64), np.float32), x[index])
    out = _native.index_select(*operand(x), x.shape, 1, *operand(np.array(3)), 1, *new((1000, 1), np.float32))
    np.testing.assert_array_equal(read(out, (1000, 1), np.float32), x[:, [3]])
    scalar = np.array(5.0)
    out = _native.index_select(*operand(scalar), (), 0, *operand(np.array([0])), 1, *new((), np.float64))
    assert read(out, (), np.float64) == 5


# ---------------------------------------------------------------- advanced indexing


def restride(x: Array, indices: dict[int, Array], front: int) -> tuple[tuple[Any, ...], tuple[int, ...], Array]:
    """What a caller does for x[.., i, .., j]: strides over the result, one operand per index. The broadcast indices
    stand at dimension `front` of the result."""
    block = np.broadcast_shapes(*(i.shape for i in indices.values()))
    rest = [d for d in range(x.ndim) if d not in indices]
    shape = tuple(x.shape[d] for d in rest[:front]) + block + tuple(x.shape[d] for d in rest[front:])
    storage, offset, strides, number = operand(x)
    moved = tuple(strides[d] for d in rest[:front]) + (0,) * len(block) + tuple(strides[d] for d in rest[front:])
    operands = []
    for index in indices.values():
        i = operand(np.broadcast_to(index, block))
        operands.append((i[0], i[1], (0,) * front + i[2] + (0,) * (len(rest) - front)))
    dims = tuple(range(len(indices)))
    sizes = tuple(x.shape[d] for d in indices)
    steps = tuple(strides[d] for d in indices)
    return (storage, offset, moved, number, operands, dims, sizes, steps), shape, rest


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_index_get_and_put(dtype: Any) -> None:
    x = random((5, 6, 7), dtype)
    i, j = np.array([[0, -1], [2, 3]]), np.array([5, -6])
    for given in layouts(x):
        for indices, front, want in [
            ({0: i}, 0, given[i]),
            ({1: i}, 1, given[:, i]),
            ({2: j}, 2, given[:, :, j]),
            ({0: i, 1: j}, 0, given[i, j]),
            ({1: i, 2: j}, 1, given[:, i, j]),
            ({0: i, 2: j}, 0, given[i, :, j]),
            ({0: i, 1: j, 2: i.T}, 0, given[i, j, i.T]),
        ]:
            arguments, shape, _ = restride(given, indices, front)
            assert shape == want.shape
            out = _native.index_get(*arguments, *new(shape, dtype), shape)
            np.testing.assert_array_equal(read(out, shape, dtype), want)
            target = given.copy(order="K")
            arguments, _, _ = restride(target, indices, front)
            source = random(shape, dtype, seed=9)
            key = tuple(indices.get(d, slice(None)) for d in range(3))
            _native.index_put(*arguments, *operand(source), shape, 0)
            expected = given.copy()
            expected[key] = source
            np.testing.assert_array_equal(target, expected)


def test_index_put_accumulates_in_order_and_takes_numbers() -> None:
    x = np.zeros((4, 3), np.float32)
    index = np.array([1, 1, 3, -3])
    arguments, shape, _ = restride(x, {0: index}, 0)
    source = random(shape, np.float32)
    want = x.copy()
    np.add.at(want, index, source)
    _native.index_put(*arguments, *operand(source), shape, 1)
    np.testing.assert_allclose(x, want, rtol=1e-6)
    _native.index_put(*arguments, *operand(source), shape, 0)
    np.testing.assert_array_equal(x[1], source[3])  # the last of three writes
    _native.index_put(*arguments, 7, 0, (), 0, shape, 0)
    assert (x[[1, 3]] == 7).all()
    large = np.zeros((3, 100_000), np.int64)
    arguments, shape, _ = restride(large, {0: np.array([0, 2, 2])}, 0)
    _native.index_put(*arguments, 1, 0, (), 0, shape, 1)
    np.testing.assert_array_equal(large.sum(1), [100_000, 0, 200_000])


def test_advanced_indices_out_of_range_change_nothing() -> None:
    x = random((3, 4), np.float32)
    before = x.copy()
    for bad in (4, -5):
        arguments, shape, _ = restride(x, {0: np.array([0, 1]), 1: np.array([0, bad])}, 0)
        text = f"index {bad} is out of bounds for dimension 1 with size 4"
        with pytest.raises(IndexError, match=text):
            _native.index_get(*arguments, *new(shape, np.float32), shape)
        with pytest.raises(IndexError, match=text):
            _native.index_put(*arguments, 9.0, 0, (), 0, shape, 0)
    np.testing.assert_array_equal(x, before)
    empty = np.zeros((0, 4), np.float32)
    arguments, shape, _ = restride(empty, {0: np.array([0])}, 0)
    with pytest.raises(IndexError, match="index is out of bounds for dimension with size 0"):
        _native.index_get(*arguments, *new(shape, np.float32), shape)
    arguments, shape, _ = restride(x, {0: np.zeros((0, 2), np.int64)}, 0)
    assert _native.index_get(*arguments, *new(shape, np.float32), shape).nbytes == 0


def test_indexed_operands_must_fit_their_storage() -> None:
    x = random((3, 4), np.float32)
    arguments, shape, _ = restride(x, {0: np.array([0, 1])}, 0)
    with pytest.raises(RuntimeError, match="operand reaches elements"):
        _native.index_get(arguments[0], 1, *arguments[2:], *new(shape, np.float32), shape)


# ---------------------------------------------------------------- embedding


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("scale", [0, 1])
def test_embedding(dtype: Any, scale: int) -> None:
    weight = random((6, 5), dtype)
    index = np.array([0, 5, 2, 5, 1])
    for given in layouts(weight):
        out = _native.embedding(*operand(given), *operand(index), *new((5, 5), dtype), 5, 6, 5)
        np.testing.assert_array_equal(read(out, (5, 5), dtype), weight[index])
    grad = random((5, 5), dtype, seed=1)
    want = np.zeros((6, 5))
    for i, row in zip(index, grad.astype(np.float64)):
        if i != 2:
            want[i] += row / ((index == i).sum() if scale else 1)
    for given in layouts(grad):
        out = _native.embedding_backward(*operand(given), *operand(index), *new((6, 5), dtype), 5, 6, 5, 2, scale)
        close(read(out, (6, 5), dtype), want)


# ---------------------------------------------------------------- masks


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 5), (1, 6, 1), (300, 400)])
def test_nonzero(dtype: Any, shape: tuple[int, ...]) -> None:
    x = random(shape, dtype)
    x[np.random.default_rng(3).random(shape) < 0.5] = 0
    if dtype.kind == "f":
        x.flat[:2] = [-0.0, math.nan]
    want = np.argwhere(x != 0)
    for given in layouts(x):
        n = _native.nonzero_count(*operand(given), shape)
        assert n == len(want)
        for out in (np.empty((n, len(shape)), np.int64), np.empty((len(shape), n), np.int64).T):
            _native.nonzero(*operand(given), shape, *operand(out), n)
            np.testing.assert_array_equal(out, want)


def test_nonzero_edges() -> None:
    one = np.array(3.0)
    assert _native.nonzero_count(*operand(one), ()) == 1
    _native.nonzero(*operand(one), (), *operand(np.empty((1, 0), np.int64)), 1)
    assert _native.nonzero_count(*operand(np.zeros((2, 0))), (2, 0)) == 0
    x = np.ones(4)
    for wrong in (3, 5):
        with pytest.raises(RuntimeError, match="number of elements changed"):
            _native.nonzero(*operand(x), (4,), *operand(np.empty((wrong, 1), np.int64)), wrong)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_masked_kernels(dtype: Any) -> None:
    for shape in [(4, 5), (3, 70), (200, 300)]:
        x = random(shape, dtype)
        mask = np.random.default_rng(4).random(shape) < 0.4
        value = True if dtype == np.bool_ else 3
        for given, where in zip(layouts(x), layouts(mask)):
            out = read(
                _native.masked_fill(*operand(given), *operand(where), *new(shape, dtype), shape, value), shape, dtype
            )
            np.testing.assert_array_equal(out, np.where(mask, np.asarray(value, dtype), x))
            picked, count = _native.masked_select(*operand(given), *operand(where), shape, None, 0)
            assert count == mask.sum() and picked.nbytes == count * x.itemsize
            np.testing.assert_array_equal(read(picked, (count,), dtype), x[mask])
            source = random((count,), dtype, seed=5)
            target = given.copy(order="K")
            _native.masked_scatter(*operand(target), *operand(where), *operand(source), count, shape)
            expected = x.copy()
            expected[mask] = source
            np.testing.assert_array_equal(target, expected)
            _native.masked_fill(*operand(target), *operand(where), *operand(target), shape, value)
            np.testing.assert_array_equal(target, np.where(mask, np.asarray(value, dtype), x))


def test_mask_edges() -> None:
    x = random((3, 4), np.float32)
    before = x.copy()
    row = np.broadcast_to(np.array([[True], [False], [True]]), (3, 4))
    picked, count = _native.masked_select(*operand(x), *operand(row), (3, 4), None, 0)
    np.testing.assert_array_equal(read(picked, (8,), np.float32), x[row])
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones in mask"):
        _native.masked_scatter(*operand(x), *operand(row), *operand(np.ones(7, np.float32)), 7, (3, 4))
    small = np.zeros(7, np.float32)
    with pytest.raises(RuntimeError, match="operand reaches elements"):
        _native.masked_select(*operand(x), *operand(row), (3, 4), operand(small)[0], 0)
    with pytest.raises(RuntimeError, match="expected a mask of dtype Bool, but got Int"):
        _native.masked_fill(*operand(x), *operand(row.astype(np.int32)), *NONE[:2], dense((3, 4)), 6, (3, 4), 1)
    np.testing.assert_array_equal(x, before)


# ---------------------------------------------------------------- scans and sorting


@pytest.mark.parametrize("op", [0, 1])
@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "int32", "int64", "float32", "float64", "float16", "complex64", "complex128"]
)
def test_cumsum(op: int, dtype: str) -> None:
    for shape in [(9,), (4, 4), (3, 70), (70, 20), (2, 9, 11)]:
        x = random(shape, dtype)
        if op and np.dtype(dtype).kind in "fc":
            x = (x / np.abs(x)).astype(dtype)
        kind = np.complex128 if np.dtype(dtype).kind == "c" else np.float64 if np.dtype(dtype).kind == "f" else None
        for dim in range(len(shape)):
            function = np.cumprod if op else np.cumsum
            want = function(x, dim, dtype=kind or dtype)
            for given in layouts(x):
                out = _native.cumsum(*operand(given), *new(shape, dtype), shape, dim, code(dtype), op)
                close(read(out, shape, dtype), want, scale=4)
            target = layouts(x)[2]
            _native.cumsum(*operand(target), *operand(target), shape, dim, code(dtype), op)
            close(target, want, scale=4)


def test_cumsum_casts_first() -> None:
    x = random((5, 6), np.bool_)
    out = _native.cumsum(*operand(x), *new((5, 6), np.int64), (5, 6), 0, code(np.int64), 0)
    np.testing.assert_array_equal(read(out, (5, 6), np.int64), x.cumsum(0))
    with pytest.raises(NotImplementedError, match="\"cumprod_out_cpu\" not implemented for 'Bool'"):
        _native.cumsum(*operand(x), *new((5, 6), np.bool_), (5, 6), 0, code(np.bool_), 1)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_cumsum_as_pytorch(torch: Any, dtype: Any) -> None:
    x = random((50, 600), dtype)
    for dim in (0, 1):
        got = read(_native.cumsum(*operand(x), *new(x.shape, dtype), x.shape, dim, code(dtype), 0), x.shape, dtype)
        np.testing.assert_array_equal(got, values(torch, tensor(torch, x).cumsum(dim)))


@pytest.mark.parametrize("dtype", [d for d in ALL if d.kind != "c"], ids=str)
@pytest.mark.parametrize("descending", [0, 1])
def test_sort(dtype: Any, descending: int) -> None:
    for shape in [(1,), (40,), (3, 5), (2, 700), (700, 2)]:
        x = random(shape, dtype)
        if dtype.kind not in "iub" and x.size > 8:
            x.reshape(-1)[:8] = np.array([math.nan, 0.0, -0.0, math.inf, -math.inf, math.nan, -0.0, 0.0], dtype)
        for dim in range(len(shape)):
            keys = x.astype(np.float64)
            if descending:
                keys = -keys
            # lexsort with NaN first (descending) or last, ties by position
            nan = np.isnan(keys)
            order = np.lexsort((np.where(nan, 0, keys), ~nan if descending else nan), axis=dim)
            for given in layouts(x):
                v, i = _native.sort(*operand(given), *new(shape, dtype), *new(shape, np.int64), shape, dim, descending)
                np.testing.assert_array_equal(read(i, shape, np.int64), order)
                want = np.take_along_axis(x, order, dim)
                np.testing.assert_array_equal(read(v, shape, dtype).view(np.uint8), want.view(np.uint8))


def test_sort_in_place_and_extremes() -> None:
    for dtype in (np.int8, np.int64, np.uint64, np.uint8):
        info = np.iinfo(dtype)
        x = np.array([info.max, info.min, 1, info.max - 1, info.min + 1, 0], dtype)
        index = np.empty(6, np.int64)
        _native.sort(*operand(x), *operand(x), *operand(index), (6,), 0, 0)
        assert (np.diff(x.astype(object)) >= 0).all()
    with pytest.raises(RuntimeError, match="Sort does not support complex dtypes on CPU"):
        x = np.zeros(3, np.complex64)
        _native.sort(*operand(x), *new((3,), np.complex64), *new((3,), np.int64), (3,), 0, 0)


# ---------------------------------------------------------------- placing


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_flip_and_triangles(dtype: Any) -> None:
    x = random((3, 5, 4), dtype)
    for given in layouts(x):
        for dims in [(), (0,), (-1,), (0, 2), (0, 1, 2)]:
            out = _native.flip(*operand(given), *new(x.shape, dtype), x.shape, dims)
            np.testing.assert_array_equal(read(out, x.shape, dtype), np.flip(x, dims))
        for k in (-6, -1, 0, 2, 9):
            for upper in (0, 1):
                want = (np.triu if upper else np.tril)(x, k)
                out = _native.tri(*operand(given), *new(x.shape, dtype), x.shape, k, upper)
                np.testing.assert_array_equal(read(out, x.shape, dtype), want)
                target = given.copy(order="K")
                _native.tri(*operand(target), *operand(target), x.shape, k, upper)
                np.testing.assert_array_equal(target, want)


def test_ranges() -> None:
    got = read(_native.arange(None, code(np.int64), 5, 2**62, 3), (5,), np.int64)
    np.testing.assert_array_equal(got, 2**62 + 3 * np.arange(5))
    got = read(_native.arange(None, code(np.uint8), 300, 0, 1), (300,), np.uint8)
    np.testing.assert_array_equal(got, np.arange(300).astype(np.uint8))
    got = read(_native.arange(None, code(np.float64), 100, 1.5, -0.25), (100,), np.float64)
    np.testing.assert_array_equal(got, 1.5 - 0.25 * np.arange(100))
    got = read(_native.linspace(None, code(np.float64), 101, -1, 1), (101,), np.float64)
    np.testing.assert_allclose(got, np.linspace(-1, 1, 101), atol=1e-15)
    assert read(_native.linspace(None, code(np.float32), 1, 3, 9), (1,), np.float32)[0] == 3
    for dtype in ALL:
        got = read(_native.eye(None, code(dtype), 3, 5), (3, 5), dtype)
        np.testing.assert_array_equal(got, np.eye(3, 5).astype(dtype))
    assert _native.eye(None, 6, 0, 4).nbytes == 0
    for name, kernel in (("arange_cpu", _native.arange), ("linspace_cpu", _native.linspace)):
        with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'Bool'"):
            kernel(None, code(np.bool_), 3, 0, 1)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "complex64", "complex128"]
)
def test_ranges_as_pytorch(torch: Any, name: str) -> None:
    dtype = BFLOAT16 if name == "bfloat16" else np.dtype(name)
    kind = getattr(torch, name)
    for start, step, n in [(0, 1, 100), (0.1, 0.3, 257), (-3, 0.7, 1000), (5, -0.013, 99), (1, 1e-3, 4097)]:
        if dtype.kind in "iu":
            start, step = abs(int(start)), max(1, abs(int(step)))
        if dtype.kind == "c":
            continue
        stop = start + step * n if dtype.kind in "iu" else start + step * (n - 0.5)
        want = torch.arange(start, stop, step, dtype=kind)
        got = read(_native.arange(None, code(dtype), n, start, step), (n,), dtype)
        np.testing.assert_array_equal(got, values(torch, want))
    for start, end, n in [(0, 1, 11), (0, 10, 4), (-3, 100, 1000), (7, 2, 50), (0, 255, 97), (3, 3, 20), (0, 9, 1)]:
        if dtype.kind == "u" and start < 0:
            continue
        want = torch.linspace(start, end, n, dtype=kind)
        got = read(_native.linspace(None, code(dtype), n, start, end), (n,), dtype)
        np.testing.assert_array_equal(got, values(torch, want))
    if dtype.kind == "c":
        want = torch.linspace(1 - 2j, 3 + 0.3j, 333, dtype=kind)
        got = read(_native.linspace(None, code(dtype), 333, 1 - 2j, 3 + 0.3j), (333,), dtype)
        close(got, values(torch, want))


# ---------------------------------------------------------------- products

PRODUCTS = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128", "uint8", "int8", "int16", "int32",
            "int64"]  # fmt: skip


def product_reference(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iu":
        return a.astype(object) @ b.astype(object)
    kind = np.complex128 if a.dtype.kind == "c" else np.float64
    return a.astype(kind) @ b.astype(kind)


def wrapped(exact: Array, dtype: Any) -> Array:
    return (exact % 2 ** (8 * dtype.itemsize)).astype(np.uint64).astype(dtype) if dtype.kind in "iu" else exact


@pytest.mark.parametrize("name", PRODUCTS)
def test_gemm(name: str) -> None:
    dtype = BFLOAT16 if name == "bfloat16" else np.dtype(name)
    sizes = [(1, 1, 1), (4, 4, 4), (5, 17, 3), (7, 1, 40), (1, 9, 40), (13, 33, 20), (3, 5, 0), (30, 70, 65)]
    for m, n, k in sizes:
        a, b = random((m, k), dtype), random((k, n), dtype, seed=1)
        want = wrapped(product_reference(a, b), dtype)
        scale = max(1.0, math.sqrt(k))
        for x in layouts(a):
            for y in layouts(b):
                out = _native.gemm(
                    *operand(x)[:3], *operand(y)[:3], *new((m, n), dtype)[:3], code(dtype), m, n, k, 1, 0
                )
                close(read(out, (m, n), dtype), want, scale)
        for target in layouts(random((m, n), dtype, seed=2)):
            old = target.astype(object if dtype.kind in "iu" else want.dtype)
            _native.gemm(*operand(a)[:3], *operand(b)[:3], *operand(target)[:3], code(dtype), m, n, k, 2, 3)
            exact = product_reference(a, b) * 2 + old * 3
            close(target, wrapped(exact, dtype), 6 * scale)
        c = random((n,), dtype, seed=3)
        bias = np.broadcast_to(c, (m, n))
        out = _native.addmm(
            *operand(bias)[:3], *operand(a)[:3], *operand(b)[:3], *new((m, n), dtype)[:3], code(dtype), m, n, k, 1, 1
        )
        close(read(out, (m, n), dtype), wrapped(product_reference(a, b) + c.astype(old.dtype), dtype), 2 * scale)


@pytest.mark.parametrize("name", PRODUCTS)
def test_bgemm_and_dot(name: str) -> None:
    dtype = BFLOAT16 if name == "bfloat16" else np.dtype(name)
    a, b = random((6, 4, 9), dtype), random((6, 9, 5), dtype, seed=1)
    want = np.stack([wrapped(product_reference(x, y), dtype) for x, y in zip(a, b)])
    for x, y in zip(layouts(a), layouts(b)):
        out = _native.bgemm(*operand(x)[:3], *operand(y)[:3], *new((6, 4, 5), dtype)[:3], code(dtype), 6, 4, 5, 9, 1, 0)
        close(read(out, (6, 4, 5), dtype), want, 4)
    x, y = random((100,), dtype), random((100,), dtype, seed=1)
    for p, q in ((x, y), (x[::-1], y[::2].repeat(2)), (x[::3], y[::3])):
        q = q[: len(p)]
        s, t = operand(p), operand(q)
        out = _native.dot(s[0], s[1], s[2][0], t[0], t[1], t[2][0], len(p), code(dtype), None, 0)
        exact = product_reference(p[None], q[:, None])[0]
        close(read(out, (1,), dtype), wrapped(exact, dtype), 10)


def test_beta_zero_does_not_read_and_large_products_use_threads() -> None:
    a, b = random((5, 7), np.float32), random((7, 3), np.float32, seed=1)
    out = np.full((5, 3), np.nan, np.float32)
    _native.gemm(*operand(a)[:3], *operand(b)[:3], *operand(out)[:3], 6, 5, 3, 7, 1, 0)
    close(out, a @ b, 4)
    a, b = random((300, 200), np.float32), random((200, 400), np.float32, seed=1)
    for x, y in ((a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b))):
        got = _native.gemm(*operand(x)[:3], *operand(y)[:3], *new((300, 400), np.float32)[:3], 6, 300, 400, 200, 1, 0)
        close(read(got, (300, 400), np.float32), a.astype(np.float64) @ b.astype(np.float64), 20)


def test_products_refuse_what_pytorch_refuses() -> None:
    x = np.ones((2, 2), bool)
    both = (*operand(x)[:3], *operand(x)[:3], None, 0, (2, 1), code(np.bool_), 2, 2, 2, 1, 0)
    with pytest.raises(NotImplementedError, match="\"addmm_impl_cpu_\" not implemented for 'Bool'"):
        _native.gemm(*both)
    with pytest.raises(NotImplementedError, match="\"dot\" not implemented for 'Bool'"):
        _native.dot(operand(x)[0], 0, 1, operand(x)[0], 0, 1, 2, code(np.bool_), None, 0)
    y = np.ones((2, 2), np.float32)
    with pytest.raises(RuntimeError, match="operand reaches elements"):
        _native.gemm(*operand(y)[:3], *operand(y)[:3], None, 0, (2, 1), 6, 2, 2, 3, 1, 0)
    with pytest.raises(RuntimeError, match="operand reaches elements"):
        _native.dot(operand(y)[0], 0, 2, operand(y)[0], 0, 1, 3, 6, None, 0)
