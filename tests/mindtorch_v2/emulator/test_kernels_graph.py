"""The emulator's functions with names of graph operators, and how pointwise functions treat outputs and chips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import CODES, In, Out, assert_same, call, refused
from ._pointwise import SHAPE, Case, parameters, run, sample, widened

HALVES = ("float32", "float16", "bfloat16")
CASES = [
    Case("aclnnAsinhV2", lambda t, x: x.asinh()),
    Case("aclnnAsinhWithAgent", lambda t, x: x.asinh()),
    Case("aclnnAsinWithAgent", lambda t, x: x.asin(), ((-0.9, 0.9),)),
    Case("aclnnFusedMulAddN", lambda t, x, y, z: x * z + y, dtypes=("float32", "float16")),
    Case(
        "aclnnFusedBiasLeakyRelu",
        lambda t, x, y: 2 * t.nn.functional.leaky_relu(x + y, 0.25),
        shapes=(SHAPE, (4,)),
        numbers={"negativeSlope": 0.25, "scale": 2.0},
    ),
    Case("aclnnApproximateEqual", lambda t, x, y: (x - y).abs() < 0.5, numbers={"tolerance": 0.5}, gives="bool"),
]


@pytest.mark.oracle
@pytest.mark.parametrize("case, name, dtype", parameters(CASES))
def test_pointwise(case: Case, name: str, dtype: str) -> None:
    run(case, name, dtype)


def test_fresnel() -> None:
    from scipy.special import fresnel

    x = np.concatenate([np.linspace(-6, 6, 97), [30.0, np.inf]]).astype(np.float64)
    sines, cosines = fresnel(x)
    assert_same(call("aclnnFresnelSin", x=x, out=Out(x.shape, "float64")), sines, 1e4)
    assert_same(call("aclnnFresnelCos", x=x, out=Out(x.shape, "float64")), cosines, 1e4)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [*HALVES, "int32", "int64"])
def test_joined_lists(oracle: Any, dtype: str) -> None:
    list_ = [sample(dtype, (-5, 5), SHAPE, seed) for seed in (1, 2, 3)]
    kind = list_[0].dtype
    wide = [widened(x) for x in list_]
    assert_same(call("aclnnAddN", tensors=list_, out=Out(SHAPE, dtype)), sum(wide).to(kind))
    stacked = oracle.stack(wide)
    assert_same(call("aclnnMaxN", tensors=list_, out=Out(SHAPE, dtype)), stacked.amax(0).to(kind))
    assert_same(call("aclnnMinN", tensors=list_, out=Out(SHAPE, dtype)), stacked.amin(0).to(kind))
    assert refused("aclnnAddN", tensors=list_, out=Out((4, 3), dtype)) == 161002


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", HALVES)
def test_along_an_axis(oracle: Any, dtype: str) -> None:
    x, bias = sample(dtype, (-2, 2), (2, 3, 4), 2), sample(dtype, (-2, 2), (4,), 1)
    assert_same(
        call("aclnnBiasAdd", x=x, bias=bias, dataFormatOptional=None, out=Out((2, 3, 4), dtype)),
        (x.double() + bias.double()).to(x.dtype),
    )
    pixels = sample(dtype, (-2, 2), (2, 4, 3, 2), 2)
    assert_same(
        call("aclnnBiasAdd", x=In(pixels, "NCHW"), bias=bias, dataFormatOptional="NCHW", out=Out((2, 4, 3, 2), dtype)),
        (pixels.double() + bias.double()[:, None, None]).to(x.dtype),
    )
    scale, shift = sample(dtype, (-2, 2), (3,), 3), sample(dtype, (-2, 2), (3,), 4)
    want = x.double() * scale.double()[:, None] + shift.double()[:, None]
    assert_same(
        call(
            "aclnnScale", x=x, scale=scale, bias=shift, axis=1, numAxes=1, scaleFromBlob=True, y=Out((2, 3, 4), dtype)
        ),
        want.to(x.dtype),
    )
    assert_same(call("aclnnCastV3", x=x, dstType=CODES["int32"], y=Out((2, 3, 4), "int32")), x.to(oracle.int32))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("interleaved", [False, True])
def test_clipped_swiglu(oracle: Any, dtype: str, interleaved: bool) -> None:
    x = sample(dtype, (-4, 4), (3, 8), 2)
    wide = x.double()
    a, b = (wide[:, ::2], wide[:, 1::2]) if interleaved else wide.chunk(2, 1)
    a, b = a.clamp(max=2), b.clamp(-2, 2)
    want = (a * oracle.sigmoid(1.7 * a) * (b + 1)).to(x.dtype)
    numbers = {"dim": -1, "alpha": 1.7, "limit": 2.0, "bias": 1.0, "interleaved": interleaved}
    assert_same(call("aclnnClippedSwiglu", x=x, **numbers, out=Out((3, 4), dtype)), want)
    some = call("aclnnClippedSwiglu", x=x, groupIndexOptional=np.array([1, 1]), **numbers, out=Out((3, 4), dtype))
    assert_same(some[:2], want[:2])


@pytest.mark.oracle
def test_a_strided_output_is_written_in_place_of_its_elements() -> None:
    x = sample("float32", (-2, 2), SHAPE, 1)
    got = call("aclnnAdd", self=x, other=x, alpha=1, out=Out(SHAPE, "float32", strides=(1, 5)))
    assert_same(got, 2 * x)


def test_empty_tensors() -> None:
    nothing = np.ones((0, 3), np.float32)
    assert call("aclnnAdd", self=nothing, other=nothing, alpha=1, out=Out((0, 3))).shape == (0, 3)
    assert call("aclnnInplaceZero", selfRef=nothing).shape == (0, 3)


def test_the_result_is_rounded_to_the_promoted_dtype() -> None:
    x = np.array([100], np.int8)
    assert call("aclnnAdd", self=x, other=x, alpha=1, out=Out((1,), "int32")).tolist() == [-56]
    third, one = np.array([3], np.float16), np.array([1], np.float16)
    assert call("aclnnDiv", self=one, other=third, out=Out((1,), "float32")).tolist() == [float(np.float16(1 / 3))]


def test_some_dtypes_broadcast_over_few_axes() -> None:
    one, other = (2, 1) * 3, (1, 2) * 3
    for dtype, code in (("float64", 561002), ("int16", 561002), ("float32", 0)):
        values = {"self": np.ones(one, dtype), "other": np.ones(other, dtype), "alpha": 1, "out": Out((2,) * 6, dtype)}
        if code:
            assert refused("aclnnAdd", **values) == code
        else:
            assert (call("aclnnAdd", **values) == 2).all()
    flat = np.ones((2,) * 8, np.float64)
    assert (call("aclnnAdd", self=flat, other=flat, alpha=1, out=Out((2,) * 8, "float64")) == 2).all()


@pytest.mark.oracle
@pytest.mark.parametrize("layout", ["NDHWC", "NCDHW", None])
def test_max_pool_3d(oracle: Any, layout: str | None) -> None:
    x = sample("float32", (-2, 2), (2, 3, 5, 6, 7), 3)
    first = layout == "NCDHW"

    def turned(t: Any) -> Any:
        return t if first else t.permute(0, 2, 3, 4, 1).contiguous()

    def pooled(padding: str, want: Any, **given: Any) -> None:
        out = turned(want)
        numbers = {"ksize": [1, 2, 3, 2, 1] if not first else [1, 1, 2, 3, 2], "strides": [2], "ceilMode": 0, **given}
        got = call("aclnnMaxPool3D", x=turned(x), padding=padding, dataFormatOptional=layout, **numbers,
                   out=Out(tuple(out.shape)))  # fmt: skip
        assert_same(got, out)

    plain = oracle.nn.functional.max_pool3d
    pooled("VALID", plain(x, (2, 3, 2), 2))
    pooled("CALCULATED", plain(x, (2, 3, 2), 2, (1, 1, 0), ceil_mode=True), padsOptional=[1, 1, 1, 1, 0, 0], ceilMode=1)
    pooled("CALCULATED", plain(x, (2, 2, 2), (1, 2, 3), dilation=2), ksize=[2], strides=[1, 2, 3], dilationOptional=[2])
    # The pad that is left over goes behind.
    around = oracle.nn.functional.pad(x, (0, 1, 0, 1, 0, 1), value=-float("inf"))
    pooled("SAME", plain(around, (2, 3, 2), 2))
    wrong = {"x": x, "ksize": [2], "strides": [2], "ceilMode": 0, "out": Out((2, 3, 2, 3, 3))}
    for bad in ({"padding": "FULL"}, {"padding": "VALID"}, {"padding": "VALID", "dataFormatOptional": "DHWNC"},
                {"padding": "CALCULATED", "dataFormatOptional": "NCDHW", "padsOptional": [1]}):  # fmt: skip
        assert refused("aclnnMaxPool3D", **{**wrong, **bad}) == 161002
