"""The emulator's derivatives of activations, gated activations and their derivatives against PyTorch's autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ._kernels import Out, Scalar, assert_same, call, refused
from ._pointwise import FLOATS, SHAPE, Case, parameters, run, sample

HALVES = ("float32", "float16", "bfloat16")
Formula = Callable[..., Any]


def slope(function: Formula) -> Formula:
    """grad, x -> grad * function'(x)"""

    def formula(t: Any, grad: Any, x: Any) -> Any:
        leaf = x.detach().double().requires_grad_()
        (result,) = t.autograd.grad(function(t, leaf), leaf, grad.double())
        return result

    return formula


def lambd(value: float) -> dict[str, Any]:
    return {"lambd": Scalar(value, "float32")}


BACKWARD = [
    Case("aclnnSigmoidBackward", lambda t, g, y: g * y * (1 - y), dtypes=(*FLOATS, "complex64")),
    Case("aclnnTanhBackward", lambda t, g, y: g * (1 - y * y)),
    Case(
        "aclnnThresholdBackward",
        lambda t, g, x: t.where(x <= 1, 0, g),
        numbers={"threshold": Scalar(1, "int32")},
        dtypes=("float32", "float16", "bfloat16", "int32", "int8", "uint8"),
    ),
    Case("aclnnSiluBackward", slope(lambda t, x: t.nn.functional.silu(x))),
    Case("aclnnMishBackward", slope(lambda t, x: t.nn.functional.mish(x))),
    Case("aclnnFastGeluBackward", slope(lambda t, x: x * t.sigmoid(1.702 * x))),
    Case("aclnnGeluBackward", slope(lambda t, x: t.nn.functional.gelu(x, approximate="tanh"))),
    Case("aclnnGeluBackwardV2", slope(lambda t, x: t.nn.functional.gelu(x)), numbers={"approximate": "none"}),
    Case(
        "aclnnGeluBackwardV2",
        slope(lambda t, x: t.nn.functional.gelu(x, approximate="tanh")),
        numbers={"approximate": "tanh"},
    ),
    Case("aclnnHardsigmoidBackward", slope(lambda t, x: t.nn.functional.hardsigmoid(x)), ((-5, 5),)),
    Case("aclnnHardswishBackward", slope(lambda t, x: t.nn.functional.hardswish(x)), ((-5, 5),)),
    Case("aclnnHardswishBackwardV2", slope(lambda t, x: t.nn.functional.hardswish(x)), ((-5, 5),)),
    Case(
        "aclnnHardtanhBackward",
        slope(lambda t, x: t.nn.functional.hardtanh(x, -1, 2)),
        numbers={"min": Scalar(-1, "float32"), "max": Scalar(2, "float32")},
    ),
    Case("aclnnHardshrinkBackward", slope(lambda t, x: t.nn.functional.hardshrink(x, 0.5)), numbers=lambd(0.5)),
    Case("aclnnSoftshrinkBackward", slope(lambda t, x: t.nn.functional.softshrink(x, 0.5)), numbers={"lambda": 0.5}),
    Case(
        "aclnnSoftplusBackward",
        slope(lambda t, x: t.nn.functional.softplus(x, 2.0, 4.0)),
        dtypes=FLOATS,
        numbers={"beta": 2.0, "threshold": 4.0},
    ),
    Case(
        "aclnnSeluBackward",
        lambda t, g, y: t.where(y > 0, g * 1.0507009873554805, g * (y + 1.0507009873554805 * 1.6732632423543772)),
        dtypes=HALVES,
    ),
    Case("aclnnSoftsignBackward", slope(lambda t, x: t.nn.functional.softsign(x))),
    Case("aclnnReluGradV3", lambda t, x, g: t.where(x > 0, g, 0), dtypes=("float32", "int32")),
    Case(
        "aclnnLeakyReluBackward",
        slope(lambda t, x: t.nn.functional.leaky_relu(x, 0.25)),
        numbers={"negativeSlope": 0.25, "selfIsResult": False},
    ),
    Case(
        "aclnnEluBackward",
        slope(lambda t, x: 2 * t.nn.functional.elu(x, 0.5)),
        dtypes=HALVES,
        numbers={"alpha": 0.5, "scale": 2.0, "inputScale": 1.0, "isResult": False},
    ),
    Case(
        "aclnnEluBackward",
        lambda t, g, y: t.where(y > 0, 2 * g, g * (y + 1)),
        dtypes=HALVES,
        numbers={"alpha": 0.5, "scale": 2.0, "inputScale": 1.0, "isResult": True},
    ),
    Case("aclnnSwishBackward", slope(lambda t, x: x * t.sigmoid(2 * x)), numbers={"betaOptional": 2.0}),
    Case("aclnnSwishBackward", slope(lambda t, x: x * t.sigmoid(x))),
    Case("aclnnLogSigmoidBackward", lambda t, g, x, _: slope(lambda t, x: t.nn.functional.logsigmoid(x))(t, g, x)),
    Case(
        "aclnnLogitGrad",
        lambda t, x, g: slope(lambda t, x: t.logit(x, 0.1))(t, g, x),
        ((0.01, 0.99),),
        numbers={"eps": 0.1},
    ),
]


