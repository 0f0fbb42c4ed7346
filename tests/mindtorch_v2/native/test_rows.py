"""Kernels over rows: short rows side by side, sums over bags of rows, distances between rows, rolled rows; and float64
functions in vectors.

Invariant: every value is compared with NumPy's in a wider dtype; results do not depend on the number of threads; what
does not fit its storage is refused.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native

F = torch.nn.functional
LIBRARY = os.environ.get("MINDTORCH_CPU") == "baseline"  # the C library's functions then, up to two ulps
STEP = {"float64": 1e-12, "float32": 2e-6, "bfloat16": 8e-3, "float16": 1e-3}


def values(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    drawn = np.random.default_rng(seed).standard_normal(shape) * 3
    return torch.from_numpy(drawn).to(getattr(torch, dtype))


def wide(t: Any) -> Any:
    return t.detach().double().numpy()


def near(got: Any, expected: Any, dtype: str) -> None:
    np.testing.assert_allclose(wide(got), expected, rtol=STEP[dtype], atol=STEP[dtype] * np.abs(expected).max())


@pytest.mark.parametrize("dtype", list(STEP))
@pytest.mark.parametrize("width", [1, 2, 3, 16, 31, 32, 33, 64, 100])
@pytest.mark.parametrize("rows", [3, 64, 131])
def test_softmax_of_rows(rows: int, width: int, dtype: str) -> None:
    x, g = values(rows, width, dtype=dtype), values(rows, width, dtype=dtype, seed=1)
    sliced = torch.cat([x, g], 1)[:, :width]
    e = np.exp(wide(x) - wide(x).max(1, keepdims=True))
    soft = e / e.sum(1, keepdims=True)
    for log in (False, True):
        fn, expected = (F.log_softmax, np.log(soft)) if log else (F.softmax, soft)
        for given in (x, sliced):
            near(fn(given, -1), expected, dtype)
        leaf = x.clone().requires_grad_()
        y = fn(leaf, -1)
        (got,) = torch.autograd.grad(y, leaf, g)
        kept, pulled = wide(y), wide(g)
        total = pulled.sum(1, keepdims=True) if log else (pulled * kept).sum(1, keepdims=True)
        near(got, pulled - np.exp(kept) * total if log else (pulled - total) * kept, dtype)


def test_softmax_of_short_rows_keeps_what_is_no_number() -> None:
    x = values(80, 8)
    x[0, 3], x[1] = math.inf, -math.inf
    y = F.softmax(x, -1)
    assert y[0].isnan().any() and y[1].isnan().all() and not y[2:].isnan().any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("width", [1, 5, 64, 3000])
def test_layer_norm_of_two_byte_rows(width: int, dtype: str) -> None:
    x, g = values(37, width, dtype=dtype), values(37, width, dtype=dtype, seed=1)
    weight = values(width, dtype=dtype, seed=2).requires_grad_()
    leaf = x.clone().requires_grad_()
    y = F.layer_norm(leaf, (width,), weight)
    v, w, pulled = wide(x), wide(weight), wide(g)
    hat = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5)
    near(y, hat * w, dtype)
    # The moments are kept in the dtype of the rows.
    mean, rstd = (wide(m) for m in torch.native_layer_norm(x, (width,), weight, None, 1e-5)[1:])
    hat, d = (v - mean) * rstd, pulled * w
    dx, dw = torch.autograd.grad(y, (leaf, weight), g)
    near(dx, rstd * (d - d.mean(1, keepdims=True) - hat * (d * hat).mean(1, keepdims=True)), dtype)
    near(dw, (pulled * hat).sum(0), dtype)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("places", [(5, 7), (70, 70)])
def test_two_byte_planes(places: tuple[int, int], last: bool, dtype: str) -> None:
    x, weight, bias = values(3, 6, *places, dtype=dtype), values(6, dtype=dtype, seed=1), values(6, dtype=dtype, seed=2)
    mean, var = values(6, dtype=dtype, seed=3), values(6, dtype=dtype, seed=4).abs() + 0.5
    given = x.contiguous(memory_format=torch.channels_last) if last else x
    v, w, b = wide(x), wide(weight)[:, None, None], wide(bias)[:, None, None]

    def scaled(middle: Any, square: Any) -> Any:
        return (v - middle) / np.sqrt(square + 1e-5) * w + b

    fixed = (wide(mean)[:, None, None], wide(var)[:, None, None])
    near(F.batch_norm(given, mean, var, weight, bias), scaled(*fixed), dtype)
    axes = (0, 2, 3)
    taken = v.mean(axes, keepdims=True), v.var(axes, keepdims=True)
    got = F.batch_norm(given, None, None, weight, bias, True)
    near(got, scaled(*taken), dtype)
    assert got.stride() == given.stride() and got.dtype is x.dtype
    groups = v.reshape(3, 2, -1)
    each = [np.repeat(m, 3, 1).reshape(3, 6, 1, 1) for m in (groups.mean(2), groups.var(2))]
    near(F.group_norm(given, 2, weight, bias), scaled(*each), dtype)


# -- bags -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", list(STEP))
@pytest.mark.parametrize("width", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding", [None, 3])
def test_bags(mode: str, width: int, padding: int | None, dtype: str) -> None:
    table = values(20, width, dtype=dtype)
    indices = np.random.default_rng(0).integers(0, 20, 50)
    starts = [0, 4, 4, 30, 50]
    got = F.embedding_bag(torch.from_numpy(indices), table, torch.tensor(starts), mode=mode, padding_idx=padding)
    expected = np.zeros((5, width))
    for k, (begin, end) in enumerate(zip(starts, [*starts[1:], 50])):
        rows = [wide(table)[i] for i in indices[begin:end] if i != padding]
        if rows:
            expected[k] = np.sum(rows, 0) / (len(rows) if mode == "mean" else 1)
    near(got, expected, dtype)
    scale = values(50, dtype=dtype, seed=4)
    if mode == "sum" and padding is None:
        got = F.embedding_bag(torch.from_numpy(indices), table, torch.tensor([0]), mode="sum", per_sample_weights=scale)
        near(got, (wide(table)[indices] * wide(scale)[:, None]).sum(0, keepdims=True), dtype)


def test_bags_of_wrong_places() -> None:
    table, indices = values(5, 4), torch.tensor([1, 2, 5])
    with pytest.raises(RuntimeError, match="not in the valid range"):
        F.embedding_bag(indices, table, torch.tensor([0]), mode="sum")
    with pytest.raises(RuntimeError, match=r"offsets\[-1\] can not be greater"):
        F.embedding_bag(indices[:2], table, torch.tensor([0, 3]), mode="sum")
    with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0"):
        F.embedding_bag(indices[:2], table, torch.tensor([1]), mode="sum")
    one = (table._storage, 0, torch.float32.code)
    place = (indices._storage, 0, torch.int64.code)
    with pytest.raises(RuntimeError, match="out of bounds"):
        _native.bag_rows(*one, *place, *place, None, 0, 0, *one, *place, *place, 4, 1, 5, 4, False, -1)


# -- distances --------------------------------------------------------------------------------------------------------
def apart(a: Any, b: Any, p: float) -> Any:
    d = np.abs(wide(a)[..., :, None, :] - wide(b)[..., None, :, :])
    return d.max(-1) if math.isinf(p) else (d != 0).sum(-1) if p == 0 else (d**p).sum(-1) ** (1 / p)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 15, 16, 40, 100])
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 2.5, math.inf])
def test_distances(p: float, width: int, dtype: str) -> None:
    x, y = values(2, 21, width, dtype=dtype), values(1, 17, width, dtype=dtype, seed=1)
    y[:, :5] = x[:1, :5]
    rows, columns = np.triu_indices(21, 1)
    before = torch.get_num_threads()
    for threads in (1, 16):
        torch.set_num_threads(threads)
        near(torch.pdist(x[0], p), apart(x[0], x[0], p)[rows, columns], dtype)
        near(torch.cdist(x, y, p, "donot_use_mm_for_euclid_dist"), apart(x, y, p), dtype)
    torch.set_num_threads(before)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_distances_of_pairs_have_gradients(p: float) -> None:
    x = values(9, 20, dtype="float64").requires_grad_()
    x.data[3] = x.data[5]  # a distance of zero
    g = values(36, dtype="float64", seed=1)
    (got,) = torch.autograd.grad(torch.pdist(x, p), x, g)
    first, second = np.triu_indices(9, 1)
    v, expected = wide(x), np.zeros((9, 20))
    for k, (i, j) in enumerate(zip(first, second)):
        d = v[i] - v[j]
        norm = np.linalg.norm(d)
        pull = wide(g)[k] * (np.sign(d) if p == 1 else d / norm if norm else d * 0)
        expected[i] += pull
        expected[j] -= pull
    np.testing.assert_allclose(wide(got), expected, rtol=1e-10, atol=1e-10)


def test_distances_of_what_is_no_number() -> None:
    x = torch.zeros(3, 33)
    x[1, 1], x[2, 2] = math.nan, math.inf
    for p in (0.0, 1.0, 2.0, math.inf):
        assert torch.pdist(x, p).isnan().tolist() == [True, False, True]
    assert torch.cdist(x, x, math.inf)[0].tolist() == [0, 0, math.inf]
    assert torch.cdist(x, x, 0.0)[0].isnan().tolist() == [False, True, False]


# -- rolled -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64", "complex128"])
@pytest.mark.parametrize(("shifts", "dims"), [(3, 0), (-700, 1), ((3, 5), (0, 1)), ((1, 2, -5), (0, 0, 2)), (11, None)])
def test_roll(shifts: Any, dims: Any, dtype: str) -> None:
    x = (values(6, 700, 3) * 10).to(getattr(torch, dtype))
    plain = (x.float() if dtype == "bfloat16" else x).numpy()
    for given, expected in ((x, plain), (x.transpose(0, 2), plain.swapaxes(0, 2))):
        got = torch.roll(given, shifts, dims) if dims is not None else torch.roll(given, shifts)
        moved = (got.float() if dtype == "bfloat16" else got).numpy()
        np.testing.assert_array_equal(moved, np.roll(expected, shifts, dims))


# -- float64 functions ------------------------------------------------------------------------------------------------
def in_ulps(got: Any, expected: Any) -> float:
    exact = np.asarray(expected, np.longdouble)
    step = np.spacing(np.abs(exact.astype(np.float64))).astype(np.longdouble)
    return float(np.max(np.abs(got.numpy().astype(np.longdouble) - exact) / step))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="there is nothing wider to compare with")
@pytest.mark.parametrize("name", ["atan", "asin", "acos", "atanh", "tan", "atan2", "pow", "pow of one"])
def test_float64_functions(name: str) -> None:
    rng = np.random.default_rng(0)
    far = rng.standard_normal(20_000) * 10.0 ** rng.uniform(-3, 3, 20_000)
    unit, other = rng.uniform(-1, 1, 20_000), rng.standard_normal(20_000) * 10.0 ** rng.uniform(-2, 2, 20_000)
    a, b, by = torch.from_numpy(far), torch.from_numpy(other), torch.from_numpy(unit)
    long = np.longdouble
    if name == "atan2":
        assert in_ulps(torch.atan2(a, b), np.arctan2(far.astype(long), other.astype(long))) < 1.3
    elif name == "pow":
        exact = np.power(np.abs(far).astype(long), other.astype(long))
        fits = (exact < 1e300) & (exact > 1e-300)
        assert in_ulps(torch.pow(a.abs(), b)[torch.from_numpy(fits)], exact[fits]) < 0.8
    elif name == "pow of one":
        assert in_ulps(torch.pow(a.abs(), 2.7), np.power(np.abs(far).astype(long), long(2.7))) < 0.8
    else:
        given, t = (far, a) if name in ("atan", "tan") else (unit, by)
        exact = getattr(np, name.replace("a", "arc", 1) if name[0] == "a" else name)(given.astype(long))
        assert in_ulps(getattr(torch, name)(t), exact) < (2.0 if LIBRARY else 1.0)


def test_float64_erfc() -> None:
    """Against values of 20 digits; between them the C library's function, which is as exact."""
    known = {
        0.1: 8.875370839817151016e-1,
        0.74: 2.9532192214525422812e-1,
        0.76: 2.8246324719440914766e-1,
        1.5: 3.3894853524689272933e-2,
        4.0: 1.5417257900280018852e-8,
        -2.0: 1.9953222650189527342,
        20.0: 5.3958656116079009289e-176,
    }
    for at, value in known.items():
        found = torch.full((300,), at, dtype=torch.float64).erfc()
        np.testing.assert_allclose(found.numpy(), value, rtol=3e-16)
    x = np.concatenate([np.linspace(-7, 27, 20_001), 10.0 ** np.linspace(-20, 0, 300)])
    np.testing.assert_allclose(torch.from_numpy(x).erfc().numpy(), [math.erfc(v) for v in x], rtol=5e-16, atol=5e-324)
    edges = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 30.0], dtype=torch.float64).repeat(50)
    np.testing.assert_array_equal(edges.erfc().numpy(), [math.erfc(v) for v in edges.tolist()])


