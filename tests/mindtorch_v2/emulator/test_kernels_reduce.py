"""The emulator's reductions and scans against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ._cases import ALL, FLOATS, INTS, NUMBERS, Built, Case, Maker, each, run  # noqa: E402
from ._kernels import Out, Scalar, call, refused  # noqa: E402

pytestmark = pytest.mark.oracle
AXES: list[tuple[list[int], bool]] = [([1], False), ([0, -1], True), ([], False)]
REALS = (*FLOATS, "float64")
F32 = "float32"


def wide(x: Any) -> Any:
    """PyTorch's own reductions of half types round often; the emulator rounds once."""
    return x.double() if x.dtype in (torch.float16, torch.bfloat16) else x


def over(
    name: str,
    dtypes: tuple[str, ...],
    compute: Callable[[Any, list[int], bool], Any],
    dims: str = "dim",
    keep: str = "keepDim",
    axes: list[tuple[list[int], bool]] = AXES,
    nan: bool = False,
    scale: float = 1,
    **more: Any,
) -> list[Case]:
    """A function of (self, axes, keep) with one output of its dtype."""

    def build(t: Maker, some: list[int], kept: bool) -> Built:
        x = t(3, 4, 5, nan=nan)
        every = some or [0, 1, 2]
        result = compute(wide(x), every, kept)
        if t.inexact and result.is_floating_point():
            result = result.to(x.dtype)
        extra = {k: v(t) if callable(v) else v for k, v in more.items()}
        return {"self": x, dims: some, keep: kept, **extra}, {"out": result}

    return [Case(name, dtypes, lambda t, s=some, k=kept: build(t, s, k), scale) for some, kept in axes]


def dtype(t: Maker) -> str:
    return t.dtype


def pair(
    name: str,
    dtypes: tuple[str, ...],
    f: Any,
    index: str,
    values: str = "out",
    places: str = "indices",
    keep: str = "keepdim",
    nan: bool = False,
) -> list[Case]:
    """A function of (self, dim, keep) that gives values and their places."""

    def build(t: Maker, axis: int, kept: bool) -> Built:
        x = t(3, 4, nan=nan)
        v, i = f(x, dim=axis, keepdim=kept)
        # Among equal values PyTorch promises no place; the emulator gives the first.
        if x.dtype != torch.bool and name in ("aclnnMaxDim", "aclnnMinDim"):
            i = (torch.argmax if "Max" in name else torch.argmin)(x, dim=axis, keepdim=kept)
        if x.dtype == torch.bool:
            i = (torch.argmax if "Max" in name else torch.argmin)(x.int(), dim=axis, keepdim=kept)
        return {"self": x, "dim": axis, keep: kept}, {values: v, places: i.to(getattr(torch, index))}

    return [Case(name, dtypes, lambda t, a=axis, k=kept: build(t, a, k)) for axis, kept in ((0, False), (-1, True))]


