"""Native scans, sorting, placing and products, against NumPy and against PyTorch.

Invariant: every kernel is called through raw operands (storage, offset, strides, code) of arrays that NumPy owns, in
dense, permuted, stepped and offset layouts; a call that must fail is also shown to have written nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mindtorch_v2 import _native

from ._arrays import ALL, BFLOAT16, FLOATS, Array, close, code, layouts, new, operand, random, read, tensor, values

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


@pytest.mark.parametrize("dtype", [np.dtype(np.complex64), np.dtype(np.complex128)])
@pytest.mark.parametrize("which", [1, 2, 3])
def test_factors_are_conjugated_as_they_are_read(dtype: Any, which: int) -> None:
    for m, n, k in ((1, 1, 1), (3, 5, 4), (70, 3, 2), (60, 61, 62)):
        a, b = random((m, k), dtype), random((k, n), dtype, seed=1)
        want = (a.conj() if which & 1 else a) @ (b.conj() if which & 2 else b)
        shape = (code(dtype), m, n, k, 2, 0)
        for x, y in zip(layouts(a), layouts(b)):
            out = _native.gemm(*operand(x)[:3], *operand(y)[:3], *new((m, n), dtype)[:3], *shape, which)
            close(read(out, (m, n), dtype), 2 * want, 4 * math.sqrt(k))
    one = random((2, 2), np.dtype(np.float32))
    both = (*operand(one)[:3], *operand(one)[:3], None, 0, (2, 1), code(one.dtype), 2, 2, 2, 1, 0)
    with pytest.raises(NotImplementedError, match="Float"):
        _native.gemm(*both, which)
    with pytest.raises(TypeError, match="16 arguments"):
        _native.gemm(*both, which, 0)


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
    with pytest.raises(RuntimeError, match="out of bounds for storage|not allocated yet"):
        _native.gemm(*operand(y)[:3], *operand(y)[:3], None, 0, (2, 1), 6, 2, 2, 3, 1, 0)
    with pytest.raises(RuntimeError, match="out of bounds for storage|not allocated yet"):
        _native.dot(operand(y)[0], 0, 2, operand(y)[0], 0, 1, 3, 6, None, 0)