@pytest.mark.parametrize("repeat", [1, 40])
def test_float64_functions_at_their_edges(repeat: int) -> None:
    edges = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1e308, 0.5, 2, 1e-160, 3, -2.5])
    y, x = (v.ravel().repeat(repeat) for v in np.meshgrid(edges, edges))
    a, b = torch.from_numpy(y), torch.from_numpy(x)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(torch.atan2(a, b).numpy(), np.arctan2(y, x), rtol=1e-15)
        np.testing.assert_array_equal(np.signbit(torch.atan2(a, b).numpy()), np.signbit(np.arctan2(y, x)))
        np.testing.assert_allclose(torch.pow(a, b).numpy(), np.power(y, x), rtol=1e-14)
        for ours, theirs in (
            ("atan", "arctan"),
            ("asin", "arcsin"),
            ("acos", "arccos"),
            ("atanh", "arctanh"),
            ("tan", "tan"),
        ):
            got, expected = getattr(torch, ours)(a).numpy(), getattr(np, theirs)(y)
            np.testing.assert_allclose(got, expected, rtol=1e-15)
            same = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got)[same], np.signbit(expected)[same])


# -- special functions ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_modified_bessel_functions(dtype: str) -> None:
    special = pytest.importorskip("scipy.special")
    drawn = np.concatenate([np.linspace(-30, 30, 4001), 10.0 ** np.linspace(-8, 2, 500), [0.0, 2.0, 8.0, 600.0]])
    x = torch.from_numpy(drawn).to(getattr(torch, dtype))
    exact, near = wide(x), 4e-15 if dtype == "float64" else 1e-7
    with np.errstate(all="ignore"):
        for ours, theirs in (
            ("i0", "i0"), ("i0e", "i0e"), ("i1", "i1"), ("i1e", "i1e"), ("modified_bessel_i0", "i0"),
            ("modified_bessel_i1", "i1"), ("modified_bessel_k0", "k0"), ("modified_bessel_k1", "k1"),
            ("scaled_modified_bessel_k0", "k0e"), ("scaled_modified_bessel_k1", "k1e"),
        ):  # fmt: skip
            expected = getattr(special, theirs)(exact)
            got = wide(getattr(torch.special, ours)(x))
            if dtype == "float32":  # what has all its bits there
                rounded = expected.astype(np.float32).astype(np.float64)
                got, expected = (np.where(np.abs(v) < 1e-37, 0, v) for v in (got, rounded))
            np.testing.assert_allclose(got, expected, rtol=near)