SUMS = [
    *over("aclnnReduceSum", REALS, lambda x, d, k: x.sum(d, k), "dims", "keepDims", dtype=dtype),
    *over(
        "aclnnReduceSum",
        (*INTS, "uint8", "int8", "int16"),
        lambda x, d, k: x.sum(d, k, dtype=x.dtype),
        "dims",
        "keepDims",
        dtype=dtype,
    ),
    *over("aclnnReduceSum", ("bool", "int32"), lambda x, d, k: x.sum(d, k), "dims", "keepDims", dtype="int64"),
    *over("aclnnReduceSum", ("complex64", "complex128"), lambda x, d, k: x.sum(d, k), "dims", "keepDims", dtype=dtype),
    *over("aclnnReduceNansum", FLOATS, lambda x, d, k: x.nansum(d, k), dtype=dtype, nan=True),
    *over("aclnnReduceNansum", INTS, lambda x, d, k: x.sum(d, k, dtype=x.dtype), dtype=dtype),
    *over("aclnnMean", REALS, lambda x, d, k: x.mean(d, k), dtype=dtype),
    *over("aclnnMean", ("complex64",), lambda x, d, k: x.mean(d, k), dtype=dtype),
    *over("aclnnMean", INTS, lambda x, d, k: x.double().mean(d, k).float(), dtype="float32"),
    *over("aclnnMeanV2", REALS, lambda x, d, k: x.mean(d, k), noopWithEmptyAxes=False),
    Case(
        "aclnnMeanV2",
        FLOATS,
        lambda t: ({"self": (x := t(3, 4)), "dim": [], "keepDim": False, "noopWithEmptyAxes": True}, {"out": x}),
    ),
    Case(
        "aclnnProd",
        (*REALS, "complex64"),
        lambda t: ({"self": (x := t(2, 3)), "dtype": t.dtype}, {"out": wide(x).prod().to(x.dtype)}),
        4,
    ),
    Case(
        "aclnnProd",
        ("int64", "int32", "bool"),
        lambda t: ({"self": (x := t(2, 2)), "dtype": "int64"}, {"out": x.prod()}),
    ),
    Case(
        "aclnnProdDim",
        (*REALS, "int64", "int32", "uint8"),
        lambda t: (
            {"self": (x := t(3, 4)), "dim": -2, "keepDim": True, "dtype": t.dtype},
            {"out": wide(x).prod(0, keepdim=True).to(x.dtype)},
        ),
        4,
    ),
    Case(
        "aclnnSum",
        ("float32", "float16", "int32", "uint8"),
        lambda t: ({"tensors": [(a := t(3, 4)), (b := t(4)), (c := t(3, 1))]}, {"out": a + b + c}),
        2,
    ),
    Case("aclnnSumV2", ("float32", "int32"), lambda t: ({"tensors": [(a := t(3, 4)), (b := t(4))]}, {"out": a + b})),
    Case("aclnnTrace", (*FLOATS, "float64", "complex64"), lambda t: ({"self": (x := t(3, 4))}, {"out": x.trace()}), 2),
    Case("aclnnTrace", ("int32", "uint8"), lambda t: ({"self": (x := t(4, 3))}, {"out": x.trace()})),
    Case(
        "aclnnDot",
        ("float32", "float16", "bfloat16", "int32", "int8"),
        lambda t: ({"self": (a := t(7)), "tensor": (b := t(7))}, {"out": wide(a).dot(wide(b)).to(a.dtype)}),
    ),
]
TRUTHS = [
    *over("aclnnAll", ALL, lambda x, d, k: torch.all(x, tuple(d), k), keep="keepdim"),
    *over("aclnnAny", ALL, lambda x, d, k: torch.any(x, tuple(d), k).bool(), keep="keepdim"),
]
EXTREMES = [
    *over("aclnnAmax", ALL, lambda x, d, k: x.amax(d, k)),
    *over("aclnnAmin", ALL, lambda x, d, k: x.amin(d, k)),
    *over("aclnnAmax", FLOATS, lambda x, d, k: x.amax(d, k), nan=True),
    *over("aclnnAmin", FLOATS, lambda x, d, k: x.amin(d, k), nan=True),
    *over("aclnnMaxV2", ALL, lambda x, d, k: x.amax(d, k), "dims", "keepDims", noopWithEmptyDims=False),
    Case(
        "aclnnMaxV2",
        FLOATS,
        lambda t: ({"self": (x := t(3, 4)), "dims": [], "keepDims": True, "noopWithEmptyDims": True}, {"out": x}),
    ),
    Case("aclnnMax", ALL, lambda t: ({"self": (x := t(3, 4))}, {"out": x.max()})),
    Case("aclnnMin", ALL, lambda t: ({"self": (x := t(3, 4))}, {"out": x.min()})),
    Case("aclnnMax", FLOATS, lambda t: ({"self": (x := t(3, 4, nan=True))}, {"out": x.max()})),
    Case(
        "aclnnAminmax",
        NUMBERS,
        lambda t: (
            {"self": (x := t(3, 4)), "dim": [1], "keepDim": True},
            dict(zip(("minOut", "maxOut"), torch.aminmax(x, dim=1, keepdim=True))),
        ),
    ),
    Case(
        "aclnnAminmaxDim",
        NUMBERS,
        lambda t: (
            {"self": (x := t(3, 4)), "dim": 0, "keepDim": False},
            dict(zip(("minOut", "maxOut"), torch.aminmax(x, dim=0))),
        ),
    ),
    Case(
        "aclnnAminmaxAll",
        NUMBERS,
        lambda t: ({"self": (x := t(3, 4, nan=True))}, dict(zip(("minOut", "maxOut"), torch.aminmax(x)))),
    ),
    *pair("aclnnMaxDim", (*FLOATS, "int64", "bool"), torch.max, "int64"),
    *pair("aclnnMaxDim", FLOATS, torch.max, "int32", nan=True),
    *pair("aclnnMinDim", (*FLOATS, "int64", "bool"), torch.min, "int32", nan=True),
    Case(
        "aclnnArgMax",
        (*REALS, *INTS, "uint8"),
        lambda t: ({"self": (x := t(3, 4, nan=True)), "dim": 1, "keepdim": False}, {"out": x.argmax(1)}),
    ),
    Case(
        "aclnnArgMin",
        (*REALS, *INTS, "uint8"),
        lambda t: ({"self": (x := t(3, 4)), "dim": 0, "keepdim": True}, {"out": x.argmin(0, keepdim=True).int()}),
    ),
]
MOMENTS = [
    *over("aclnnVar", FLOATS, lambda x, d, k: x.var(d, unbiased=True, keepdim=k), keep="keepdim", unbiased=True),
    *over("aclnnVar", FLOATS, lambda x, d, k: x.var(d, unbiased=False, keepdim=k), keep="keepdim", unbiased=False),
    *over(
        "aclnnVarCorrection", FLOATS, lambda x, d, k: x.var(d, correction=2, keepdim=k), keep="keepdim", correction=2
    ),
    *over("aclnnStd", FLOATS, lambda x, d, k: x.std(d, correction=1, keepdim=k), keep="keepdim", correction=1),
    Case(
        "aclnnVar",
        FLOATS,
        lambda t: (
            {"self": (x := t(3, 4)), "dim": None, "unbiased": True, "keepdim": False},
            {"out": wide(x).var().to(x.dtype)},
        ),
    ),
    Case(
        "aclnnVarMean",
        FLOATS,
        lambda t: (
            {"self": (x := t(3, 4)), "dim": [1], "correction": 1, "keepdim": True},
            {n: v.to(x.dtype) for n, v in zip(("varOut", "meanOut"), torch.var_mean(wide(x), 1, keepdim=True))},
        ),
    ),
    Case(
        "aclnnStdMeanCorrection",
        FLOATS,
        lambda t: (
            {"self": (x := t(3, 4)), "dim": [0], "correction": 0, "keepdim": False},
            {n: v.to(x.dtype) for n, v in zip(("stdOut", "meanOut"), torch.std_mean(wide(x), 0, correction=0))},
        ),
    ),
    *(
        Case(
            "aclnnReduceLogSum",
            ("float32", "float16"),
            lambda t, n=n: (
                {"data": (x := t(3, 4).abs() + 1), "axes": [] if n else [1], "keepDims": True, "noopWithEmptyAxes": n},
                {"reduce": x if n else x.double().sum(1, keepdim=True).log().to(x.dtype)},
            ),
        )
        for n in (False, True)
    ),
    *over("aclnnLogSumExp", FLOATS, lambda x, d, k: x.logsumexp(d, k)),
    *(
        case
        for p in (0.0, 1.0, 2.0, 3.0, float("inf"), float("-inf"))
        for case in [
            *over(
                "aclnnNorm",
                FLOATS,
                lambda x, d, k, p=p: torch.linalg.vector_norm(x, p, d, k),
                keep="keepdim",
                pScalar=Scalar(p, F32),
                scale=2,
            ),
            *over(
                "aclnnLinalgVectorNorm",
                FLOATS,
                lambda x, d, k, p=p: torch.linalg.vector_norm(x, p, d, k),
                "dims",
                "keepDims",
                ord=Scalar(p, F32),
                dtype=dtype,
                scale=2,
            ),
        ]
    ),
    Case(
        "aclnnRenorm",
        FLOATS,
        lambda t: (
            {"self": (x := t(3, 4)), "p": Scalar(2, F32), "dim": 0, "maxNorm": Scalar(1, F32)},
            {"out": wide(x).renorm(2, 0, 1).to(x.dtype)},
        ),
    ),
    Case(
        "aclnnInplaceRenorm",
        FLOATS,
        lambda t: (
            {"selfRef": (x := t(3, 4)), "p": Scalar(1, F32), "dim": -1, "maxNorm": Scalar(1.5, F32)},
            {"selfRef": wide(x).renorm(1, 1, 1.5).to(x.dtype)},
        ),
    ),
]
SCANS = [
    Case(
        "aclnnCumsum",
        (*REALS, *INTS, "uint8", "complex64"),
        lambda t: ({"self": (x := t(3, 4)), "dim": 1, "dtype": t.dtype}, {"out": wide(x).cumsum(1).to(x.dtype)}),
        4,
    ),
    Case(
        "aclnnCumsum",
        ("int32",),
        lambda t: ({"self": (x := t(3, 4)), "dim": 0, "dtype": "float32"}, {"out": x.cumsum(0, dtype=torch.float32)}),
    ),
    Case(
        "aclnnCumsumV2",
        (*FLOATS, *INTS),
        lambda t: (
            {"self": (x := t(3, 4)), "dim": 0, "exclusive": False, "reverse": True},
            {"out": wide(x).flip(0).cumsum(0).flip(0).to(x.dtype)},
        ),
        4,
    ),
    Case(
        "aclnnCumsumV2",
        (*FLOATS, *INTS),
        lambda t: (
            {"self": (x := t(3, 4)), "dim": -1, "exclusive": True, "reverse": False},
            {"out": (wide(x).cumsum(1) - wide(x)).to(x.dtype)},
        ),
        4,
    ),
    Case(
        "aclnnCumprod",
        (*REALS, *INTS),
        lambda t: (
            {"input": (x := t(3, 4)), "dim": Scalar(1, "int32"), "dtype": t.dtype},
            {"out": wide(x).cumprod(1).to(x.dtype)},
        ),
        4,
    ),
    Case(
        "aclnnCumprod",
        FLOATS,
        lambda t: (
            {"input": (x := t(3, 4)), "dim": Scalar(-2, "int32"), "dtype": -1},
            {"out": wide(x).cumprod(0).to(x.dtype)},
        ),
        4,
    ),
    Case(
        "aclnnInplaceCumprod",
        (*REALS, *INTS),
        lambda t: ({"input": (x := t(3, 4)), "dim": Scalar(0, "int32")}, {"input": wide(x).cumprod(0).to(x.dtype)}),
        4,
    ),
    Case(
        "aclnnCummax",
        ALL,
        lambda t: ({"self": (x := t(3, 5, nan=True)), "dim": 1}, dict(zip(("valuesOut", "indicesOut"), x.cummax(1)))),
    ),
    Case(
        "aclnnCummin",
        ALL,
        lambda t: ({"self": (x := t(3, 5, nan=True)), "dim": 1}, dict(zip(("valuesOut", "indicesOut"), x.cummin(1)))),
    ),
    Case(
        "aclnnBincount",
        ("int32", "int64", "uint8", "int8"),
        lambda t: (
            {"self": (x := t.index(6, 9, dtype=t.dtype)), "weights": None, "minlength": 7},
            {"out": x.bincount(minlength=7)},
        ),
    ),
    Case(
        "aclnnBincount",
        ("float32", "float64"),
        lambda t: (
            {"self": (x := t.index(6, 9)), "weights": (w := t(9)), "minlength": 6},
            {"out": x.bincount(w, minlength=6)},
        ),
    ),
    Case(
        "aclnnHistc",
        ("float32",),
        lambda t: ({"self": (x := t(40)), "bins": 5, "min": -1.0, "max": 1.0}, {"out": x.histc(5, -1, 1)}),
    ),
    Case(
        "aclnnHistc",
        ("float32",),
        lambda t: ({"self": (x := t(6, 7)), "bins": 4, "min": 0, "max": 0}, {"out": x.histc(4)}),
    ),
    Case(
        "aclnnHistc",
        ("int32", "int16"),
        lambda t: (
            {"self": (x := t(40)), "bins": 6, "min": -3, "max": 3},
            {"out": x.float().histc(6, -3, 3).to(x.dtype)},
        ),
    ),
]


