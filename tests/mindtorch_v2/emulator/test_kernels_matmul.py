"""The emulator's products of matrices against PyTorch, and what the matrix unit of each chip refuses or rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ._cases import FLOATS, INTS, Built, Case, Maker, each, run  # noqa: E402
from ._chips import on_chip  # noqa: E402
from ._kernels import Out, assert_same, call, refused  # noqa: E402

pytestmark = pytest.mark.oracle
KEEP, DOWN, HALF, HF32 = 0, 1, 2, 3


def wide(x: Any) -> Any:
    return x.double() if x.is_floating_point() else x


def product(name: str, a: tuple[int, ...], b: tuple[int, ...], first: str = "self", second: str = "mat2") -> Case:
    def build(t: Maker) -> Built:
        x, y = t(*a), t(*b)
        return {first: x, second: y, "cubeMathType": KEEP}, {"out": (wide(x) @ wide(y)).to(x.dtype)}

    return Case(name, FLOATS, build)


def added(
    name: str,
    f: str,
    self: tuple[int, ...],
    a: tuple[int, ...],
    b: tuple[int, ...],
    names: tuple[str, str] = ("mat1", "mat2"),
    dtypes: tuple[str, ...] = FLOATS,
    beta: Any = 0.5,
    alpha: Any = 2.0,
) -> Case:
    target = "selfRef" if "Inplace" in name else "self"

    def build(t: Maker) -> Built:
        s, x, y = t(*self), t(*a), t(*b)
        want = getattr(torch, f)(wide(s), wide(x), wide(y), beta=beta, alpha=alpha).to(s.dtype)
        given = {target: s, names[0]: x, names[1]: y, "beta": beta, "alpha": alpha, "cubeMathType": KEEP}
        return given, {target if target == "selfRef" else "out": want}

    return Case(name, dtypes, build)


def addr(name: str) -> Case:
    def build(t: Maker) -> Built:
        s, x, y = t(3, 4), t(3), t(4)
        beta, alpha = (0.5, 2.0) if t.inexact else (3, 2)
        want = torch.addr(wide(s), wide(x), wide(y), beta=beta, alpha=alpha).to(s.dtype)
        target = "selfRef" if "Inplace" in name else "self"
        return (
            {target: s, "vec1": x, "vec2": y, "betaOptional": beta, "alphaOptional": alpha},
            {target if target == "selfRef" else "out": want},
        )

    return Case(name, (*FLOATS, *INTS), build)


def gemm(transposed: int) -> Case:
    def build(t: Maker) -> Built:
        a, b, c = t(4, 3) if transposed else t(3, 4), t(5, 4) if transposed else t(4, 5), t(3, 5)
        x, y = (wide(a).t(), wide(b).t()) if transposed else (wide(a), wide(b))
        want = (0.5 * (x @ y) + 2 * wide(c)).to(a.dtype)
        return {
            "A": a,
            "B": b,
            "C": c,
            "alpha": 0.5,
            "beta": 2.0,
            "transA": transposed,
            "transB": transposed,
            "cubeMathType": KEEP,
        }, {"out": want}

    return Case("aclnnGemm", FLOATS, build)


def einsum(equation: str, *shapes: tuple[int, ...]) -> Case:
    def build(t: Maker) -> Built:
        x = [t(*shape) for shape in shapes]
        return {"tensors": x, "equation": equation}, {"output": torch.einsum(equation, *map(wide, x)).to(x[0].dtype)}

    return Case("aclnnEinsum", ("float32", "float16", "int32", "int64"), build)


def transposed_batch() -> Case:
    def build(t: Maker) -> Built:
        a, b = t(3, 2, 4), t(2, 4, 5)
        want = (wide(a).permute(1, 0, 2) @ wide(b)).permute(1, 0, 2).to(a.dtype).contiguous()
        return {
            "x1": a,
            "x2": b,
            "bias": None,
            "scale": None,
            "permX1": [1, 0, 2],
            "permX2": [0, 1, 2],
            "permY": [1, 0, 2],
            "cubeMathType": KEEP,
            "batchSplitFactor": 1,
        }, {"out": want}

    return Case("aclnnTransposeBatchMatMul", FLOATS, build)


CASES = [
    product("aclnnMm", (3, 4), (4, 5)),
    product("aclnnMm", (3, 0), (0, 5)),
    product("aclnnMatmul", (4,), (4,)),
    product("aclnnMatmul", (3, 4), (4,)),
    product("aclnnMatmul", (4,), (2, 4, 5)),
    product("aclnnMatmul", (2, 1, 3, 4), (6, 4, 5)),
    product("aclnnBatchMatMul", (2, 3, 4), (2, 4, 5)),
    product("aclnnMv", (3, 4), (4,), second="vec"),
    added("aclnnAddmm", "addmm", (3, 5), (3, 4), (4, 5)),
    added("aclnnAddmm", "addmm", (5,), (3, 4), (4, 5), beta=1, alpha=1),
    added("aclnnInplaceAddmm", "addmm", (3, 5), (3, 4), (4, 5)),
    added("aclnnBaddbmm", "baddbmm", (2, 3, 5), (2, 3, 4), (2, 4, 5), ("batch1", "batch2")),
    added("aclnnInplaceBaddbmm", "baddbmm", (2, 3, 5), (2, 3, 4), (2, 4, 5), ("batch1", "batch2")),
    added("aclnnAddbmm", "addbmm", (3, 5), (2, 3, 4), (2, 4, 5), ("batch1", "batch2")),
    added("aclnnInplaceAddbmm", "addbmm", (3, 5), (2, 3, 4), (2, 4, 5), ("batch1", "batch2")),
    added("aclnnAddmv", "addmv", (3,), (3, 4), (4,), ("mat", "vec"), (*FLOATS, "float64")),
    added("aclnnAddmv", "addmv", (3,), (3, 4), (4,), ("mat", "vec"), INTS, beta=3, alpha=2),
    addr("aclnnAddr"),
    addr("aclnnInplaceAddr"),
    gemm(0),
    gemm(1),
    Case(
        "aclnnGer",
        ("float32", "float16", "float64", "int64", "uint8", "complex64"),
        lambda t: ({"self": (x := t(3)), "vec2": (y := t(4))}, {"out": torch.outer(x, y)}),
    ),
    Case(
        "aclnnDot",
        (*FLOATS, "int32", "uint8"),
        lambda t: ({"self": (x := t(5)), "tensor": (y := t(5))}, {"out": (wide(x) * wide(y)).sum().to(x.dtype)}),
    ),
    einsum("a,b->ab", (3,), (4,)),
    einsum("abcd,abced->abce", (2, 3, 4, 5), (2, 3, 4, 6, 5)),
    transposed_batch(),
]


@each(CASES)
def test_values(case: Case, dtype: str, layout: str) -> None:
    run(case, dtype, layout)


def test_self_that_beta_ignores_may_be_nan() -> None:
    nan = np.full((2, 2), np.nan, "float32")
    got = call(
        "aclnnAddmm",
        self=nan,
        mat1=torch.eye(2),
        mat2=torch.eye(2),
        beta=0,
        alpha=1,
        out=Out((2, 2)),
        cubeMathType=KEEP,
    )
    assert_same(got, torch.eye(2))


def mm(dtype: str, math: int) -> dict[str, Any]:
    x = torch.ones(2, 2, dtype=getattr(torch, dtype))
    return {"self": x, "mat2": x, "out": Out((2, 2), dtype), "cubeMathType": math}


def check_rounding(math: int, digits: int) -> None:
    """Operands have `digits` binary digits; ties go to even."""
    x = 1 + 3 * 2.0 ** -(np.arange(9, 17).reshape(2, 4))
    mantissa, exponent = np.frexp(x)
    want = np.ldexp(np.round(mantissa * 2.0**digits) / 2.0**digits, exponent).astype("float32")
    got = call("aclnnMm", self=x.astype("float32"), mat2=np.eye(4, dtype="float32"), out=Out((2, 4)), cubeMathType=math)
    np.testing.assert_array_equal(got, want)


def without_float_unit() -> None:
    for dtype, math in (("float32", KEEP), ("float32", HF32), ("bfloat16", KEEP)):
        assert refused("aclnnMm", **mm(dtype, math)) == 161002, (dtype, math)
    check_rounding(DOWN, 11)
    check_rounding(HALF, 11)
    assert_same(call("aclnnMm", **mm("float16", KEEP)), torch.full((2, 2), 2.0, dtype=torch.float16))


@pytest.mark.parametrize("chip", ["910A", "310P", "310B"])
def test_chips_without_a_float_unit(chip: str) -> None:
    on_chip(chip, without_float_unit)


@pytest.mark.parametrize(("dtype", "math"), [("bfloat16", HALF), ("float16", HF32), ("float32", 5)])
def test_the_unit_refuses(dtype: str, math: int) -> None:
    assert refused("aclnnMm", **mm(dtype, math)) == 161002


@pytest.mark.parametrize(("math", "digits"), [(KEEP, 24), (DOWN, 12), (HF32, 12), (HALF, 11)])
def test_the_unit_rounds_its_operands(math: int, digits: int) -> None:
    check_rounding(math, digits)


X, Y = torch.ones(2, 3), torch.ones(3, 4)


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("aclnnMm", {"self": X, "mat2": X, "out": Out((2, 3))}, 161002),
        ("aclnnMm", {"self": X, "mat2": Y, "out": Out((2, 3))}, 161002),
        ("aclnnMm", {"self": X, "mat2": Y[0], "out": Out((2,))}, 161002),
        ("aclnnMm", {"self": X, "mat2": Y.bfloat16(), "out": Out((2, 4))}, 161002),
        ("aclnnMm", {"self": X.int(), "mat2": Y.int(), "out": Out((2, 4), "int32")}, 161002),
        ("aclnnMm", {"self": None, "mat2": Y, "out": Out((2, 4))}, 161001),
        ("aclnnMatmul", {"self": X, "mat2": torch.ones(2, 4, 4), "out": Out((2, 2, 4))}, 161002),
        (
            "aclnnAddmm",
            {"self": torch.ones(3, 2, 4)[0], "mat1": X, "mat2": Y, "beta": 1, "alpha": 1, "out": Out((3, 4))},
            161002,
        ),
        (
            "aclnnAddmm",
            {"self": torch.ones(3), "mat1": X, "mat2": Y, "beta": 1, "alpha": 1, "out": Out((2, 4))},
            161002,
        ),
    ],
)
def test_refusals(name: str, arguments: dict[str, Any], code: int) -> None:
    assert refused(name, **arguments, cubeMathType=KEEP) == code


def test_einsum_has_two_equations() -> None:
    assert refused("aclnnEinsum", tensors=[X, Y], equation="ij,jk->ik", output=Out((2, 4))) == 161002


def test_transposed_products_in_parts_and_bytes() -> None:
    """Rows of all batches: cut into parts, or with a factor for each column as integers of 8 bits."""
    generator = np.random.default_rng(7)
    x1, x2 = (generator.integers(-3, 4, shape).astype(np.float16) for shape in ((5, 4, 6), (4, 6, 8)))
    want = np.einsum("mbk,bkn->mbn", x1.astype(float), x2.astype(float)).reshape(5, 32)
    order = {"permX1": [1, 0, 2], "permX2": [0, 1, 2], "permY": [1, 0, 2], "cubeMathType": 0}
    got = call("aclnnTransposeBatchMatMul", x1=x1, x2=x2, **order, batchSplitFactor=2, out=Out((2, 5, 16), "float16"))
    np.testing.assert_array_equal(got.astype(float), want.reshape(5, 2, 16).transpose(1, 0, 2))
    factors = generator.uniform(0.1, 4, 32).astype(np.float32)
    bits = factors.view(np.uint32).astype(np.int64)
    whole = {"x1": x1, "x2": x2, "scale": bits, **order, "batchSplitFactor": 1}
    got = call("aclnnTransposeBatchMatMul", **whole, out=Out((5, 1, 32), "int8"))
    rounded = np.clip(np.rint(want * factors.astype(float)), -128, 127)
    np.testing.assert_array_equal(got.reshape(5, 32), rounded)
    assert refused("aclnnTransposeBatchMatMul", **whole, out=Out((5, 1, 32), "float16")) == 161002
    assert refused("aclnnTransposeBatchMatMul", **{**whole, "scale": bits[:31]}, out=Out((5, 1, 32), "int8")) == 161002
    parts = {"x1": x1, "x2": x2, **order, "batchSplitFactor": 3}
    assert refused("aclnnTransposeBatchMatMul", **parts, out=Out((3, 5, 16), "float16")) == 161002
