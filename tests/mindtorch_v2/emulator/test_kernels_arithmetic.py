"""The emulator's functions of several operands against PyTorch: arithmetic, comparisons, logic, bits, choices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import Out, Scalar, assert_same, call, refused
from ._pointwise import FLOATS, INTEGERS, SHAPE, Case, parameters, run, sample, widened

NONZERO = ((-3.0, 3.0), (1.0, 4.0))
POSITIVE = ((0.2, 3.0),)
BROADCAST = (SHAPE, (4,))
WHOLE = ("int8", "int16", "int32", "int64", "uint8")


def floor_mod(t: Any, x: Any, y: Any) -> Any:
    return t.remainder(x, y)


ARITHMETIC = [
    Case("aclnnAdd", lambda t, x, y: x + 2 * y, numbers={"alpha": 2}, shapes=BROADCAST),
    Case("aclnnAdds", lambda t, x: x + 2 * 3, numbers={"other": 3, "alpha": 2}, dtypes=(*FLOATS, "int8", "int64")),
    Case(
        "aclnnSub",
        lambda t, x, y: x - 2 * y,
        numbers={"alpha": 2},
        shapes=BROADCAST,
        dtypes=(*FLOATS, *WHOLE, "complex64", "complex128"),
    ),
    Case("aclnnSub", lambda t, x, y: x - y, numbers={"alpha": 1}, dtypes=("bool",)),
    Case("aclnnSubs", lambda t, x: x - 2 * 3, numbers={"other": 3, "alpha": 2}, dtypes=(*FLOATS, "int8", "int64")),
    Case("aclnnRsub", lambda t, x, y: y - 2 * x, numbers={"alpha": 2}, shapes=BROADCAST),
    Case("aclnnRsubs", lambda t, x: 3 - 2 * x, numbers={"other": 3, "alpha": 2}),
    Case("aclnnAddRelu", lambda t, x, y: (x + 2 * y).clamp(min=0), numbers={"alpha": 2}, shapes=BROADCAST),
    Case("aclnnAddV3", lambda t, y: 3 + 2 * y, numbers={"self": Scalar(3, "int32"), "alpha": Scalar(2, "int32")}),
    Case("aclnnMul", lambda t, x, y: x * y, shapes=BROADCAST),
    Case("aclnnMuls", lambda t, x: x * 3, numbers={"other": 3}, dtypes=(*FLOATS, "int8", "int64", "complex64")),
    Case("aclnnAddcmul", lambda t, x, y, z: x + 2 * y * z, numbers={"value": 2}, shapes=(SHAPE, (4,), (3, 1))),
    Case(
        "aclnnAddcdiv",
        lambda t, x, y, z: x + 2 * y / z,
        ((-3, 3), (-3, 3), (1, 4)),
        numbers={"value": 2},
        shapes=(SHAPE, (4,), (3, 1)),
        dtypes=FLOATS,
    ),
    Case("aclnnLerp", lambda t, x, y, w: x + w * (y - x), shapes=(SHAPE, (4,), (3, 1))),
    Case("aclnnLerps", lambda t, x, y: x + 0.75 * (y - x), numbers={"weight": 0.75}, shapes=BROADCAST),
    Case("aclnnAxpyV2", lambda t, x, y, a: x + a * y),
    Case("aclnnDiv", lambda t, x, y: x / y, NONZERO, gives="float", shapes=BROADCAST),
    Case("aclnnDivs", lambda t, x: x / 4, numbers={"other": 4}, gives="float"),
    Case("aclnnRealDiv", lambda t, x, y: x / y, NONZERO, gives="float", dtypes=("float32", "int32")),
    Case("aclnnDivMod", lambda t, x, y: x / y, NONZERO, numbers={"mode": 0}, gives="float"),
    Case(
        "aclnnDivMod",
        lambda t, x, y: t.div(x, y, rounding_mode="trunc"),
        NONZERO,
        numbers={"mode": 1},
        dtypes=("float32", "float16", "int32", "int64", "int8", "uint8"),
    ),
    Case(
        "aclnnDivMod",
        lambda t, x, y: t.div(x, y, rounding_mode="floor"),
        NONZERO,
        numbers={"mode": 2},
        dtypes=("float32", "float16", "int32", "int64", "int8", "uint8"),
    ),
    Case(
        "aclnnDivMods",
        lambda t, x: t.div(x, 2, rounding_mode="floor"),
        numbers={"other": 2, "mode": 2},
        dtypes=("float32", "float16", "int32", "int64", "int8", "uint8"),
    ),
    Case("aclnnDivV3", lambda t, x, y: t.div(x, y, rounding_mode="trunc"), NONZERO, numbers={"mode": 1}),
    Case("aclnnFloorDivide", lambda t, x, y: x // y, NONZERO, dtypes=("float32", "float16", "float64", *WHOLE)),
    Case("aclnnFloorDivides", lambda t, x: x // 2, numbers={"other": 2}, dtypes=("float32", "float16", *WHOLE)),
    Case("aclnnFloorDiv", lambda t, x, y: x // y, NONZERO),
    Case("aclnnTruncateDiv", lambda t, x, y: t.div(x, y, rounding_mode="trunc"), NONZERO),
    Case("aclnnTruncateMod", lambda t, x, y: t.fmod(x, y), NONZERO),
    Case("aclnnFmodTensor", lambda t, x, y: t.fmod(x, y), NONZERO, shapes=BROADCAST),
    Case("aclnnFmodScalar", lambda t, x: t.fmod(x, 2), numbers={"other": 2}),
    Case("aclnnRemainderTensorTensor", floor_mod, NONZERO, shapes=BROADCAST, dtypes=("float32", "float16", "int32")),
    Case("aclnnRemainderTensorScalar", lambda t, x: t.remainder(x, -2), numbers={"other": -2}),
    Case(
        "aclnnRemainderScalarTensor",
        lambda t, y: t.remainder(t.tensor(7, dtype=y.dtype), y),
        ((1, 4),),
        numbers={"self": 7},
    ),
    Case("aclnnGcd", lambda t, x, y: t.gcd(x, y), ((-12, 12),), shapes=BROADCAST),
    Case(
        "aclnnPowTensorTensor",
        lambda t, x, y: x**y,
        POSITIVE,
        shapes=BROADCAST,
        dtypes=("float32", "float16", "bfloat16", "float64", "int32", "int64", "int8", "uint8", "complex64"),
    ),
    Case(
        "aclnnPowTensorScalar",
        lambda t, x: x**3,
        numbers={"exponent": 3},
        dtypes=("float32", "float16", "bfloat16", "float64", "int32", "int64", "int8", "uint8", "complex64"),
    ),
    Case("aclnnPowScalarTensor", lambda t, y: t.tensor(2, dtype=y.dtype) ** y, ((0, 3),), numbers={"self": 2}),
    Case("aclnnAtan2", lambda t, x, y: t.atan2(x, y), NONZERO, gives="float", shapes=BROADCAST),
    Case("aclnnXLogYTensor", lambda t, x, y: t.xlogy(x, y), POSITIVE, shapes=BROADCAST),
    Case("aclnnXLogYScalarOther", lambda t, x: t.xlogy(x, 2.5), numbers={"other": 2.5}),
    Case("aclnnXLogYScalarSelf", lambda t, y: t.xlogy(2.5, y), POSITIVE, numbers={"self": 2.5}),
    Case("aclnnXlog1py", lambda t, x, y: t.special.xlog1py(x, y), POSITIVE),
    Case(
        "aclnnLogAddExp",
        lambda t, x, y: t.logaddexp(x.double(), y.double()),
        gives="float",
        shapes=BROADCAST,
        dtypes=("float32", "float16", "bfloat16", "int32"),
    ),
    Case(
        "aclnnLogAddExp2",
        lambda t, x, y: t.logaddexp2(x.double(), y.double()),
        gives="float",
        shapes=BROADCAST,
        dtypes=("float32", "float16", "bfloat16", "int32"),
    ),
    Case("aclnnMulNoNan", lambda t, x, y: x * y),
    Case("aclnnHeaviside", lambda t, x, y: t.heaviside(x, y)),
]

COMPARISONS = [
    *[
        Case(f"aclnn{name}Tensor", formula, ((-2, 2),), gives="bool", shapes=BROADCAST)
        for name, formula in {
            "Eq": lambda t, x, y: x == y,
            "Ne": lambda t, x, y: x != y,
            "Lt": lambda t, x, y: x < y,
            "Le": lambda t, x, y: x <= y,
            "Gt": lambda t, x, y: x > y,
            "Ge": lambda t, x, y: x >= y,
        }.items()
    ],
    *[
        Case(f"aclnn{name}Scalar", formula, ((-2, 2),), numbers={"other": 1}, gives="bool")
        for name, formula in {
            "Eq": lambda t, x: x == 1,
            "Ne": lambda t, x: x != 1,
            "Lt": lambda t, x: x < 1,
            "Le": lambda t, x: x <= 1,
            "Gt": lambda t, x: x > 1,
            "Ge": lambda t, x: x >= 1,
        }.items()
    ],
    Case("aclnnLogicalAnd", lambda t, x, y: t.logical_and(x, y), ((-1, 1),), gives="bool", shapes=BROADCAST),
    Case("aclnnLogicalOr", lambda t, x, y: t.logical_or(x, y), ((-1, 1),), gives="bool", shapes=BROADCAST),
    Case("aclnnLogicalXor", lambda t, x, y: t.logical_xor(x, y), ((-1, 1),), gives="bool", shapes=BROADCAST),
    Case("aclnnLogicalNot", lambda t, x: t.logical_not(x), ((-1, 1),), gives="bool"),
    Case("aclnnBitwiseAndTensor", lambda t, x, y: x & y, ((-9, 9),), shapes=BROADCAST),
    Case("aclnnBitwiseAndTensorOut", lambda t, x, y: x & y, ((-9, 9),), shapes=BROADCAST),
    Case("aclnnBitwiseOrTensor", lambda t, x, y: x | y, ((-9, 9),), shapes=BROADCAST),
    Case("aclnnBitwiseXorTensor", lambda t, x, y: x ^ y, ((-9, 9),), shapes=BROADCAST),
    Case("aclnnBitwiseAndScalar", lambda t, x: x & 5, ((-9, 9),), numbers={"other": 5}, dtypes=WHOLE),
    Case("aclnnBitwiseOrScalar", lambda t, x: x | 5, ((-9, 9),), numbers={"other": 5}, dtypes=WHOLE),
    Case("aclnnBitwiseXorScalar", lambda t, x: x ^ 5, ((-9, 9),), numbers={"other": 5}, dtypes=WHOLE),
    Case("aclnnBitwiseNot", lambda t, x: ~x, ((-9, 9),), dtypes=WHOLE),
    Case("aclnnBitwiseNot", lambda t, x: x == 0, dtypes=("bool",)),
    Case("aclnnLeftShift", lambda t, x, y: x << y, ((-9, 9), (0, 6)), shapes=BROADCAST),
    Case("aclnnLeftShifts", lambda t, x: x << 3, ((-9, 9),), numbers={"shiftBits": 3}),
    Case("aclnnRightShift", lambda t, x, y: x >> y, ((-9, 9), (0, 6)), shapes=BROADCAST),
    Case("aclnnSignbit", lambda t, x: t.signbit(x), gives="bool"),
    Case("aclnnMaximum", lambda t, x, y: t.maximum(x, y), shapes=BROADCAST),
    Case("aclnnMinimum", lambda t, x, y: t.minimum(x, y), shapes=BROADCAST),
    Case("aclnnClampMin", lambda t, x: x.clamp(min=1), numbers={"clipValueMin": 1}),
    Case("aclnnClampMax", lambda t, x: x.clamp(max=1), numbers={"clipValueMax": 1}),
    Case("aclnnClampMinTensor", lambda t, x, y: t.maximum(x, y), shapes=BROADCAST),
    Case("aclnnClampMaxTensor", lambda t, x, y: t.minimum(x, y), shapes=BROADCAST),
    Case(
        "aclnnClampTensor",
        lambda t, x, low, high: x.clamp(low, high),
        ((-3, 3), (-2, 0), (0, 2)),
        shapes=(SHAPE, (4,), (3, 1)),
    ),
    Case("aclnnClamp", lambda t, x: x.clamp(1, 2), numbers={"clipValueMin": 1, "clipValueMax": 2}),
    Case("aclnnClamp", lambda t, x: x.clamp(max=2), numbers={"clipValueMax": 2}),
    Case(
        "aclnnHardtanh",
        lambda t, x: x.clamp(-1, 2),
        numbers={"clipValueMin": -1, "clipValueMax": 2},
        dtypes=(*FLOATS, "int8", "int64"),
    ),
]


@pytest.mark.oracle
@pytest.mark.parametrize("case, name, dtype", parameters(ARITHMETIC))
def test_arithmetic(case: Case, name: str, dtype: str) -> None:
    run(case, name, dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("case, name, dtype", parameters(COMPARISONS))
def test_comparison(case: Case, name: str, dtype: str) -> None:
    run(case, name, dtype)


PROMOTED = [
    ("float32", "int64", "float32"),
    ("float16", "float32", "float32"),
    ("float16", "bfloat16", "float32"),
    ("int8", "uint8", "int16"),
    ("bool", "int32", "int32"),
    ("int32", "int64", "int64"),
    ("uint8", "bool", "uint8"),
    ("float64", "complex64", "complex128"),
    ("int32", "bfloat16", "bfloat16"),
]


@pytest.mark.oracle
@pytest.mark.parametrize("left, right, result", PROMOTED)
def test_tensors_promote_each_other(oracle: Any, left: str, right: str, result: str) -> None:
    x, y = sample(left, (-5, 5), SHAPE, 1), sample(right, (-5, 5), (4,), 2)
    kind = getattr(oracle, result)
    assert oracle.promote_types(x.dtype, y.dtype) == kind
    want = (widened(x) + widened(y)).to(kind)
    assert_same(call("aclnnAdd", self=x, other=y, alpha=1, out=Out(SHAPE, result)), want)


SCALARS = [
    ("float16", 2.5, "float16"),
    ("int8", 2.5, "float32"),
    ("int8", 3, "int8"),
    ("bool", 3, "int64"),
    ("bool", 2.5, "float32"),
    ("float32", 1j, "complex64"),
    ("float64", 1j, "complex128"),
]


@pytest.mark.oracle
@pytest.mark.parametrize("dtype, scalar, result", SCALARS)
def test_a_scalar_does_not_widen_within_its_category(oracle: Any, dtype: str, scalar: Any, result: str) -> None:
    x = sample(dtype, (-5, 5), SHAPE, 1)
    want = widened(x) + scalar
    assert_same(
        call("aclnnAdds", self=x, other=scalar, alpha=1, out=Out(SHAPE, result)), want.to(getattr(oracle, result))
    )


@pytest.mark.oracle
def test_a_scalar_is_compared_as_the_tensor_holds_it(oracle: Any) -> None:
    for dtype in ("float32", "float16", "bfloat16"):
        x = oracle.tensor([0.1, 0.2], dtype=getattr(oracle, dtype))
        assert call("aclnnEqScalar", self=x, other=0.1, out=Out((2,), "bool")).tolist() == [True, False]


def test_integers_are_exact_and_wrap() -> None:
    big = np.array([2**62, -(2**53) - 1], np.int64)
    assert call("aclnnAdd", self=big, other=big, alpha=1, out=Out((2,), "int64")).tolist() == [-(2**63), -(2**54) - 2]
    narrow = np.array([127, -128], np.int8)
    assert call("aclnnAdds", self=narrow, other=1, alpha=1, out=Out((2,), "int8")).tolist() == [-128, -127]
    zero = np.array([0, 0], np.int64)
    assert call("aclnnRemainderTensorTensor", self=big, other=zero, out=Out((2,), "int64")).tolist() == big.tolist()
    assert call("aclnnFloorDivide", self=big, other=zero, out=Out((2,), "int64")).tolist() == [0, 0]
    least = np.array([-(2**63)], np.int64)
    minus = np.array([-1], np.int64)
    assert call("aclnnFloorDivide", self=least, other=minus, out=Out((1,), "int64")).tolist() == least.tolist()
    assert call(
        "aclnnPowTensorTensor", self=np.array([3, -1, 2]), exponent=np.array([-1, -3, 5]), out=Out((3,), "int64")
    ).tolist() == [0, -1, 32]


def test_unsigned_numbers_are_not_negative() -> None:
    x, y = np.array([2**63 + 1, 5], np.uint64), np.array([5, 2**63 + 1], np.uint64)
    assert call("aclnnGtTensor", self=x, other=y, out=Out((2,), "bool")).tolist() == [True, False]
    assert call("aclnnSignbit", self=x, out=Out((2,), "bool")).tolist() == [False, False]
    one = np.ones(2, np.uint64)
    assert call("aclnnRightShift", input=x, shiftBits=one, out=Out((2,), "uint64")).tolist() == [2**62, 2]
    assert call("aclnnCast", self=x, dtype="float32", out=Out((2,))).tolist() == [2.0**63, 5]


def test_not_a_number() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1, -0.0], np.float32)
    true = {"IsFinite": [3, 4], "IsInf": [1, 2], "IsPosInf": [1], "IsNegInf": [2], "Signbit": [2, 4]}
    for name, where in true.items():
        parameter = "x" if name == "IsInf" else "self"
        got = call(f"aclnn{name}", **{parameter: x}, out=Out((5,), "bool"))
        assert np.flatnonzero(got[1 if name == "Signbit" else 0 :]).tolist() == (
            [i - 1 for i in where] if name == "Signbit" else where
        ), name
    assert call("aclnnNanToNum", self=x, nan=5, posinf=6, neginf=7, out=Out((5,))).tolist() == [5, 6, 7, 1, 0]
    one = np.ones(5, np.float32)
    for name in ("Maximum", "Minimum"):
        assert np.isnan(call(f"aclnn{name}", self=x, other=one, out=Out((5,)))[0])
        assert np.isnan(call(f"aclnn{name}", self=one, other=x, out=Out((5,)))[0])
    assert np.isnan(call("aclnnRelu", self=x, out=Out((5,)))[0])


@pytest.mark.oracle
@pytest.mark.parametrize("equal_nan", [False, True])
def test_is_close(oracle: Any, equal_nan: bool) -> None:
    x = oracle.tensor([1, 1, float("nan"), float("inf"), float("inf")])
    y = oracle.tensor([1.0005, 1.1, float("nan"), float("inf"), 3])
    want = oracle.isclose(x, y, rtol=1e-3, atol=1e-5, equal_nan=equal_nan)
    numbers = {"rtol": 1e-3, "atol": 1e-5, "equalNan": equal_nan}
    assert_same(call("aclnnIsClose", self=x, other=y, **numbers, out=Out((5,), "bool")), want)
    whole = np.array([100, 100, 5], np.int64)
    other = np.array([101, 90, 5], np.int64)
    assert call(
        "aclnnIsClose", self=whole, other=other, rtol=0.05, atol=0, equalNan=equal_nan, out=Out((3,), "bool")
    ).tolist() == [True, False, True]
    assert refused("aclnnIsClose", self=x, other=y.double(), **numbers, out=Out((5,), "bool")) == 161002


def test_equal() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for other, same in ((x, True), (x + 1, False), (x.reshape(3, 2), False), (np.asfortranarray(x), True)):
        assert call("aclnnEqual", self=x, other=other, out=Out((1,), "bool")).tolist() == [same]


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "complex64"])
def test_where(oracle: Any, dtype: str) -> None:
    condition = sample("bool", (0, 1), (3, 1), 1)
    x, y = sample(dtype, (-5, 5), SHAPE, 2), sample(dtype, (-5, 5), (4,), 3)
    assert_same(
        call("aclnnSWhere", condition=condition, self=x, other=y, out=Out(SHAPE, dtype)), oracle.where(condition, x, y)
    )


@pytest.mark.oracle
def test_where_promotes(oracle: Any) -> None:
    condition, x = sample("bool", (0, 1), SHAPE, 1), sample("int32", (-5, 5), SHAPE, 2)
    y = sample("float32", (-5, 5), (), 4)
    assert_same(
        call("aclnnSWhere", condition=condition, self=x, other=y, out=Out(SHAPE)), oracle.where(condition, x.float(), y)
    )
    assert refused("aclnnSWhere", condition=x, self=x, other=y, out=Out(SHAPE)) == 161002


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "int32", "int64", "bool"])
def test_masked_fill(oracle: Any, dtype: str) -> None:
    x, mask = sample(dtype, (-5, 5), SHAPE, 1), sample("bool", (0, 1), (4,), 2)
    value: Any = True if dtype == "bool" else 3
    want = x.masked_fill(mask, value)
    assert_same(call("aclnnInplaceMaskedFillScalar", selfRef=x, mask=mask, value=value), want)
    tensor = oracle.tensor(value, dtype=x.dtype)
    assert_same(call("aclnnInplaceMaskedFillTensor", selfRef=x, mask=mask, value=tensor), want)


def test_refusals() -> None:
    x = np.ones((2, 3), np.float32)
    bad = np.ones((2, 2), np.float32)
    out = Out((2, 3))
    assert refused("aclnnAdd", self=x, other=bad, alpha=1, out=out) == 161002
    assert refused("aclnnAdd", self=x, other=x, alpha=None, out=out) == 161001
    assert refused("aclnnAdd", self=x, other=x, alpha=1, out=Out((2, 3), "bool")) == 161002
    assert refused("aclnnInplaceAdd", selfRef=x[0], other=x, alpha=1) == 161002  # selfRef is never expanded
    assert refused("aclnnDivMod", self=x, other=x, mode=3, out=out) == 161002
    whole = np.ones((2, 3), np.int32)
    assert refused("aclnnInplaceDiv", selfRef=whole.astype(bool), other=whole) == 161002
    assert refused("aclnnPowTensorScalar", self=whole, exponent=-1, out=Out((2, 3), "int32")) == 161002
    flags = whole.astype(bool)
    assert refused("aclnnPowTensorTensor", self=flags, exponent=flags, out=Out((2, 3), "bool")) == 161002
    assert refused("aclnnClamp", self=x, clipValueMin=None, clipValueMax=None, out=out) == 161001
    assert refused("aclnnLerp", self=x, end=x, weight=x.astype(np.float16), out=out) == 161002
    assert refused("aclnnInplaceMaskedFillScalar", selfRef=x[0], mask=flags, value=1.0) == 161002
    assert refused("aclnnMaximum", self=x, other=x, out=None) == 161001