EDGES = [  # no dimensions, no elements
    Case(
        "aclnnReduceSum",
        FLOATS,
        lambda t: ({"self": (x := t()), "dims": [0], "keepDims": True, "dtype": t.dtype}, {"out": x}),
    ),
    Case("aclnnAmax", FLOATS, lambda t: ({"self": (x := t()), "dim": [-1], "keepDim": False}, {"out": x})),
    Case("aclnnArgMax", FLOATS, lambda t: ({"self": t(), "dim": 0, "keepdim": False}, {"out": torch.tensor(0)})),
    Case("aclnnCumsum", FLOATS, lambda t: ({"self": (x := t()), "dim": 0, "dtype": t.dtype}, {"out": x})),
    Case(
        "aclnnVar",
        FLOATS,
        lambda t: (
            {"self": (x := t(3, 1)), "dim": [1], "unbiased": True, "keepdim": False},
            {"out": x[:, 0] * float("nan")},
        ),
    ),
    Case(
        "aclnnAll",
        FLOATS,
        lambda t: ({"self": t(0, 3), "dim": [0], "keepdim": False}, {"out": torch.ones(3, dtype=torch.bool)}),
    ),
    Case("aclnnAmax", FLOATS, lambda t: ({"self": t(0, 3), "dim": [1], "keepDim": True}, {"out": t(0, 1)})),
    Case(
        "aclnnLogSumExp",
        FLOATS,
        lambda t: (
            {"self": (x := t(2, 3) * 0 - float("inf")), "dim": [1], "keepDim": False},
            {"out": x[:, 0].contiguous()},
        ),
    ),
    Case("aclnnCumsum", FLOATS, lambda t: ({"self": (x := t(3, 0)), "dim": 1, "dtype": t.dtype}, {"out": x})),
]


