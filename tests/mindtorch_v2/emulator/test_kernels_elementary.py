"""The emulator's functions of one argument, activations included, against PyTorch."""

from __future__ import annotations

import pytest

from ._kernels import Out, Scalar, refused
from ._pointwise import FLOATS, Case, parameters, run, sample

UNIT = ((-0.95, 0.95),)
POSITIVE = ((0.2, 4.0),)

ELEMENTARY = [
    Case("aclnnAbs", lambda t, x: x.abs(), dtypes=(*FLOATS, "int8", "int64", "uint8", "bool")),
    Case("aclnnAbs", lambda t, x: x.abs(), gives="float32", dtypes=("complex64",)),
    Case("aclnnNeg", lambda t, x: -x),
    Case("aclnnSign", lambda t, x: t.sign(x), dtypes=("float32", "float16", "int32", "int64", "bool")),
    Case("aclnnReciprocal", lambda t, x: 1 / x, POSITIVE, gives="float"),
    Case("aclnnSqrt", lambda t, x: x.sqrt(), POSITIVE, gives="float"),
    Case("aclnnRsqrt", lambda t, x: x.rsqrt(), POSITIVE, gives="float"),
    Case("aclnnSquare", lambda t, x: x * x),
    Case("aclnnExp", lambda t, x: x.exp(), gives="float"),
    Case("aclnnExp2", lambda t, x: x.exp2(), gives="float"),
    Case("aclnnExpm1", lambda t, x: x.expm1(), gives="float"),
    Case("aclnnLog", lambda t, x: x.log(), POSITIVE, gives="float"),
    Case("aclnnLog2", lambda t, x: x.log2(), POSITIVE, gives="float"),
    Case(
        "aclnnLog10",
        lambda t, x: x.log10(),
        POSITIVE,
        gives="float",
        dtypes=("float32", "float16", "bfloat16", "int32", "bool", "complex64"),
    ),
    Case("aclnnLog1p", lambda t, x: x.log1p(), POSITIVE, gives="float"),
    Case("aclnnSin", lambda t, x: x.sin(), gives="float"),
    Case("aclnnCos", lambda t, x: x.cos(), gives="float"),
    Case("aclnnTan", lambda t, x: x.tan(), UNIT, gives="float"),
    Case("aclnnAsin", lambda t, x: x.asin(), UNIT, gives="float"),
    Case("aclnnAcos", lambda t, x: x.acos(), UNIT, gives="float"),
    Case("aclnnAtan", lambda t, x: x.atan(), gives="float"),
    Case("aclnnSinh", lambda t, x: x.sinh(), gives="float"),
    Case("aclnnCosh", lambda t, x: x.cosh(), gives="float"),
    Case("aclnnTanh", lambda t, x: x.tanh(), gives="float"),
    Case("aclnnAsinh", lambda t, x: x.asinh(), gives="float"),
    Case("aclnnAcosh", lambda t, x: x.acosh(), ((1.1, 4.0),), gives="float"),
    Case("aclnnAtanh", lambda t, x: x.atanh(), UNIT, gives="float"),
    Case("aclnnSinc", lambda t, x: t.sinc(x), gives="float"),
    Case("aclnnCeil", lambda t, x: x.ceil()),
    Case("aclnnFloor", lambda t, x: x.floor()),
    Case("aclnnTrunc", lambda t, x: x.trunc()),
    Case("aclnnFrac", lambda t, x: x - x.trunc()),
    Case("aclnnRound", lambda t, x: x.round()),
    Case(
        "aclnnRoundDecimals",
        lambda t, x: t.round(x.double(), decimals=1) if x.is_floating_point() else x,
        numbers={"decimals": 1},
    ),
    Case("aclnnErf", lambda t, x: t.erf(x), gives="float"),
    Case("aclnnErfc", lambda t, x: t.erfc(x), gives="float"),
    Case("aclnnErfinv", lambda t, x: t.erfinv(x.double()), UNIT, gives="float"),
    Case("aclnnLgamma", lambda t, x: t.lgamma(x), ((-2.9, 5.0),)),
    Case("aclnnDigamma", lambda t, x: t.digamma(x), ((-2.9, 5.0),)),
    Case("aclnnNdtri", lambda t, x: t.special.ndtri(x), ((0.05, 0.95),)),
    Case("aclnnSqrtBackward", lambda t, y, g: g / (2 * y), POSITIVE),
    Case("aclnnTanhGrad", lambda t, y, g: g * (1 - y * y), UNIT),
    Case("aclnnAsinGrad", lambda t, x, g: g / (1 - x * x).sqrt(), UNIT, dtypes=("float32", "float16")),
    Case("aclnnAcosGradV2", lambda t, x, g: -g / (1 - x * x).sqrt(), UNIT),
    Case("aclnnAcosGrad", lambda t, g, x: -g / (1 - x * x).sqrt(), UNIT),
    Case("aclnnAtanGrad", lambda t, x, g: g / (1 + x * x), UNIT),
    Case("aclnnAsinhGrad", lambda t, y, g: g / y.cosh(), UNIT),
    Case("aclnnAcoshGrad", lambda t, y, g: g / y.sinh(), POSITIVE),
    Case("aclnnReal", lambda t, x: x.real if x.is_complex() else x, gives="float32", dtypes=("float32", "complex64")),
    Case("aclnnAngleV2", lambda t, x: t.angle(x), gives="float32", dtypes=("float32", "int32", "bool", "complex64")),
    Case("aclnnNanToNum", lambda t, x: x, numbers={"nan": 1.0, "posinf": 2.0, "neginf": 3.0}),
]

