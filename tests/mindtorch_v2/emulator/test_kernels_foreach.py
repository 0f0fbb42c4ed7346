"""The emulator's functions over lists of tensors, and its steps of optimisers, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ._kernels import Out, Scalar, assert_same, call, facts, refused
from ._pointwise import sample, widened

HALVES = ("float32", "float16", "bfloat16")
SHAPES = ((3, 4), (5,))
POSITIVE = (0.2, 0.9)


@dataclass(frozen=True)
class Foreach:
    """`formula(torch, *elements)` of the lists in order, then of the number where there is one."""

    name: str
    formula: Callable[..., Any]
    number: tuple[str, Any] | None = None  # parameter and a value, a list of values, or an array on the device
    domain: tuple[float, float] = (-2, 2)
    dtypes: tuple[str, ...] = HALVES
    attribute: list[Any] = field(default_factory=lambda: [2, 2])  # what the formula sees, for each tensor


def unary(
    name: str, formula: Callable[..., Any], domain: tuple[float, float] = (-2, 2), dtypes: tuple[str, ...] = HALVES
) -> Foreach:
    return Foreach(f"aclnnForeach{name}", formula, domain=domain, dtypes=dtypes)


def scalar_forms(
    stem: str,
    formula: Callable[..., Any],
    dtypes: tuple[str, ...] = (*HALVES, "int32"),
    domain: tuple[float, float] = (-2, 2),
    device_list: bool = False,
) -> list[Foreach]:
    """The number as a tensor on the device, as a scalar, and one for each tensor."""
    parameter = {p["name"]: p for p in facts()[f"aclnnForeach{stem}"]["params"]}
    first = "alpha" if "alpha" in parameter else "scalar"
    forms = [
        Foreach(f"aclnnForeach{stem}", formula, (first, "device"), domain, dtypes),
        Foreach(
            f"aclnnForeach{stem}V2",
            formula,
            (first, Scalar(2.0, "float32")),
            domain,
            tuple(d for d in dtypes if d != "int32" or stem != "PowScalar"),
        ),
    ]
    if f"aclnnForeach{stem}List" in facts():
        each = "device list" if device_list else [Scalar(2.0, "float32"), Scalar(3.0, "float32")]
        forms.append(Foreach(f"aclnnForeach{stem}List", formula, ("scalars", each), domain, dtypes, [2, 3]))
    return forms


WHOLE = (*HALVES, "int32")
LISTS = [
    unary("Abs", lambda t, x: x.abs()),
    unary("Acos", lambda t, x: x.acos(), POSITIVE),
    unary("ACosInplace", lambda t, x: x.acos(), POSITIVE),
    unary("Asin", lambda t, x: x.asin(), POSITIVE),
    unary("Atan", lambda t, x: x.atan()),
    unary("Copy", lambda t, x: x, dtypes=(*HALVES, "int8", "int64", "bool")),
    unary("Cos", lambda t, x: x.cos()),
    unary("Cosh", lambda t, x: x.cosh()),
    unary("Erf", lambda t, x: x.erf()),
    unary("Erfc", lambda t, x: x.erfc()),
    unary("Exp", lambda t, x: x.exp()),
    unary("Expm1", lambda t, x: x.expm1()),
    unary("Log", lambda t, x: x.log(), POSITIVE),
    unary("LogInplace", lambda t, x: x.log(), POSITIVE),
    unary("Log10", lambda t, x: x.log10(), POSITIVE),
    unary("Log1p", lambda t, x: x.log1p(), POSITIVE),
    unary("Log2", lambda t, x: x.log2(), POSITIVE),
    unary("Neg", lambda t, x: -x, dtypes=(*WHOLE, "int8")),
    unary("Reciprocal", lambda t, x: 1 / x, POSITIVE),
    unary("Sigmoid", lambda t, x: x.sigmoid()),
    unary("Sign", lambda t, x: x.sign(), dtypes=(*WHOLE, "int64")),
    unary("Sin", lambda t, x: x.sin()),
    unary("Sinh", lambda t, x: x.sinh()),
    unary("Sqrt", lambda t, x: x.sqrt(), POSITIVE),
    unary("Tan", lambda t, x: x.tan(), POSITIVE),
    unary("Tanh", lambda t, x: x.tanh()),
    unary("ZeroInplace", lambda t, x: 0 * x, dtypes=WHOLE),
    unary("DivList", lambda t, x, y: x / y, POSITIVE),
    unary("DivListInplace", lambda t, x, y: x / y, POSITIVE),
    unary("MulList", lambda t, x, y: x * y, dtypes=WHOLE),
    unary("MulListInplace", lambda t, x, y: x * y, dtypes=WHOLE),
    unary("MaximumList", lambda t, x, y: t.maximum(x, y), dtypes=WHOLE),
    unary("MinimumList", lambda t, x, y: t.minimum(x, y), dtypes=WHOLE),
    unary("PowList", lambda t, x, y: x**y, (1, 3), dtypes=WHOLE),
    unary("LerpList", lambda t, x, y, w: x + w * (y - x)),
    *scalar_forms("AddList", lambda t, x, y, k: x + k * y),
    *scalar_forms("SubList", lambda t, x, y, k: x - k * y),
    *scalar_forms("AddScalar", lambda t, x, k: x + k),
    *scalar_forms("SubScalar", lambda t, x, k: x - k),
    *scalar_forms("MulScalar", lambda t, x, k: x * k),
    *scalar_forms("DivScalar", lambda t, x, k: x / k, HALVES),
    *scalar_forms("MaximumScalar", lambda t, x, k: x.clamp(min=k)),
    *scalar_forms("MinimumScalar", lambda t, x, k: x.clamp(max=k)),
    *scalar_forms("PowScalar", lambda t, x, k: x**k, domain=(0, 3)),
    *scalar_forms("AddcmulScalar", lambda t, x, y, z, k: x + k * y * z, device_list=True),
    *scalar_forms("AddcdivScalar", lambda t, x, y, z, k: x + k * y / z, HALVES, POSITIVE, device_list=True),
    Foreach(
        "aclnnForeachAddcmulList",
        lambda t, x, y, z, k: x + k * y * z,
        ("scalars", "device list"),
        dtypes=WHOLE,
        attribute=[2, 3],
    ),
    Foreach(
        "aclnnForeachAddcdivList",
        lambda t, x, y, z, k: x + k * y / z,
        ("scalars", "device list"),
        POSITIVE,
        attribute=[2, 3],
    ),
    Foreach("aclnnForeachAddListInplace", lambda t, x, y, k: x + k * y, ("alpha", "device"), dtypes=WHOLE),
    Foreach("aclnnForeachSubListInplace", lambda t, x, y, k: x - k * y, ("alpha", "device"), dtypes=WHOLE),
    Foreach("aclnnForeachMulScalarInplace", lambda t, x, k: x * k, ("scalar", "device"), dtypes=WHOLE),
    Foreach("aclnnForeachSubScalarInplace", lambda t, x, k: x - k, ("scalar", "device"), dtypes=WHOLE),
    Foreach(
        "aclnnForeachPowScalarAndTensor", lambda t, x, k: t.tensor(float(k)) ** x, ("scalar", Scalar(2.0, "float32"))
    ),
    Foreach(
        "aclnnForeachLerpScalar",
        lambda t, x, y, k: x + k * (y - x),
        ("weight", Scalar(0.25, "float32")),
        attribute=[0.25, 0.25],
    ),
    *[
        Foreach("aclnnForeachRoundOffNumber" + version, formula, ("roundMode", mode))
        for code, formula in {
            1: lambda t, x, k: x.round(),
            2: lambda t, x, k: x.floor(),
            3: lambda t, x, k: x.ceil(),
            5: lambda t, x, k: x.trunc(),
            7: lambda t, x, k: x.frac(),
        }.items()
        for version, mode in (("", np.array([code], np.int8)), ("V2", Scalar(code, "int8")))
    ],
]


def given_number(form: Any, dtype: str, attribute: list[Any]) -> Any:
    if not isinstance(form, str):
        return form
    held = {"bfloat16": "float32"}.get(dtype, dtype)  # the scalar tensor of BF16 lists is FLOAT
    if form == "device":
        return np.array(attribute[:1], held)
    import torch

    return torch.tensor(attribute, dtype=getattr(torch, dtype))


@pytest.mark.oracle
@pytest.mark.parametrize(
    "case, dtype", [pytest.param(c, d, id=f"{c.name}-{d}-{i}") for i, c in enumerate(LISTS) for d in c.dtypes]
)
def test_lists(oracle: Any, case: Foreach, dtype: str) -> None:
    parameters = facts()[case.name]["params"]
    lists = [p for p in parameters if p["type"] == "aclTensorList*" and p.get("io") != "out"]
    values = {
        p["name"]: [sample(dtype, case.domain, shape, 2 * (2 * i + j + 1)) for j, shape in enumerate(SHAPES)]
        for i, p in enumerate(lists)
    }
    extra: dict[str, Any] = {}
    if case.number:
        extra[case.number[0]] = given_number(case.number[1], dtype, case.attribute)
    if any(p["name"] == "out" for p in parameters):
        extra["out"] = [Out(shape, dtype) for shape in SHAPES]
    got = call(case.name, **values, **extra)
    for j, one in enumerate(got):
        elements = [widened(v[j]) for v in values.values()]
        attribute = [case.attribute[j]] if case.number else []
        assert_same(one, case.formula(oracle, *elements, *attribute).to(getattr(oracle, dtype)))


@pytest.mark.oracle
@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
@pytest.mark.parametrize("dtype", HALVES)
def test_norms(oracle: Any, order: float, dtype: str) -> None:
    x = [sample(dtype, (-1, 1), shape, 2) for shape in SHAPES]
    got = call("aclnnForeachNorm", x=x, scalar=Scalar(order, "float32"), out=[Out((), dtype), Out((), dtype)])
    for one, tensor in zip(got, x):
        assert_same(one, oracle.linalg.vector_norm(tensor.double(), order).to(tensor.dtype))


def test_lists_of_strided_tensors() -> None:
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4).T, np.arange(6, dtype=np.float32)[::2]
    out = [Out((4, 3)), Out((3,))]
    got = call("aclnnForeachAddListV2", x1=[x, y], x2=[x, y], alpha=Scalar(2.0, "float32"), out=out)
    assert (got[0] == 3 * x).all() and (got[1] == 3 * y).all()


def test_lists_refuse() -> None:
    x = np.ones(3, np.float32)
    out = [Out((3,)), Out((3,))]
    assert refused("aclnnForeachExp", x=[x], out=out) == 161002
    assert refused("aclnnForeachExp", x=[x, x], out=[Out((3,)), Out((4,))]) == 161002
    assert refused("aclnnForeachExp", x=[], out=[]) == 161002
    assert refused("aclnnForeachMulList", x1=[x, x], x2=[x, x[:2]], out=out) == 161002
    assert refused("aclnnForeachAddScalar", x=[x, x], scalar=x, out=out) == 161002
    one = [Scalar(1.0, "float32")]
    assert refused("aclnnForeachAddScalarList", x=[x, x], scalars=one, out=out) == 161002
    assert refused("aclnnForeachExp", x=None, out=out) == 161001


# -- optimisers --------------------------------------------------------------------------------------------------------
LR, BETA1, BETA2, DECAY, EPS, STEP = 0.1, 0.9, 0.99, 0.01, 1e-6, 3


def adamw(t: Any, var: Any, m: Any, v: Any, g: Any, largest: Any, maximize: bool) -> tuple[Any, Any, Any, Any]:
    g = -g if maximize else g
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g * g
    largest = t.maximum(largest, v) if largest is not None else None
    scale = ((largest if largest is not None else v) / (1 - BETA2**STEP)).sqrt() + EPS
    return var * (1 - LR * DECAY) - LR / (1 - BETA1**STEP) * m / scale, m, v, largest


def state(dtype: str) -> tuple[Any, ...]:
    return (
        *(sample(dtype, (-1, 1), (3, 4), s) for s in (1, 2)),
        sample(dtype, (0.1, 1), (3, 4), 3),
        sample(dtype, (-1, 1), (3, 4), 4),
        sample(dtype, (0.1, 1), (3, 4), 5),
    )


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
def test_adamw(oracle: Any, dtype: str, amsgrad: bool, maximize: bool) -> None:
    var, m, v, g, top = state(dtype)
    flags = {"amsgrad": amsgrad, "maximize": maximize}
    want = adamw(oracle, *(x.double() for x in (var, m, v, g)), top.double() if amsgrad else None, maximize)
    rounded = [x.to(var.dtype) for x in want if x is not None]
    hyper = {"lr": LR, "beta1": BETA1, "beta2": BETA2, "weightDecay": DECAY, "eps": EPS}
    step = np.array([STEP], np.int64)
    got = call(
        "aclnnApplyAdamWV2",
        varRef=var,
        mRef=m,
        vRef=v,
        maxGradNormOptionalRef=top if amsgrad else None,
        grad=g,
        step=step,
        **hyper,
        **flags,
    )
    for a, b in zip(got, rounded, strict=True):
        assert_same(a, b, 2)
    lists = call(
        "aclnnFusedAdamw",
        paramsRef=[var],
        grads=[g],
        expAvgsRef=[m],
        expAvgSqsRef=[v],
        maxExpAvgSqsRef=[top] if amsgrad else None,
        stateSteps=[step],
        **hyper,
        **flags,
    )
    for a, b in zip(lists, rounded, strict=True):
        assert_same(a, b)
    if dtype == "float32":
        on_device = {name: oracle.tensor([value]) for name, value in hyper.items()}
        powers = {"beta1Power": oracle.tensor([BETA1**STEP]), "beta2Power": oracle.tensor([BETA2**STEP])}
        got = call(
            "aclnnApplyAdamW",
            varRef=var,
            mRef=m,
            vRef=v,
            grad=g,
            **powers,
            **on_device,
            maxGradNormOptional=top if amsgrad else None,
            **flags,
        )
        for a, b in zip(got, rounded[:3], strict=True):
            assert_same(a, b, 4)


@pytest.mark.oracle
def test_fused_adamw_scales_and_skips(oracle: Any) -> None:
    var, m, v, g, _ = state("float32")
    numbers = {
        "lr": LR,
        "beta1": BETA1,
        "beta2": BETA2,
        "weightDecay": DECAY,
        "eps": EPS,
        "amsgrad": False,
        "maximize": False,
        "stateSteps": [np.array([STEP], np.float32)],
    }
    lists = {"paramsRef": [var], "expAvgsRef": [m], "expAvgSqsRef": [v]}
    plain = call("aclnnFusedAdamw", **lists, grads=[g], **numbers)
    scaled = call("aclnnFusedAdamw", **lists, grads=[g * 8], gradScaleOptional=oracle.tensor([8.0]), **numbers)
    for a, b in zip(plain, scaled, strict=True):
        assert_same(a, b)
    skipped = call("aclnnFusedAdamw", **lists, grads=[g], foundInfOptional=oracle.tensor([1.0]), **numbers)
    assert_same(skipped[0], var)


@pytest.mark.oracle
@pytest.mark.parametrize("nesterov", [False, True])
def test_adam(oracle: Any, nesterov: bool) -> None:
    var, m, v, g, _ = state("float32")
    names = {
        "beta1Power": BETA1**STEP,
        "beta2Power": BETA2**STEP,
        "lr": LR,
        "beta1": BETA1,
        "beta2": BETA2,
        "epsilon": EPS,
    }
    numbers = {name: oracle.tensor([value]) for name, value in names.items()}
    wide = [x.double() for x in (var, m, v, g)]
    m1 = BETA1 * wide[1] + (1 - BETA1) * wide[3]
    v1 = BETA2 * wide[2] + (1 - BETA2) * wide[3] ** 2
    rate = LR * (1 - BETA2**STEP) ** 0.5 / (1 - BETA1**STEP)
    want = wide[0] - rate * (BETA1 * m1 + (1 - BETA1) * wide[3] if nesterov else m1) / (v1.sqrt() + EPS)
    flags = {"useLocking": False, "useNesterov": nesterov}
    assert_same(call("aclnnApplyAdam", varRef=var, m=m, v=v, grad=g, **numbers, **flags), want.float(), 4)
    outs = {name: Out((3, 4)) for name in ("varOut", "mOut", "vOut")}
    got = call("aclnnApplyAdamD", var=var, m=m, v=v, grad=g, **numbers, **flags, **outs)
    for a, b in zip(got, (want, m1, v1), strict=True):
        assert_same(a, b.float(), 4)


@pytest.mark.oracle
def test_adamax_adadelta_ftrl(oracle: Any) -> None:
    var, m, v, g, _ = state("float32")
    x, a, b, d = (t.double() for t in (var, m, v, g))
    m1, v1 = 0.9 * a + 0.1 * d, oracle.maximum(0.99 * b, d.abs())
    want: tuple[Any, ...] = (x - 0.1 / (1 - 0.729) * m1 / (v1 + 1e-3), m1, v1)
    outs = {name: Out((3, 4)) for name in ("varOut", "mOut", "vOut")}
    got = call(
        "aclnnApplyAdamax",
        var=var,
        m=m,
        v=v,
        beta1Power=0.729,
        lr=0.1,
        beta1=0.9,
        beta2=0.99,
        epsilon=1e-3,
        grad=g,
        **outs,
    )
    squares = 0.9 * b + 0.1 * d * d
    update = ((b + 1e-3) / (squares + 1e-3)).sqrt() * d
    want += (x - 0.5 * update, squares, 0.9 * b + 0.1 * update**2)
    outs = {name: Out((3, 4)) for name in ("varOut", "accumOut", "accumUpdateOut")}
    got += call("aclnnApplyAdadelta", var=var, accum=v, accumUpdate=v, lr=0.5, rho=0.9, epsilon=1e-3, grad=g, **outs)
    after = b + d * d
    linear = a + d - (after.sqrt() - b.sqrt()) / 0.5 * x
    small = (0.25 * linear.sign() - linear) / (after.sqrt() / 0.5 + 2 * 0.125)
    want += (oracle.where(linear.abs() > 0.25, small, 0), after, linear)
    numbers = {name: oracle.tensor([k]) for name, k in (("lr", 0.5), ("l1", 0.25), ("l2", 0.125), ("lrPower", -0.5))}
    got += call("aclnnApplyFtrl", varRef=var, accumRef=v, linearRef=m, grad=g, **numbers, useLocking=False)
    for one, expected in zip(got, want, strict=True):
        assert_same(one, expected.float(), 4)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "nesterov, first, maximize", [(False, True, False), (True, False, False), (False, False, True)]
)
def test_sgd(oracle: Any, dtype: str, nesterov: bool, first: bool, maximize: bool) -> None:
    var, buffer, _, g, _ = state(dtype)
    x, b, d = var.double(), buffer.double(), g.double() / 2
    step = (-d if maximize else d) + DECAY * x
    b = step if first else 0.5 * b + step
    step = step + 0.5 * b if nesterov else b
    got = call(
        "aclnnFusedSgd",
        paramsRef=[var],
        gradsRef=[g],
        momentumBufferListOptionalRef=[buffer],
        gradScaleOptional=oracle.tensor([2.0], dtype=var.dtype),
        weightDecay=DECAY,
        momentum=0.5,
        lr=LR,
        dampening=0.0,
        nesterov=nesterov,
        maximize=maximize,
        isFirstStep=first,
    )
    for a, want in zip(got, (x - LR * step, d, b), strict=True):
        assert_same(a, want.to(var.dtype))
    assert_same(
        call("aclnnApplyGradientDescent", var=var, alpha=oracle.tensor([0.5], dtype=var.dtype), delta=g),
        (x - 0.5 * g.double()).to(var.dtype),
    )


@pytest.mark.parametrize("tracker, found, scale, after", [(1, 0, 16, 2), (2, 0, 32, 0), (1, 1, 8, 0)])
def test_loss_scale(tracker: int, found: int, scale: float, after: int) -> None:
    got = call(
        "aclnnAmpUpdateScale",
        currentScale=np.array([16], np.float32),
        growthTracker=np.array([tracker], np.int32),
        foundInf=np.array([found], np.float32),
        growthFactor=2.0,
        backoffFactor=0.5,
        growthInterval=3,
        updatedScale=Out((1,)),
        updatedGrowthTracker=Out((1,), "int32"),
    )
    assert [x.tolist() for x in got] == [[scale], [after]]


@pytest.mark.parametrize("bad", [0.0, np.inf, np.nan])
def test_unscale(bad: float) -> None:
    grads = [np.array([1, 2, bad], np.float32), np.array([4], np.float32)]
    got = call(
        "aclnnForeachNonFiniteCheckAndUnscale",
        scaledGrads=grads,
        foundInf=np.zeros(1, np.float32),
        invScale=np.array([0.5], np.float32),
    )
    assert got[0][:2].tolist() == [0.5, 1] and got[1].tolist() == [2]
    assert got[2].tolist() == [float(not np.isfinite(bad))]
    assert (
        refused(
            "aclnnForeachNonFiniteCheckAndUnscale",
            scaledGrads=grads * 129,
            foundInf=np.zeros(1, np.float32),
            invScale=np.array([0.5], np.float32),
        )
        == 161002
    )


@pytest.mark.oracle
def test_optimisers_refuse(oracle: Any) -> None:
    var, m, v, g, _ = state("float32")
    hyper = {"lr": LR, "beta1": BETA1, "beta2": BETA2, "weightDecay": DECAY, "eps": EPS, "maximize": False}
    step = np.array([STEP], np.int64)
    given = {"varRef": var, "vRef": v, "grad": g, "step": step, **hyper}
    assert refused("aclnnApplyAdamWV2", **given, mRef=m, amsgrad=True) == 161001
    assert refused("aclnnApplyAdamWV2", **given, mRef=m[:2], amsgrad=False) == 161002
