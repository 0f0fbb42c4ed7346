"""Native copies and pointwise operators: layouts, refusals, values.

Invariant: expected values come from NumPy, or from PyTorch in the tests that take the `oracle` fixture; no tensor of
the library is involved.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mindtorch_v2

from ._raw import (
    BINARY,
    CODES,
    F32,
    NUMBER,
    SPECIAL,
    TERNARY,
    UNARY,
    View,
    _native,
    array_of,
    binary,
    fresh,
    numpy_dtype,
    random,
    reduce,
    ternary,
    unary,
)

# ---------------------------------------------------------------- layouts


def layouts(shape: tuple[int, ...], name: str = "float32", seed: int = 0) -> Iterator[Any]:
    """The same values in memory in different ways."""
    values = random(shape, name, seed)
    yield values
    if not shape:
        return
    for order in itertools.permutations(range(len(shape))):
        inverse = np.argsort(order)
        yield np.ascontiguousarray(values.transpose(order)).transpose(inverse)
    wide = np.zeros(tuple(2 * size for size in shape), values.dtype)
    view = wide[tuple(slice(0, None, 2) for _ in shape)]
    view[...] = values
    yield view


SHAPES = [(), (1,), (5,), (4, 4), (3, 1, 5), (33, 70), (2, 3, 4), (100, 3), (3, 100), (1, 1), (5, 7, 35)]


@pytest.mark.parametrize("shape", SHAPES)
def test_binary_over_layouts(shape: tuple[int, ...]) -> None:
    for left, right in itertools.product(layouts(shape), layouts(shape, seed=7)):
        result = binary(_native.SUB, View(left), View(right), "float32", "float32")
        assert np.array_equal(result, left - right)


@pytest.mark.parametrize("shape", SHAPES)
def test_copy_over_layouts(shape: tuple[int, ...]) -> None:
    for source, target in itertools.product(layouts(shape), layouts(shape, "int16", seed=7)):
        dst, src = View(target), View(source)
        _native.copy(*dst.args(), *src.args(), shape)
        again = View(np.zeros(shape, np.float32))
        _native.copy(*again.args(), *dst.args(), shape)
        assert np.array_equal(array_of(again.storage, np.float32, shape), source.astype(np.int16))


@pytest.mark.parametrize(
    ("left", "right"),
    [((4, 4), (4,)), ((4, 4), (4, 1)), ((4, 1), (1, 4)), ((300, 40), (40,)), ((300, 40), (300, 1)), ((5, 1, 7), (6, 1)),
     ((2, 3), ()), ((), (3, 2)), ((1000, 300), (300,)), ((1000, 300), (1000, 1)), ((3, 5), (1, 1)), ((0, 4), (4,))],
)  # fmt: skip
def test_broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = View(random(left)), View(random(right, seed=1))
    for op, function in ((_native.ADD, np.add), (_native.SUB, np.subtract), (_native.FMAX, np.fmax)):
        assert np.array_equal(binary(op, a, b, "float32", "float32"), function(a.array, b.array))
        assert np.array_equal(binary(op, b, a, "float32", "float32"), function(b.array, a.array))


def test_output_of_another_layout_and_dtype() -> None:
    a, b = View(random((40, 50))), View(random((40, 50), seed=1))
    out = _native.Storage(8 * 40 * 50 * 2)
    result = _native.binary(_native.MUL, *a.args(), *b.args(), out, 3, (1, 40), CODES["float64"], (40, 50), F32, 1)
    assert result is out
    got = np.frombuffer(out, np.float64)[3 : 3 + 2000].reshape(50, 40).T
    assert np.array_equal(got, (a.array * b.array).astype(np.float64))


@pytest.mark.parametrize("shape", [(7,), (33, 70), (200_000,)])
def test_output_may_be_an_input(shape: tuple[int, ...]) -> None:
    for first in layouts(shape):
        a, b = View(first.copy(order="K") if first.base is None else first), View(random(shape, seed=1))
        expected = first - b.array
        _native.binary(_native.SUB, *a.args(), *b.args(), *a.args(), shape, F32, 1)
        got = View(np.zeros(shape, np.float32))
        _native.copy(*got.args(), *a.args(), shape)
        assert np.array_equal(array_of(got.storage, np.float32, shape), expected)
    a = View(random(shape))
    expected = a.array * a.array
    _native.unary(_native.SQUARE, *a.args(), *a.args(), shape, F32)
    assert np.array_equal(array_of(a.storage, np.float32, shape), expected)
    _native.copy(*a.args(), *a.args(), shape)
    assert np.array_equal(array_of(a.storage, np.float32, shape), expected)


def random_view(rng: Any, shape: tuple[int, ...], name: str) -> Any:
    """Values of `shape` behind some layout: permuted, with steps and an offset, reversed, or expanded."""
    order = rng.permutation(len(shape))
    steps = [int(rng.choice([1, 1, 1, 2, 3])) for _ in shape]
    starts = [int(rng.integers(3)) if rng.random() < 0.3 else 0 for _ in shape]
    expanded = [rng.random() < 0.15 for _ in shape]
    sizes = [1 if wide else size for size, wide in zip(shape, expanded)]
    base_shape = tuple(starts[d] + sizes[d] * steps[d] for d in order)
    base = random(base_shape, name, int(rng.integers(1000)))
    view = base.transpose(np.argsort(order)) if shape else base
    view = view[tuple(slice(start, start + size * step, step) for start, size, step in zip(starts, sizes, steps))]
    return np.broadcast_to(view, shape)


@pytest.mark.parametrize("seed", range(40))
def test_random_layouts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ["float32", "float32", "float64", "int64", "int32", "uint8", "int16", "complex64", "float16"]
    odds = [0.02, 0.1, 0.13, 0.2, 0.15, 0.1, 0.15, 0.1, 0.05]
    for _ in range(8):
        ndim = int(rng.integers(0, 5))
        shape = tuple(int(size) for size in rng.choice([0, 1, 2, 3, 4, 5, 17, 33, 70], size=ndim, p=odds))
        name, other = str(rng.choice(names)), str(rng.choice(names))
        compute = np.promote_types(name, other).name
        x, y = random_view(rng, shape, name), random_view(rng, shape, other)
        a, b = View(x), View(y)
        wide_x, wide_y = x.astype(compute), y.astype(compute)
        assert np.array_equal(binary(_native.SUB, a, b, compute, compute), wide_x - wide_y), (shape, name, other)
        assert np.array_equal(binary(_native.NE, a, b, "bool", compute), wide_x != wide_y)
        assert np.array_equal(unary(_native.POSITIVE, a, name, name), x)
        mask = np.asarray(random_view(rng, shape, "float32") > 0)
        chosen = ternary(_native.WHERE, View(mask), a, b, compute, compute)
        assert np.array_equal(chosen, np.where(mask, wide_x, wide_y))
        target = View(np.zeros(shape))
        _native.copy(*target.args(), *View(x.real).args(), shape)
        assert np.array_equal(array_of(target.storage, np.float64, shape), x.real.astype(np.float64))
        dims = tuple(d for d in range(len(shape)) if rng.random() < 0.5)
        if name in ("int64", "int32", "uint8", "int16", "float64"):
            total = "float64" if name == "float64" else "int64"
            expected = x.sum(axis=dims, keepdims=True, dtype=total)
            assert np.allclose(reduce(_native.SUM, a, dims, total, total), expected, rtol=1e-12, atol=1e-9)
        if name != "complex64" and x.size:
            assert np.array_equal(reduce(_native.AMAX, a, dims, name, name), x.max(axis=dims, keepdims=True))
            assert np.array_equal(reduce(_native.AMIN, a, dims, name, name), x.min(axis=dims, keepdims=True))


def test_zero_size() -> None:
    a = View(np.zeros((0, 3), np.float32))
    assert unary(_native.EXP, a, "float32", "float32").shape == (0, 3)
    assert binary(_native.ADD, a, 1.0, "float32", "float32").shape == (0, 3)
    assert ternary(_native.ADDCMUL, a, a, a, "float32", "float32").shape == (0, 3)
    _native.fill(*a.args(), (0, 3), 1.0)
    _native.copy(*a.args(), *a.args(), (0, 3))
    assert reduce(_native.SUM, a, (0,), "float32", "float32").tolist() == [[0, 0, 0]]
    assert reduce(_native.PROD, a, (0,), "float32", "float32").tolist() == [[1, 1, 1]]
    assert reduce(_native.ALL, a, (0, 1), "bool", "float32").tolist() == [[True]]
    assert reduce(_native.ANY, a, (0, 1), "bool", "float32").tolist() == [[False]]
    assert math.isnan(reduce(_native.MEAN, a, (0, 1), "float32", "float32")[0, 0])
    assert reduce(_native.AMAX, a, (1,), "float32", "float32").shape == (0, 1)
    with pytest.raises(IndexError):
        reduce(_native.AMAX, a, (0,), "float32", "float32")


# ---------------------------------------------------------------- bad calls


def test_operands_are_checked_against_the_storage() -> None:
    a = _native.Storage(64)
    good = (a, 0, (4, 1), F32)
    for bad in ((a, 1, (4, 1), F32), (a, 0, (5, 1), F32), (a, -1, (4, 1), F32), (a, 0, (4, -1), F32),
                (a, 0, (1 << 62, 1), F32), (a, 0, (4, 1), CODES["float64"])):  # fmt: skip
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            _native.binary(_native.ADD, *bad, *good, *fresh((4, 4), "float32"), (4, 4), F32, 1)
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            _native.unary(_native.EXP, *good, *bad, (4, 4), F32)
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            _native.copy(*good, *bad, (4, 4))
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            _native.fill(*bad, (4, 4), 1.0)
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            _native.reduce(_native.SUM, *bad, None, 0, (0, 0), F32, (4, 4), F32, 1)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        _native.reduce(_native.SUM, *good, a, 16, (0, 0), F32, (4, 4), F32)


def test_wrong_arguments_are_python_errors() -> None:
    a = _native.Storage(64)
    good = (a, 0, (4, 1), F32)
    out = fresh((4, 4), "float32")
    calls: list[tuple[type[Exception], Callable[..., Any], tuple[Any, ...]]] = [
        (TypeError, _native.binary, (_native.ADD,)),
        (ValueError, _native.binary, (_native.EXP, *good, *good, *out, (4, 4), F32, 1)),
        (ValueError, _native.unary, (_native.ADD, *good, *out, (4, 4), F32)),
        (ValueError, _native.unary, (_native.EXP, *good, *out, (4, 4), 8)),
        (ValueError, _native.unary, (_native.EXP, *good, *out, (4, 4), 99)),
        (ValueError, _native.unary, (_native.EXP, a, 0, (1,), F32, *out, (4, 4), F32)),
        (TypeError, _native.unary, (_native.EXP, a, 0, [4, 1], F32, *out, (4, 4), F32)),
        (TypeError, _native.unary, (_native.EXP, "a", 0, (4, 1), F32, *out, (4, 4), F32)),
        (TypeError, _native.unary, (_native.EXP, *good, *out, (4, 4.5), F32)),
        (RuntimeError, _native.unary, (_native.EXP, *good, *out, (4, -4), F32)),
        (RuntimeError, _native.unary, (_native.EXP, *good, *out, (1 << 40, 1 << 40), F32)),
        (ValueError, _native.binary, (_native.MUL, *good, *good, *out, (4, 4), F32, 2)),
        (ValueError, _native.ternary, (_native.CLAMP, *good, None, *NUMBER, None, *NUMBER, *out, (4, 4), F32, 1)),
        (TypeError, _native.reduce, (_native.SUM, *good, *out, (4, 4), F32)),
        (TypeError, _native.copy, (*good, 3, 0, (4, 1), F32, (4, 4))),
        (RuntimeError, _native.unary, (_native.EXP, a, 0, (0,) * 129, F32, *out, (1,) * 129, F32)),
    ]
    for error, function, args in calls:
        with pytest.raises(error):
            function(*args)


def test_missing_combinations_name_operator_and_dtype() -> None:
    a = View(random((3,), "complex64"))
    with pytest.raises(NotImplementedError, match=r"\"floor\" not implemented for 'ComplexFloat'"):
        unary(_native.FLOOR, a, "complex64", "complex64")
    with pytest.raises(NotImplementedError, match="'Float'"):
        binary(_native.BITWISE_AND, View(random((3,))), View(random((3,))), "float32", "float32")


@pytest.mark.parametrize("op", ["FLOOR_DIV", "TRUNC_DIV", "REMAINDER", "FMOD"])
@pytest.mark.parametrize("name", ["uint8", "int8", "int32", "int64", "uint64"])
def test_integer_division_by_zero(op: str, name: str) -> None:
    ones, zeros = View(np.ones(3, name)), View(np.array([1, 0, 1], name))
    with pytest.raises(RuntimeError, match="^ZeroDivisionError$"):
        binary(getattr(_native, op), ones, zeros, name, name)
    with pytest.raises(RuntimeError, match="^ZeroDivisionError$"):
        binary(getattr(_native, op), ones, 0, name, name)


def test_stub_lists_what_the_module_has() -> None:
    package = Path(str(mindtorch_v2.__file__)).parent
    tree = ast.parse((package / "_native.pyi").read_text())
    listed = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    listed |= {
        node.target.id for node in tree.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    pointwise = {*UNARY, *BINARY, *TERNARY}  # the stub answers for all of them with `__getattr__`
    assert listed - {"__getattr__"} == {name for name in dir(_native) if not name.startswith("_")} - pointwise


# ---------------------------------------------------------------- values


def test_small_float_conversion_is_exhaustive() -> None:
    """Every bit pattern of the 8- and 16-bit floats to float32, and back."""
    for name in ("float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"):
        dtype = numpy_dtype(name)
        bits = np.arange(1 << (8 * dtype.itemsize), dtype=np.uint16 if dtype.itemsize == 2 else np.uint8)
        small = bits.view(dtype)
        source, target = View(small, name), View(np.zeros(bits.size, np.float32))
        _native.copy(*target.args(), *source.args(), (bits.size,))
        wide = array_of(target.storage, np.float32, (bits.size,))
        assert np.array_equal(wide, small.astype(np.float32), equal_nan=True)
        back = View(np.zeros(bits.size, dtype), name)
        _native.copy(*back.args(), *target.args(), (bits.size,))
        again = array_of(back.storage, dtype, (bits.size,)).astype(np.float32)
        assert np.array_equal(again, wide, equal_nan=True)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_rounding_to_small_floats(name: str) -> None:
    """Halfway cases, subnormals, overflow: as NumPy and ml_dtypes round."""
    rng = np.random.default_rng(0)
    halves = np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(name)).astype(np.float32)
    halves = halves[np.isfinite(halves)]
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.concatenate(
            [rng.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32), np.float32(2.0) ** np.arange(-40, 40),
             np.array([65504, 65519, 65520, 65536, np.inf, -np.inf, np.nan, 0.0, -0.0], np.float32),
             (halves[1:] + halves[:-1]) / 2]
        ).astype(np.float32)  # fmt: skip
    source, target = View(values), View(np.zeros(values.size, numpy_dtype(name)), name)
    _native.copy(*target.args(), *source.args(), (values.size,))
    got = array_of(target.storage, numpy_dtype(name), (values.size,)).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(numpy_dtype(name)).astype(np.float32)
    assert np.array_equal(got, expected, equal_nan=True)


def test_fill() -> None:
    for name in CODES:
        target = View(np.zeros((5, 6), numpy_dtype(name)), name)
        _native.fill(target.storage, 1, (6, 2), target.code, (5, 2), 3)
        got = array_of(target.storage, numpy_dtype(name), (5, 6))
        expected = np.zeros((5, 6), numpy_dtype(name))
        expected[:, 1:4:2] = 3
        assert np.array_equal(got.astype(np.complex128), expected.astype(np.complex128)), name
    target = View(np.zeros(3, np.complex64))
    _native.fill(*target.args(), (3,), 1 + 2j)
    assert array_of(target.storage, np.complex64, (3,)).tolist() == [1 + 2j] * 3
    target = View(np.zeros(3, np.uint64))
    _native.fill(*target.args(), (3,), 2**64 - 1)
    assert array_of(target.storage, np.uint64, (3,)).tolist() == [2**64 - 1] * 3
    with pytest.raises(OverflowError, match="int too big to convert"):
        _native.fill(*target.args(), (3,), 2**64)


def test_scalar_operands() -> None:
    a = View(random((4, 5)))
    values = a.array
    for number in (2, 2.5, True, np.float32(1.5), np.int64(3)):
        want = np.float32(number)
        assert np.array_equal(binary(_native.SUB, a, number, "float32", "float32"), values - want)
        assert np.array_equal(binary(_native.SUB, number, a, "float32", "float32"), want - values)
        assert np.array_equal(binary(_native.LT, number, a, "bool", "float32"), want < values)
    shape = (2, 3)
    both = _native.binary(_native.ADD, 1, *NUMBER, 2.5, *NUMBER, *fresh(shape, "float32"), shape, F32, 1)
    assert array_of(both, np.float32, shape).tolist() == [[3.5] * 3] * 2


def test_alpha() -> None:
    for name in ("float32", "float64", "float16", "int64", "uint8", "complex64"):
        a, b = View(random((50,), name)), View(random((50,), name, seed=1))
        two = a.array.dtype.type(2)
        plus = binary(_native.ADD, a, b, name, name, 2)
        minus = binary(_native.SUB, a, b, name, name, 2)
        assert np.allclose(plus, a.array + two * b.array, rtol=1e-2 if name == "float16" else 1e-6)
        assert np.allclose(minus, a.array - two * b.array, rtol=1e-2 if name == "float16" else 1e-6, atol=1e-2)


def test_mixed_dtypes_are_cast_on_load() -> None:
    a, b = View(random((10, 11), "int32")), View(random((11,), "float16", seed=1))
    assert np.array_equal(binary(_native.MUL, a, b, "float64", "float64"),
                          a.array.astype(np.float64) * b.array.astype(np.float64))  # fmt: skip
    # An operand of a wider float is rounded to the compute dtype first.
    wide = View(np.array([1.0 + 2**-12], np.float32))
    assert binary(_native.SUB, wide, 1.0, "float32", "float16")[0] == 0.0
    # Narrow integers wrap in the compute dtype, whatever the output is.
    narrow = View(np.array([200], np.uint8))
    assert binary(_native.ADD, narrow, narrow, "int32", "uint8")[0] == 144
    assert binary(_native.ADD, View(np.array([100], np.int8)), 100, "int32", "int8")[0] == -56


def test_bool_arithmetic_is_logic() -> None:
    a, b = View(np.array([True, True, False, False])), View(np.array([True, False, True, False]))
    for op, expected in (("ADD", [1, 1, 1, 0]), ("MUL", [1, 0, 0, 0]), ("BITWISE_XOR", [0, 1, 1, 0]),
                         ("BITWISE_AND", [1, 0, 0, 0]), ("MAXIMUM", [1, 1, 1, 0]), ("MINIMUM", [1, 0, 0, 0]),
                         ("EQ", [1, 0, 0, 1]), ("GT", [0, 1, 0, 0])):  # fmt: skip
        result = binary(getattr(_native, op), a, b, "bool", "bool")
        assert result.view(np.uint8).tolist() == expected, op
    assert unary(_native.BITWISE_NOT, a, "bool", "bool").tolist() == [False, False, True, True]
    assert binary(_native.ADD, a, b, "bool", "bool", False).tolist() == a.array.tolist()


def test_where() -> None:
    shape = (37, 65)
    condition = random(shape) > 0
    for name in CODES:
        dtype = numpy_dtype(name)
        a, b = random(shape, "float32").astype(dtype), random(shape, "float32", 1).astype(dtype)
        result = ternary(_native.WHERE, View(condition), View(a, name), View(b, name), name, name)
        expected = np.where(condition, a, b)
        assert np.array_equal(result.view(np.uint8), expected.view(np.uint8)), name
    some = View(random((65,)))
    result = ternary(_native.WHERE, View(condition), some, 2, "float32", "float32")
    assert np.array_equal(result, np.where(condition, some.array, np.float32(2)))


def test_ternary_arithmetic() -> None:
    a, b, c = (View(random((20, 30), "float64", seed)) for seed in range(3))
    x, y, z = a.array, b.array, c.array
    kind = ("float64", "float64")
    assert np.allclose(ternary(_native.ADDCMUL, a, b, c, *kind, 0.5), x + 0.5 * y * z, rtol=1e-14)
    assert np.allclose(ternary(_native.ADDCDIV, a, b, c, *kind, 0.5), x + 0.5 * y / z, rtol=1e-14)
    assert np.allclose(ternary(_native.LERP, a, b, c, *kind), x + z * (y - x), rtol=1e-10)
    assert np.array_equal(ternary(_native.LERP, a, b, 1, *kind), y)
    assert np.array_equal(ternary(_native.CLAMP, a, -1, 1, *kind), np.clip(x, -1, 1))
    assert np.array_equal(ternary(_native.CLAMP, a, None, 1, *kind), np.minimum(x, 1))
    assert np.array_equal(ternary(_native.CLAMP, a, b, None, *kind), np.maximum(x, y))
    assert np.array_equal(ternary(_native.CLAMP, a, 2, -2, *kind), np.full_like(x, -2))
    nan = View(np.array([math.nan, 1.0]))
    assert np.array_equal(ternary(_native.CLAMP, nan, 0, 1, *kind), nan.array, equal_nan=True)
    assert np.isnan(ternary(_native.CLAMP, View(np.zeros(2)), nan, 5, *kind)).tolist() == [True, False]
    wrapped = ternary(_native.ADDCMUL, *(View(np.array([2**40], np.int64)),) * 3, "int64", "int64", 3)
    assert wrapped[0] == 2**40  # the product wraps to zero


def test_threshold_backward() -> None:
    g, x = View(random((100,))), View(random((100,), seed=1))
    for limit in (0, 1, 0.5):
        result = binary(_native.THRESHOLD_BACKWARD, g, x, "float32", "float32", limit)
        assert np.array_equal(result, np.where(x.array > limit, g.array, 0))


NUMPY_UNARY = {
    "NEG": np.negative, "ABS": np.abs, "SQRT": np.sqrt, "SQUARE": np.square, "EXP": np.exp, "EXP2": np.exp2,
    "EXPM1": np.expm1, "LOG": np.log, "LOG2": np.log2, "LOG10": np.log10, "LOG1P": np.log1p, "SIN": np.sin,
    "COS": np.cos, "TAN": np.tan, "ASIN": np.arcsin, "ACOS": np.arccos, "ATAN": np.arctan, "SINH": np.sinh,
    "COSH": np.cosh, "TANH": np.tanh, "ASINH": np.arcsinh, "ACOSH": np.arccosh, "ATANH": np.arctanh, "FLOOR": np.floor,
    "CEIL": np.ceil, "ROUND": np.rint, "TRUNC": np.trunc, "RECIPROCAL": np.reciprocal,
    "ISNAN": np.isnan, "ISINF": np.isinf, "ISFINITE": np.isfinite, "SIGNBIT": np.signbit,
    "LOGICAL_NOT": np.logical_not, "POSITIVE": np.positive,
}  # fmt: skip


def samples(name: str) -> Any:
    rng = np.random.default_rng(0)
    spread = 10.0 ** rng.uniform(-35, 35, 500)
    values = np.concatenate([SPECIAL, rng.standard_normal(1000) * 3, rng.uniform(-1, 1, 1000), spread, -spread])
    with np.errstate(over="ignore"):
        return values.astype(numpy_dtype(name))


@pytest.mark.parametrize("op", sorted(NUMPY_UNARY))
def test_unary_values(op: str) -> None:
    function = NUMPY_UNARY[op]
    for name, rtol in (("float32", 2.5e-7), ("float64", 5e-15)):
        values = samples(name)
        with np.errstate(all="ignore"):
            expected = function(values.astype(np.float64)).astype(np.bool_ if op[:2] == "IS" else numpy_dtype(name))
            out = "bool" if function(values[:1]).dtype == np.bool_ else name
        result = unary(getattr(_native, op), View(values), out, name)
        tiny = 1e-44 if name == "float32" else 1e-300
        assert np.allclose(result, expected, rtol=rtol, atol=tiny, equal_nan=True), op
        if out != "bool":
            zero = (expected == 0) & (values == 0)
            assert np.array_equal(np.signbit(result[zero]), np.signbit(expected[zero])), op


@pytest.mark.parametrize("size", [1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 1023, 1025])
def test_tails_of_vector_loops(size: int) -> None:
    a, b = View(random((size,))), View(random((size,), seed=1))
    assert np.array_equal(binary(_native.ADD, a, b, "float32", "float32"), a.array + b.array)
    assert np.array_equal(binary(_native.LT, a, b, "bool", "float32"), a.array < b.array)
    assert np.allclose(unary(_native.EXP, a, "float32", "float32"), np.exp(a.array), rtol=3e-7)
    total = reduce(_native.SUM, a, (0,), "float32", "float32")[0]
    assert np.isclose(total, a.array.sum(dtype=np.float64), rtol=1e-6, atol=1e-6)
    assert reduce(_native.ARGMAX, a, (0,), "int64", "float32")[0] == a.array.argmax()
    assert reduce(_native.AMIN, a, (0,), "float32", "float32")[0] == a.array.min()