@each([*EDGES, *SUMS, *TRUTHS, *EXTREMES, *MOMENTS, *SCANS])
def test_values(case: Case, dtype: str, layout: str) -> None:
    run(case, dtype, layout)


@pytest.mark.parametrize(("shape", "axes"), [((0, 3), [0]), ((2, 0), []), ((0,), [-1])])
def test_reductions_of_nothing(shape: tuple[int, ...], axes: list[int]) -> None:
    x = torch.empty(shape)
    total = x.sum(axes or None)
    out = Out(tuple(total.shape))
    assert (call("aclnnReduceSum", self=x, dims=axes, keepDims=False, dtype=F32, out=out) == 0).all()
    assert (call("aclnnProd", self=x, dtype=F32, out=Out(())) == 1).all()
    assert torch.isnan(torch.from_numpy(call("aclnnMean", self=x, dim=axes, keepDim=False, dtype=F32, out=out))).all()
    assert refused("aclnnAmax", self=x, dim=axes, keepDim=False, out=out) == 161002
    assert refused("aclnnMax", self=x, out=Out(())) == 161002


X = torch.arange(6.0).reshape(2, 3)
REFUSALS: list[tuple[str, dict[str, Any], int]] = [
    ("aclnnReduceSum", {"self": X, "dims": [2], "keepDims": False, "dtype": F32, "out": Out((2,))}, 161002),
    ("aclnnReduceSum", {"self": X, "dims": [1, -1], "keepDims": False, "dtype": F32, "out": Out((2,))}, 161002),
    ("aclnnReduceSum", {"self": X, "dims": [1], "keepDims": False, "dtype": F32, "out": Out((2, 1))}, 161002),
    ("aclnnReduceSum", {"self": X, "dims": [1], "keepDims": False, "dtype": "int64", "out": Out((2,))}, 161002),
    ("aclnnReduceSum", {"self": X, "dims": None, "keepDims": False, "dtype": F32, "out": Out((2,))}, 161001),
    ("aclnnMean", {"self": X, "dim": [0], "keepDim": False, "dtype": F32, "out": None}, 161001),
    ("aclnnProdDim", {"self": X, "dim": 0, "keepDim": False, "dtype": "int64", "out": Out((3,))}, 161002),
    ("aclnnMaxDim", {"self": X, "dim": 1, "keepdim": False, "out": Out((2,)), "indices": Out((3,), "int64")}, 161002),
    (
        "aclnnMaxDim",
        {"self": X.double(), "dim": 1, "keepdim": False, "out": Out((2,), "float64"), "indices": Out((2,), "int64")},
        161002,
    ),
    ("aclnnMinDim", {"self": X, "dim": 1, "keepdim": False, "out": Out((2,)), "indices": Out((2,), "int64")}, 161002),
    ("aclnnArgMax", {"self": torch.empty(2, 0), "dim": 1, "keepdim": False, "out": Out((2,), "int64")}, 161002),
    ("aclnnMax", {"self": X, "out": Out((2,))}, 161002),
    ("aclnnAny", {"self": X, "dim": [0], "keepdim": False, "out": Out((3,), "int8")}, 161002),
    ("aclnnCumsum", {"self": X, "dim": 0, "dtype": "int64", "out": Out((2, 3))}, 161002),
    ("aclnnCumprod", {"input": X, "dim": Scalar(3, "int32"), "dtype": F32, "out": Out((2, 3))}, 161002),
    ("aclnnRenorm", {"self": X, "p": Scalar(-1, F32), "dim": 0, "maxNorm": Scalar(1, F32), "out": Out((2, 3))}, 161002),
    ("aclnnHistc", {"self": X, "bins": 0, "min": 0, "max": 1, "out": Out((1,))}, 161002),
    ("aclnnDot", {"self": X[0], "tensor": X[:, 0], "out": Out(())}, 161002),
]


@pytest.mark.parametrize(("name", "arguments", "code"), REFUSALS)
def test_refusals(name: str, arguments: dict[str, Any], code: int) -> None:
    assert refused(name, **arguments) == code
