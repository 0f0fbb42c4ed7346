"""Rows that become small floats in blocks: gated ones, keys on their way into pages, and products; against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import Out, Refused, assert_same, call, refused
from .test_kernels_block_scales import numbers, powers, spread
from .test_kernels_gated_quant import silu
from .test_kernels_microscaled import BF, E2M1, E4M3, E5M2, E8M0, LEAST, code, largest, microscaled
from .test_kernels_quantized_norm import F, make, wide
from .test_kernels_weights import nz

RNG = np.random.default_rng(53)


def in_blocks(x: np.ndarray, block: int, dtype: Any, whole: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The rows over their scales: a block's largest number over the type's, or the power of two above."""
    count = -(-x.shape[-1] // block)
    padded = np.zeros((*x.shape[:-1], count * block))
    padded[..., : x.shape[-1]] = x
    scale = np.abs(padded.reshape(*x.shape[:-1], count, block)).max(-1) / largest(dtype)
    if whole:
        scale = 2.0 ** np.ceil(np.log2(scale))
    y = x / np.repeat(scale, block, -1)[..., : x.shape[-1]]
    return np.clip(y, -largest(dtype), largest(dtype)).astype(F).astype(dtype), scale.astype(F)


# -- gated rows ------------------------------------------------------------------------------------------------------
HALF = 160
X = make(5, 2 * HALF, dtype=BF)
WEIGHT = RNG.uniform(0.5, 2, 5).astype(F)
LIMIT = 1.25
GATED = silu(np.minimum(wide(X)[:, :HALF], LIMIT)) * np.clip(wide(X)[:, HALF:], -LIMIT, LIMIT) * wide(WEIGHT)[:, None]


def gated(dtype: Any, scales: tuple[int, ...], scale_dtype: str, **more: Any) -> dict[str, Any]:
    return {
        "x": X, "weightOptional": WEIGHT, "dstType": code(dtype), "quantMode": 0, "blockSize": 0, "roundScale": False,
        "clampLimit": LIMIT, "dstTypeMax": 0.0, "outputOrigin": True, "yOut": Out((5, HALF), np.dtype(dtype).name),
        "yScaleOut": Out(scales, scale_dtype), "yOriginOut": Out((5, HALF), "bfloat16"), **more,
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [E4M3, E5M2, E2M1])
def test_gated_rows_with_powers_of_two(dtype: Any) -> None:
    y, scales = microscaled(GATED, -1, dtype)
    got = call("aclnnSwigluGroupQuant", **gated(dtype, scales.shape, "float8_e8m0fnu"))
    for g, want in zip(got, (y, scales, GATED.astype(BF))):
        assert_same(g, want)
    flat = scales.reshape(5, -1)[:, :5]  # without the places that fill the last pair
    assert_same(call("aclnnSwigluGroupQuant", **gated(dtype, (5, 5), "float8_e8m0fnu"))[1], flat)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("block", [0, 32])
def test_gated_rows_with_scales(whole: bool, block: int) -> None:
    y, scales = in_blocks(GATED, block or 128, E4M3, whole)
    given = gated(E4M3, scales.shape, "float32", roundScale=whole, blockSize=block)
    got = call("aclnnSwigluGroupQuant", **given)
    assert_same(got[1], scales)
    # A quotient beside the middle of two numbers may be on its other side.
    steps = np.abs(got[0].view(np.uint8).astype(int) - y.view(np.uint8))
    assert steps.max() <= 1 and (steps > 0).mean() < 0.01


def test_rows_that_no_group_has_stay() -> None:
    y, scales = in_blocks(GATED[:3], 128, E4M3)
    got = call("aclnnSwigluGroupQuant", **gated(E4M3, (5, 2), "float32", groupIndexOptional=np.array([1, 2])))
    assert_same(got[1][:3], scales)
    assert (got[0][3:].view(np.uint8) == 0x5A).all() and (got[1][3:].view(np.uint8) == 0x5A).all()


def test_gated_rows_refused() -> None:
    given = gated(E4M3, (5, 2), "float32")
    for wrong in (
        {"dstType": code(E5M2)}, {"blockSize": -1}, {"yScaleOut": Out((5, 3))}, {"scaleOptional": np.ones(1, F)},
        {"weightOptional": np.ones(4, F)}, {"yOriginOut": Out((5, HALF), "float32")},
        {"yScaleOut": Out((5, 2), "float8_e8m0fnu")},
        {"yScaleOut": Out((5, 5), "float8_e8m0fnu"), "blockSize": 64},
    ):  # fmt: skip
        assert refused("aclnnSwigluGroupQuant", **{**given, **wrong}) == 161002, wrong


# -- keys into pages -------------------------------------------------------------------------------------------------
KEYS = make(3, 128, dtype=BF)
SLOTS = np.array([5, -1, 0], np.int32)


def into_pages(dtype: Any, scales: np.ndarray, **more: Any) -> dict[str, Any]:
    return {
        "cacheRef": np.zeros((2, 3, 1, 128), dtype), "cacheScaleRef": scales, "x": KEYS, "slotMapping": SLOTS,
        "quantMode": 0, "roundScale": False, "xScale": 0.5, **more,
    }  # fmt: skip


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("parts", [1, 4])
def test_keys_with_scales(parts: int, whole: bool) -> None:
    y, scales = in_blocks(wide(KEYS) * 0.5, 128 // parts, E4M3, whole)
    cache, held = call("aclnnIndexerQuantCache", **into_pages(E4M3, np.zeros((2, 3, 1, parts), F), roundScale=whole))
    want = np.zeros((6, parts), F)
    want[[5, 0]] = scales[[0, 2]]
    assert_same(held.reshape(6, parts), want)
    steps = np.abs(cache.reshape(6, 128)[[5, 0]].view(np.uint8).astype(int) - y[[0, 2]].view(np.uint8))
    assert steps.max() <= 1 and (steps > 0).mean() < 0.01
    assert (wide(cache.reshape(6, 128)[1:5]) == 0).all()


@pytest.mark.parametrize("dtype", [E5M2, E2M1])
def test_keys_with_powers_of_two(dtype: Any) -> None:
    y, scales = microscaled(wide(KEYS) * 0.5, -1, dtype)
    cache, held = call("aclnnIndexerQuantCache", **into_pages(dtype, np.full((2, 3, 4), LEAST, F).astype(E8M0)))
    assert_same(cache.reshape(6, 128)[[5, 0]], y[[0, 2]])
    assert_same(held.reshape(6, 4)[[5, 0]], scales.reshape(3, 4)[[0, 2]])


def test_keys_refused() -> None:
    given = into_pages(E4M3, np.zeros((2, 3, 1, 1), F))
    for wrong in (
        {"cacheRef": np.zeros((2, 3, 1, 128), np.uint8)}, {"cacheRef": np.zeros((2, 3, 1, 64), E4M3)},
        {"cacheScaleRef": np.zeros((2, 3, 1, 3), F)}, {"slotMapping": np.zeros(4, np.int32)},
    ):  # fmt: skip
        assert refused("aclnnIndexerQuantCache", **{**given, **wrong}) == 161002, wrong
    with pytest.raises(Refused, match="507015"):
        call("aclnnIndexerQuantCache", **{**given, "slotMapping": np.array([6, 0, 1], np.int32)})


# -- products --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", ["relu", "silu", "gelu_erf", "gelu_tanh"])
def test_activated_products(kind: str, turned: bool) -> None:
    import torch

    x, w, bias = numbers(3, 96), numbers(96, 40), make(40, dtype=F)
    p, q = powers(3, 2, 2), powers(2, 40, 2)
    plain = (np.asarray(x, float) * spread(p, 1, 96)) @ (np.asarray(w, float) * spread(q, 0, 96)) + wide(bias)
    functional = torch.nn.functional
    functions = {
        "relu": functional.relu, "silu": functional.silu, "gelu_erf": functional.gelu,
        "gelu_tanh": lambda v: functional.gelu(v, approximate="tanh"),
    }  # fmt: skip
    y, scales = microscaled(functions[kind](torch.tensor(plain)).numpy(), -1, E4M3)
    given = {
        "x1": x, "x2": nz(w.T.copy() if turned else w), "x1ScaleOptional": p, "biasOptional": bias,
        "x2Scale": q.transpose(1, 0, 2).copy() if turned else q, "transposeX1": False, "transposeX2": turned,
        "groupSize": 0, "activationType": kind, "quantMode": "mx", "roundMode": "rint", "scaleAlg": 0,
        "dstTypeMax": 0.0, "yOut": Out((3, 40), "float8_e4m3fn"), "yScaleOut": Out((3, 1, 2), "float8_e8m0fnu"),
    }  # fmt: skip
    got = call("aclnnQuantMatmulActivationQuantWeightNz", **given)
    assert_same(got[0], y)
    assert_same(got[1], scales)
    for wrong in (
        {"x1ScaleOptional": None}, {"groupSize": 64}, {"scaleAlg": 2}, {"quantMode": "other"}, {"dstTypeMax": 1.0},
        {"yScaleOut": Out((3, 2, 2), "float8_e8m0fnu")}, {"x2Scale": powers(3, 40, 2)}, {"roundMode": "floor"},
    ):  # fmt: skip
        assert refused("aclnnQuantMatmulActivationQuantWeightNz", **{**given, **wrong}) == 161002, wrong