@pytest.mark.oracle
@pytest.mark.parametrize("case, name, dtype", parameters(BACKWARD))
def test_backward(case: Case, name: str, dtype: str) -> None:
    run(case, name, dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", HALVES)
def test_log_sigmoid_keeps_what_its_derivative_needs(oracle: Any, dtype: str) -> None:
    x = sample(dtype, (-4, 4), SHAPE, 1)
    out, buffer = call("aclnnLogSigmoidForward", self=x, out=Out(SHAPE, dtype), buffer=Out(SHAPE, dtype))
    assert_same(out, oracle.nn.functional.logsigmoid(x.double()).to(x.dtype))
    assert_same(buffer, oracle.exp(-x.double().abs()).to(x.dtype))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("channels", [1, 4])
def test_prelu(oracle: Any, dtype: str, channels: int) -> None:
    x, w = sample(dtype, (-3, 3), (2, 4, 3), 1), sample(dtype, (0, 1), (channels,), 2)
    grad = sample(dtype, (-1, 1), (2, 4, 3), 3)
    leaves = [x.double().requires_grad_(), w.double().requires_grad_()]
    y = oracle.nn.functional.prelu(*leaves)
    assert_same(call("aclnnPrelu", self=x, weight=w, out=Out((2, 4, 3), dtype)), y.detach().to(x.dtype))
    want = oracle.autograd.grad(y, leaves, grad.double())
    got = call(
        "aclnnPreluBackward",
        gradOutput=grad,
        self=x,
        weight=w,
        gradInput=Out((2, 4, 3), dtype),
        gradWeight=Out((channels,), dtype),
    )
    for a, b in zip(got, want):
        assert_same(a, b.to(x.dtype))


def gated(function: Formula, left: bool, dim: int) -> Formula:
    def formula(t: Any, x: Any) -> Any:
        a, b = x.chunk(2, dim)
        return function(t, a) * b if left else a * function(t, b)

    return formula


# name, its derivative, parameter names (grad, input, output of the derivative), formula, other arguments
GATED: list[tuple[str, str, tuple[str, str, str], Callable[[int], Formula], dict[str, Any]]] = [
    (
        "aclnnGlu",
        "aclnnGluBackward",
        ("gradOut", "self", "out"),
        lambda dim: gated(lambda t, z: t.sigmoid(z), False, dim),
        {},
    ),
    (
        "aclnnSwiGlu",
        "aclnnSwiGluGrad",
        ("yGrad", "x", "out"),
        lambda dim: gated(lambda t, z: t.nn.functional.silu(z), True, dim),
        {},
    ),
    (
        "aclnnGeGlu",
        "aclnnGeGluBackward",
        ("gradOutput", "self", "gradInput"),
        lambda dim: gated(lambda t, z: t.nn.functional.gelu(z), False, dim),
        {"approximate": 0},
    ),
    (
        "aclnnGeGluV3",
        "aclnnGeGluV3Backward",
        ("gradOutput", "self", "gradInput"),
        lambda dim: gated(lambda t, z: t.nn.functional.gelu(z, approximate="tanh"), True, dim),
        {"approximate": 1, "activateLeft": True},
    ),
]


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("dim", [-1, 0])
@pytest.mark.parametrize("name, backward, names, formula_of, numbers", GATED, ids=[g[0] for g in GATED])
def test_gated(
    oracle: Any,
    name: str,
    backward: str,
    names: tuple[str, str, str],
    formula_of: Callable[[int], Formula],
    numbers: dict[str, Any],
    dim: int,
    dtype: str,
) -> None:
    x = sample(dtype, (-3, 3), (4, 6), 2)
    leaf = x.double().requires_grad_()
    y = formula_of(dim)(oracle, leaf)
    half = tuple(y.shape)
    grad_name, in_name, out_name = names
    extra: dict[str, Any] = {"outGelu": Out(half, dtype)} if "GeGlu" in name else {}
    got = call(name, **{in_name: x}, dim=dim, **numbers, out=Out(half, dtype), **extra)
    assert_same(got[0] if extra else got, y.detach().to(x.dtype))
    grad = sample(dtype, (-1, 1), half, 4)
    (want,) = oracle.autograd.grad(y, leaf, grad.double())
    given = {"gelu": got[1]} if extra else {}
    assert_same(
        call(backward, **{grad_name: grad, in_name: x}, dim=dim, **numbers, **given, **{out_name: Out((4, 6), dtype)}),
        want.to(x.dtype),
    )
    assert refused(name, **{in_name: x[:, :5].contiguous()}, dim=1, **numbers, out=Out(half, dtype), **extra) == 161002
    assert refused(name, **{in_name: x}, dim=2, **numbers, out=Out(half, dtype), **extra) == 161002


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", HALVES)
def test_products_of_halves(oracle: Any, dtype: str) -> None:
    x = sample(dtype, (-3, 3), (4, 6), 1)
    a, b = x.double().chunk(2, -1)
    for how in ("none", "tanh"):
        assert_same(
            call("aclnnGeluMul", input=x, approximateOptional=how, out=Out((4, 3), dtype)),
            (oracle.nn.functional.gelu(a, approximate=how) * b).to(x.dtype),
        )
    threshold = oracle.tensor([0.5], dtype=x.dtype)
    assert_same(
        call("aclnnFatreluMul", input=x, threshold=threshold, out=Out((4, 3), dtype)),
        (oracle.where(a > 0.5, a, 0) * b).to(x.dtype),
    )


@pytest.mark.oracle
def test_refusals(oracle: Any) -> None:
    x = oracle.ones(2, 3)
    out = Out((2, 3))
    elu = {"alpha": -1.0, "scale": 1.0, "inputScale": 1.0}
    assert refused("aclnnEluBackward", gradOutput=x, **elu, isResult=True, selfOrResult=x, gradInput=out) == 161002
    leaky = {"negativeSlope": -1.0, "selfIsResult": True}
    assert refused("aclnnLeakyReluBackward", gradOutput=x, self=x, **leaky, out=out) == 161002
    assert refused("aclnnGeluBackwardV2", gradOutput=x, self=x, approximate="erf", gradInput=out) == 161002
    assert refused("aclnnPrelu", self=x, weight=oracle.ones(2), out=out) == 161002