def test_log_gamma_of_float32() -> None:
    special = pytest.importorskip("scipy.special")
    drawn = np.concatenate(
        [np.linspace(0.01, 40, 5000), 10.0 ** np.linspace(-30, 30, 500), 1 + np.linspace(-1, 1, 99) / 1e6]
    )
    for given in (drawn, np.array([-0.5, -1.5, 0.0, -2.0, np.inf, np.nan, 3e38, 1e-40])):
        x = torch.from_numpy(given.astype(np.float32))
        with np.errstate(over="ignore"):
            expected = special.gammaln(wide(x)).astype(np.float32)
        np.testing.assert_allclose(torch.lgamma(x).numpy(), expected, rtol=3e-7 if LIBRARY else 1.3e-7)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64"])
def test_shifts(dtype: str) -> None:
    kind = np.dtype(dtype)
    bits, low, high = kind.itemsize * 8, np.iinfo(kind).min, np.iinfo(kind).max
    amounts = np.unique(np.array([low, -1 if low else high, *range(bits + 3), high]).astype(kind))
    values = np.unique(np.linspace(low, high, 256, dtype=np.float64).clip(low / 1.001, high / 1.001).astype(kind))
    a, b = (v.ravel() for v in np.meshgrid(values, amounts))
    pairs = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    left = np.array([x << y if 0 <= y < bits else 0 for x, y in pairs], dtype=object) & (2**bits - 1)
    right = np.array([x >> (y if 0 <= y < bits else bits) for x, y in pairs], dtype=object) & (2**bits - 1)
    for got, want in (
        (torch.from_numpy(a) << torch.from_numpy(b), left),
        (torch.from_numpy(a) >> torch.from_numpy(b), right),
    ):
        np.testing.assert_array_equal(got.numpy().view(f"uint{bits}"), want.astype(f"uint{bits}"))