ACTIVATIONS = [
    Case("aclnnRelu", lambda t, x: x.clamp(min=0)),
    Case("aclnnSigmoid", lambda t, x: t.sigmoid(x)),
    Case("aclnnSilu", lambda t, x: t.nn.functional.silu(x)),
    Case("aclnnGelu", lambda t, x: t.nn.functional.gelu(x, approximate="tanh")),
    Case("aclnnGeluV2", lambda t, x: t.nn.functional.gelu(x), numbers={"approximate": 0}),
    Case("aclnnGeluV2", lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), numbers={"approximate": 1}),
    Case("aclnnFastGelu", lambda t, x: x * t.sigmoid(1.702 * x)),
    Case(
        "aclnnFastGeluV2",
        lambda t, x: x * (t.sign(x) * (-0.1444 * ((x / 2**0.5).abs().clamp(max=1.769) - 1.769) ** 2 + 0.5) + 0.5),
    ),
    Case("aclnnMish", lambda t, x: t.nn.functional.mish(x)),
    Case("aclnnLogSigmoid", lambda t, x: t.nn.functional.logsigmoid(x)),
    Case("aclnnHardsigmoid", lambda t, x: t.nn.functional.hardsigmoid(x.double()), ((-5, 5),), dtypes=FLOATS[:3]),
    Case("aclnnHardsigmoidV2", lambda t, x: t.nn.functional.hardsigmoid(x.double()), ((-5, 5),), dtypes=FLOATS[:3]),
    Case("aclnnHardswish", lambda t, x: t.nn.functional.hardswish(x), ((-5, 5),)),
    Case("aclnnSelu", lambda t, x: t.selu(x.double()), dtypes=FLOATS[:3]),
    Case("aclnnSoftsign", lambda t, x: t.nn.functional.softsign(x)),
    Case("aclnnSquaredRelu", lambda t, x: x.relu() ** 2),
    Case(
        "aclnnLeakyRelu",
        lambda t, x: t.nn.functional.leaky_relu(x, 0.25),
        numbers={"negativeSlope": Scalar(0.25, "float32")},
    ),
    Case(
        "aclnnElu",
        lambda t, x: 2 * t.nn.functional.elu(x, 0.5),
        numbers={"alpha": 0.5, "scale": 2.0, "inputScale": 1.0},
    ),
    Case(
        "aclnnEluV2",
        lambda t, x: 2 * t.nn.functional.elu(x, 0.5),
        numbers={"alpha": 0.5, "scale": 2.0, "inputScale": 1.0},
    ),
    Case("aclnnCelu", lambda t, x: t.celu(x, 0.5), numbers={"alpha": 0.5}),
    Case("aclnnSoftplus", lambda t, x: t.nn.functional.softplus(x, 2.0, 4.0), numbers={"beta": 2.0, "threshold": 4.0}),
    Case("aclnnSoftshrink", lambda t, x: t.nn.functional.softshrink(x, 0.5), numbers={"lambd": Scalar(0.5, "float32")}),
    Case("aclnnHardshrink", lambda t, x: t.nn.functional.hardshrink(x, 0.5), numbers={"lambd": Scalar(0.5, "float32")}),
    Case("aclnnHardShrink", lambda t, x: t.nn.functional.hardshrink(x, 0.5), numbers={"lambd": Scalar(0.5, "float32")}),
    Case(
        "aclnnShrink",
        lambda t, x: t.where(x > 1, x - 0.5, t.where(x < -1, x + 0.5, 0 * x)),
        numbers={"lambd": Scalar(1.0, "float32"), "bias": Scalar(0.5, "float32")},
    ),
    Case("aclnnThreshold", lambda t, x: t.where(x <= 1, 7, x), numbers={"threshold": 1, "value": 7}),
    Case("aclnnThresholdV2", lambda t, x: t.where(x <= 1, 7, x), numbers={"threshold": 1, "value": 7}),
    Case("aclnnSwish", lambda t, x: x * t.sigmoid(2 * x), numbers={"betaOptional": 2.0}),
    Case("aclnnSwish", lambda t, x: x * t.sigmoid(x)),
    Case("aclnnLogit", lambda t, x: t.logit(x, 0.1), ((0.01, 0.99),), numbers={"eps": 0.1}),
    Case("aclnnSiluMul", lambda t, x, y: t.nn.functional.silu(x) * y),
]


@pytest.mark.oracle
@pytest.mark.parametrize("case, name, dtype", parameters(ELEMENTARY))
def test_elementary(case: Case, name: str, dtype: str) -> None:
    run(case, name, dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("case, name, dtype", parameters(ACTIVATIONS))
def test_activation(case: Case, name: str, dtype: str) -> None:
    run(case, name, dtype)


@pytest.mark.oracle
def test_refusals() -> None:
    x = sample("float32", (0.1, 1.0), (2, 3), 0)
    assert refused("aclnnExp", self=x, out=Out((3, 2))) == 161002
    assert refused("aclnnExp", self=x, out=Out((2, 3), "int32")) == 161002  # not in the documented list
    assert refused("aclnnExp", self=None, out=Out((2, 3))) == 161001
    assert refused("aclnnGelu", self=x, out=Out((2, 3), "float16")) == 161002  # one dtype
    assert refused("aclnnGeluV2", x=x, approximate=2, y=Out((2, 3))) == 161002
    assert refused("aclnnSoftshrink", self=x, lambd=Scalar(-1.0, "float32"), out=Out((2, 3))) == 161002
    assert refused("aclnnCelu", self=x, alpha=0.0, out=Out((2, 3))) == 161002
