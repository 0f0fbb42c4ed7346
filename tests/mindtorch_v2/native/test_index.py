"""Native gathering, scattering, indexing, embedding and masks, against NumPy and against PyTorch.

Invariant: every kernel is called through raw operands (storage, offset, strides, code) of arrays that NumPy owns, in
dense, permuted, stepped and offset layouts; a call that must fail is also shown to have written nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mindtorch_v2 import _native

from ._arrays import (
    ALL,
    BFLOAT16,
    FLOATS,
    NONE,
    Array,
    close,
    dense,
    layouts,
    new,
    operand,
    random,
    read,
    tensor,
    values,
)

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


COMBINE: dict[int, Any] = {0: lambda a, b: b, 1: lambda a, b: a + b, 2: lambda a, b: a * b, 3: max, 4: min}


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
    with pytest.raises(RuntimeError, match="out of bounds for storage|not allocated yet"):
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


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_embedding_backward_of_wide_rows(dtype: Any) -> None:
    index = np.array([3, 0, 3, 2, 3, 0])
    grad = random((6, 77), dtype, seed=2)
    want = np.zeros((4, 77), dtype)
    for i, row in zip(index, grad):
        want[i] = want[i] + row  # rounded after each sum
    for given in layouts(grad):
        out = _native.embedding_backward(*operand(given), *operand(index), *new((4, 77), dtype), 6, 4, 77, -1, 0)
        np.testing.assert_array_equal(read(out, (4, 77), dtype), want)


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
    with pytest.raises(RuntimeError, match="out of bounds for storage|not allocated yet"):
        _native.masked_select(*operand(x), *operand(row), (3, 4), operand(small)[0], 0)
    with pytest.raises(RuntimeError, match="expected a mask of dtype Bool, but got Int"):
        _native.masked_fill(*operand(x), *operand(row.astype(np.int32)), *NONE[:2], dense((3, 4)), 6, (3, 4), 1)
    np.testing.assert_array_equal(x, before)
