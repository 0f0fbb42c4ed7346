"""Products whose operands have scales for each block, numbers of two levels of scales, turned rows; against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import CODES, Out, assert_same, call, refused
from .test_kernels_microscaled import BF, E2M1, E4M3, E5M2, E8M0, code, largest, microscaled, squares
from .test_kernels_quantized_norm import F, dynamic, make, wide
from .test_kernels_weights import nz

RNG = np.random.default_rng(41)


def numbers(*shape: int, dtype: Any = E4M3) -> np.ndarray:
    return RNG.uniform(-4, 4, shape).astype(F).astype(dtype)


def powers(*shape: int) -> np.ndarray:
    return (2.0 ** RNG.integers(-3, 4, shape)).astype(F).astype(E8M0)


def spread(pairs: np.ndarray, axis: int, length: int) -> np.ndarray:
    """A scale for each number: the last dimension holds the two of a pair."""
    moved = np.moveaxis(np.asarray(pairs, float), -1, axis + 1)
    joined = moved.reshape(*moved.shape[:axis], -1, *moved.shape[axis + 2 :])
    return np.take(np.repeat(joined, 32, axis), range(length), axis)


@pytest.mark.parametrize("turned", [(False, False), (True, True), (False, True)])
@pytest.mark.parametrize("dtype", [E4M3, E2M1])
def test_pairs(turned: tuple[bool, bool], dtype: Any) -> None:
    x, w = numbers(3, 96, dtype=dtype), numbers(96, 4, dtype=dtype)
    p, q = powers(3, 2, 2), powers(2, 4, 2)
    want = (np.asarray(x, float) * spread(p, 1, 96)) @ (np.asarray(w, float) * spread(q, 0, 96)) + 1
    given = {
        "x1": x.T.copy() if turned[0] else x,
        "x2": w.T.copy() if turned[1] else w,
        "x1Scale": p.transpose(1, 0, 2).copy() if turned[0] else p,
        "x2Scale": q.transpose(1, 0, 2).copy() if turned[1] else q,
        "transposeX1": turned[0],
        "transposeX2": turned[1],
        "bias": np.ones(4, F),
        "groupSize": 1 << 32 | 1 << 16 | 32,
        "out": Out((3, 4), "bfloat16"),
    }
    assert_same(call("aclnnQuantMatmulV5", **given), want.astype(BF), 2)
    assert refused("aclnnQuantMatmulV5", **{**given, "groupSize": 1 << 32 | 1 << 16 | 64}) == 161002
    assert refused("aclnnQuantMatmulV5", **{**given, "x2Scale": powers(3, 4, 2)}) == 161002
    assert refused("aclnnQuantMatmulV5", **{**given, "yOffset": np.ones(4, F)}) == 161002


@pytest.mark.parametrize("turned", [False, True])
def test_squares(turned: bool) -> None:
    x, w = numbers(2, 130, 140), numbers(140, 150)
    p, q = (RNG.uniform(0.5, 2, s).astype(F) for s in ((2, 130, 2), (2, 2)))
    full = np.repeat(np.repeat(wide(q), 128, 0)[:140], 128, 1)[:, :150]
    want = (np.asarray(x, float) * np.repeat(wide(p), 128, 2)[..., :140]) @ (np.asarray(w, float) * full)
    given = {
        "x1": x,
        "x2": w.T.copy() if turned else w,
        "x1Scale": p,
        "x2Scale": q.T.copy() if turned else q,
        "transposeX1": False,
        "transposeX2": turned,
        "groupSize": 1 << 32 | 128 << 16 | 128,
        "out": Out((2, 130, 150), "bfloat16"),
    }
    assert_same(call("aclnnQuantMatmulV5", **given), want.astype(BF), 4)
    assert refused("aclnnQuantMatmulV5", **{**given, "x1Scale": np.ones((2, 130, 3), F)}) == 161002


@pytest.mark.parametrize("name", ["aclnnGroupedMatmulV4", "aclnnGroupedMatmulV5"])
def test_groups_of_rows(name: str) -> None:
    x, w = numbers(6, 80), numbers(2, 80, 4)
    p, q = powers(6, 2, 2), powers(2, 2, 4, 2)
    a, b = np.asarray(x, float) * spread(p, 1, 80), np.asarray(w, float) * spread(q, 1, 80)
    given = {
        "x": [x],
        "weight": [w],
        "scaleOptional": [q],
        "perTokenScaleOptional": [p],
        "groupListOptional": np.array([2, 6]),
        "splitItem": 3,
        "groupType": 0,
        "groupListType": 0,
        "actType": 0,
        "out": [Out((6, 4), "bfloat16")],
    }
    (got,) = [call(name, **given)]
    assert_same(got, np.concatenate([a[:2] @ b[0], a[2:] @ b[1]]).astype(BF), 2)
    assert refused(name, **{**given, "scaleOptional": [powers(2, 3, 4, 2)]}) == 161002


@pytest.mark.parametrize("pairs", [False, True])
def test_added_in_groups(pairs: bool) -> None:
    x, w, y = numbers(3, 100, dtype=E5M2), numbers(100, 4, dtype=E5M2), make(2, 3, 4, dtype=F)
    ends, want = [70, 100], wide(y).copy()
    first = powers(3, 3, 2) if pairs else np.array([0.5, 2], F)
    second = powers(3, 4, 2) if pairs else RNG.uniform(0.5, 2, (2, 4)).astype(F)
    for g, (a, b) in enumerate([(0, 70), (70, 100)]):
        left, right = np.asarray(x, float)[:, a:b], np.asarray(w, float)[a:b]
        if pairs:
            at = slice(a // 64 + g, a // 64 + g + -(-(b - a) // 64))
            left = left * spread(first[at].transpose(1, 0, 2), 1, b - a)
            right = right * spread(second[at], 0, b - a)
            want[g] += left @ right
        else:
            want[g] += left @ right * wide(first)[g] * wide(second)[g]
    given = {
        "x1": x,
        "x2": w,
        "scale1Optional": first,
        "scale2": second,
        "groupList": np.array(ends),
        "yRef": y,
        "groupListType": 0,
        "groupSize": 0,
    }
    assert_same(call("aclnnQuantGroupedMatmulInplaceAdd", **given), want.astype(F), 8)
    assert refused("aclnnQuantGroupedMatmulInplaceAdd", **{**given, "groupListType": 2}) == 161002
    assert refused("aclnnQuantGroupedMatmulInplaceAdd", **{**given, "yRef": make(2, 3, 5, dtype=F)}) == 161002


@pytest.mark.parametrize("turned", [False, True])
def test_added(turned: bool) -> None:
    x, w, y = numbers(3, 70), numbers(70, 4), make(3, 4, dtype=F)
    p, q = powers(3, 2, 2), powers(2, 4, 2)
    want = (np.asarray(x, float) * spread(p, 1, 70)) @ (np.asarray(w, float) * spread(q, 0, 70)) + wide(y)
    given = {
        "x1": x.T.copy() if turned else x,
        "x2": w,
        "x1ScaleOptional": p.transpose(1, 0, 2).copy() if turned else p,
        "x2Scale": q,
        "yRef": y,
        "transposeX1": turned,
        "transposeX2": False,
        "groupSize": 32,
    }
    assert_same(call("aclnnQuantBatchMatmulInplaceAdd", **given), want.astype(F), 8)
    assert refused("aclnnQuantBatchMatmulInplaceAdd", **{**given, "groupSize": 64}) == 161002


@pytest.mark.parametrize("pairs", [False, True])
def test_permuted(pairs: bool) -> None:
    x, w = numbers(5, 2, 64), numbers(2, 64, 3)
    p = powers(5, 2, 1, 2) if pairs else RNG.uniform(0.5, 2, 5).astype(F)
    q = powers(2, 1, 3, 2) if pairs else RNG.uniform(0.5, 2, 3).astype(F)
    a, b = np.asarray(x, float), np.asarray(w, float)
    if pairs:
        want = np.einsum("mbk,bkn->mbn", a * spread(p, 2, 64), b * spread(q, 1, 64))
    else:
        want = np.einsum("mbk,bkn->mbn", a, b) * wide(p)[:, None, None] * wide(q)
    given = {
        "x1": x,
        "x2": w,
        "x1Scale": p,
        "x2Scale": q,
        "dtype": code(BF),
        "groupSize": 32 if pairs else 0,
        "permX1": [1, 0, 2],
        "permX2": [0, 1, 2],
        "permY": [1, 0, 2],
        "batchSplitFactor": 1,
        "out": Out((5, 2, 3), "bfloat16"),
    }
    assert_same(call("aclnnTransposeQuantBatchMatMul", **given), want.astype(BF), 2)
    assert refused("aclnnTransposeQuantBatchMatMul", **{**given, "permY": [1, 1, 2]}) == 161002
    assert refused("aclnnTransposeQuantBatchMatMul", **{**given, "batchSplitFactor": 2}) == 161002


@pytest.mark.parametrize("trans", [False, True])
def test_rotated(trans: bool) -> None:
    x, matrix = make(3, 8), make(4, 4)
    y = (wide(x).reshape(3, 2, 4) @ (wide(matrix).T if trans else wide(matrix))).reshape(3, 8)
    given = {
        "x": x,
        "rotation": matrix,
        "axis": -1,
        "roundMode": "rint",
        "scaleAlg": 0,
        "dstTypeMax": 0.0,
        "trans": trans,
    }
    got, scale = call("aclnnRotateQuant", **given, yOut=Out((3, 8), "int8"), scaleOut=Out((3,), "float32"))
    want, scales = dynamic(y)
    assert_same(scale, scales)
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
    small, power = call(
        "aclnnRotateQuant", **given, yOut=Out((3, 8), "float8_e4m3fn"), scaleOut=Out((3, 1, 2), "float8_e8m0fnu")
    )
    for found, wanted in zip((small, power), microscaled(y, -1, E4M3)):
        np.testing.assert_array_equal(np.asarray(found, float), np.asarray(wanted, float))
    wrong = {**given, "yOut": Out((3, 8), "int8"), "scaleOut": Out((3,), "float32")}
    assert refused("aclnnRotateQuant", **{**wrong, "axis": 0}) == 161002
    assert refused("aclnnRotateQuant", **{**wrong, "rotation": make(3, 3)}) == 161002


def test_two_levels() -> None:
    x, smooth = make(2, 600), make(600)
    given = {
        "x": x,
        "smoothScaleOptional": smooth,
        "roundModeOptional": "rint",
        "level0BlockSize": 512,
        "level1BlockSize": 32,
        "yOut": Out((2, 600), "float4_e2m1fn"),
        "level0ScaleOut": Out((2, 2), "float32"),
        "level1ScaleOut": Out((2, 10, 2), "float8_e8m0fnu"),
    }
    y, outer, inner = call("aclnnDynamicDualLevelMxQuant", **given)
    scaled = wide(x) * wide(smooth)
    tops = np.stack([np.abs(scaled[:, :512]).max(1), np.abs(scaled[:, 512:]).max(1)], 1) / largest(E2M1)
    assert_same(outer, tops.astype(F))
    whole = np.repeat(tops.astype(F).astype(float), 512, 1)[:, :600]
    want, powers_ = microscaled(scaled / whole, -1, E2M1)
    np.testing.assert_array_equal(np.asarray(inner, float), np.asarray(powers_, float))
    np.testing.assert_array_equal(np.asarray(y, float), np.asarray(want, float))
    assert refused("aclnnDynamicDualLevelMxQuant", **{**given, "level0BlockSize": 256}) == 161002


def test_squares_from_rows() -> None:
    x, scales = numbers(2, 40, 64, dtype=E2M1), powers(2, 40, 1, 2)
    want = squares(np.asarray(x, float) * spread(scales, 2, 64), E4M3)
    given = {
        "x": x,
        "mxscale": scales,
        "dstType": code(E4M3),
        "y": Out((2, 40, 64), "float8_e4m3fn"),
        "scale1": Out((2, 40, 1, 2), "float8_e8m0fnu"),
        "scale2": Out((2, 1, 64, 2), "float8_e8m0fnu"),
    }
    for got, name in zip(call("aclnnMxToBlockMxQuant", **given), ("yOut", "scale1Out", "scale2Out")):
        np.testing.assert_array_equal(np.asarray(got, float), np.asarray(want[name], float))
    assert refused("aclnnMxToBlockMxQuant", **{**given, "dstType": code(E5M2)}) == 161002


def test_product_of_two_levels() -> None:
    x, w = numbers(3, 576, dtype=E2M1), numbers(16, 576, dtype=E2M1)
    first, second = RNG.uniform(0.5, 2, (3, 2)).astype(F), RNG.uniform(0.5, 2, (2, 16)).astype(F)
    p, q, bias = powers(3, 9, 2), powers(16, 9, 2), make(16, dtype=F)
    a = np.asarray(x, float) * spread(p, 1, 576) * np.repeat(wide(first), 512, 1)[:, :576]
    b = np.asarray(w, float) * spread(q, 1, 576) * np.repeat(wide(second).T, 512, 1)[:, :576]
    given = {
        "x1": x,
        "x2": nz(w),
        "x1Level0Scale": first,
        "x2Level0Scale": second,
        "x1Level1Scale": p,
        "x2Level1Scale": q,
        "optionalBias": bias,
        "transposeX1": False,
        "transposeX2": True,
        "level0GroupSize": 512,
        "level1GroupSize": 32,
        "out": Out((3, 16), "bfloat16"),
    }
    assert_same(call("aclnnDualLevelQuantMatmulWeightNz", **given), (a @ b.T + wide(bias)).astype(BF), 8)
    assert refused("aclnnDualLevelQuantMatmulWeightNz", **{**given, "transposeX2": False}) == 161002
    assert refused("aclnnDualLevelQuantMatmulWeightNz", **{**given, "level0GroupSize": 256}) == 161002


@pytest.mark.parametrize("tensors", [False, True])
def test_weights_in_bytes(tensors: bool) -> None:
    x, w, bias = make(3, 5), RNG.integers(-9, 9, (5, 4)).astype(np.int8), make(4, dtype=F)
    offset, scale = make(4), make(4)
    given = {
        "x1": x,
        "x2": w,
        "diagonalMatrix": np.eye(32, dtype=np.int8),
        "deqOffset": np.zeros(4, np.int32),
        "deqScale": np.ones(4, np.uint64),
        "addOffset": offset if tensors else None,
        "mulScale": scale if tensors else None,
        "bias": bias,
        "transposeX1": False,
        "transposeX2": False,
        "antiquantScale": 0.5,
        "antiquantOffset": 2.0,
        "out": Out((3, 4), "float16"),
    }
    floats = (w + wide(offset)) * wide(scale) if tensors else (w + 2.0) * 0.5
    assert_same(call("aclnnWeightQuantBatchMatmul", **given), (wide(x) @ floats + wide(bias)).astype(np.float16), 4)
    assert refused("aclnnWeightQuantBatchMatmul", **{**given, "transposeX2": True}) == 161002
    if not tensors:  # FLOAT16 casts to INT8
        whole = call("aclnnWeightQuantBatchMatmul", **{**given, "out": Out((3, 4), "int8")})
        np.testing.assert_array_equal(whole, np.trunc(wide(x) @ floats + wide(bias)))


def test_triangles() -> None:
    """A near triangle over a far one that fills the image."""
    corners = np.array(
        [[-3, -3, 0.5, 1], [9, -3, 0.5, 1], [-3, 9, 0.5, 1], [-1, -1, 0, 2], [1, -1, 0, 1], [-1, 1, 0, 1]], F
    )
    given: dict[str, Any] = {
        "v": corners,
        "f": np.array([[0, 1, 2], [3, 4, 5]], np.int32),
        "dOptional": None,
        "width": 5,
        "height": 5,
        "occlusionTruncation": 0.0,
        "useDepthPrior": 0,
        "findicesOut": Out((5, 5), "int32"),
        "barycentricOut": Out((5, 5, 3), "float32"),
    }
    index, shares = call("aclnnRasterizer", **given)
    near = np.add.outer(np.arange(5), np.arange(5)) <= 4
    # The first corner of the near triangle is halved by its w: it reaches from (-0.5, -0.5).
    assert set(index.ravel()) <= {1, 2} and index[0, 0] == 1 and index[4, 4] == 1
    assert (index[~near] == 1).all()
    np.testing.assert_allclose(shares.sum(-1), 1, rtol=1e-6)
    place = (shares[..., None] * corners[given["f"][index - 1]]).sum(2)
    at = place[..., :2] / place[..., 3:]
    want = np.stack(np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5)), -1)
    np.testing.assert_allclose(at, want, atol=1e-5)
    prior = np.full((5, 5), 0.25, F)
    hidden, _ = call("aclnnRasterizer", **{**given, "dOptional": prior, "useDepthPrior": 1})
    assert (hidden == 1).all()
    assert refused("aclnnRasterizer", **{**given, "useDepthPrior": 1}) == 161001
    assert refused("aclnnRasterizer", **{**given, "useDepthPrior": 2}) == 161002
    assert refused("aclnnRasterizer", **{**given, "width": 0}) == 161002


@pytest.mark.parametrize("layout", ["BNSD", "BSND"])
@pytest.mark.parametrize("mode", [0, 2, 3])
def test_attention_of_scaled_blocks(layout: str, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes stand for numbers of HIFLOAT8 between 1 and 2, whose last three bits count eighths."""
    monkeypatch.setitem(CODES, "uint8", 34)
    q, k, v = (RNG.integers(8, 16, s).astype(np.uint8) for s in ((1, 2, 130, 4), (1, 1, 260, 4), (1, 1, 260, 4)))
    first, second, third = (RNG.uniform(0.5, 1, (1, n, 2, 1)).astype(F) for n in (2, 1, 1))
    mask = RNG.random((130, 260)) < 0.3
    a, b, c = (1 + (x & 7) / 8 for x in (q, k, v))
    a = a * np.repeat(wide(first), 128, 2)[:, :, :130]
    b, c = (x * np.repeat(wide(s), 256, 2)[:, :, :260] for x, s in ((b, second), (c, third)))
    score = a @ b.swapaxes(2, 3) * 0.5
    hidden = mask if mode == 0 else np.triu(np.ones((130, 260), bool), 1 if mode == 2 else 131)
    score = np.where(hidden, -np.inf, score)
    top = score.max(-1, keepdims=True)
    e = np.exp(score - top)
    want = e / e.sum(-1, keepdims=True) @ c

    def laid(x: np.ndarray) -> np.ndarray:
        return x if layout == "BNSD" else np.ascontiguousarray(x.swapaxes(1, 2))

    given = {
        "query": laid(q),
        "key": laid(k),
        "value": laid(v),
        "attenMaskOptional": mask if mode == 0 else None,
        "dScaleQ": first,
        "dScaleK": second,
        "dScaleV": third,
        "pScale": np.array([16], F),
        "scaleValue": 0.5,
        "preTokens": 65536,
        "nextTokens": 65536,
        "headNum": 2,
        "inputLayout": layout,
        "sparseMode": mode,
        "softmaxMaxOut": Out((1, 2, 130, 8)),
        "softmaxSumOut": Out((1, 2, 130, 8)),
        "softmaxOutout": None,
        "attentionOutOut": Out(laid(want).shape, "bfloat16"),
    }
    got = dict(zip(("softmaxMaxOut", "softmaxSumOut", "out"), call("aclnnQuantFlashAttentionScore", **given)))
    assert_same(got["softmaxMaxOut"], np.repeat(top, 8, -1).astype(F), 8)
    assert_same(got["softmaxSumOut"], np.repeat(e.sum(-1, keepdims=True), 8, -1).astype(F), 8)
    np.testing.assert_allclose(wide(got["out"]), laid(want), rtol=0.1)  # weights of three bits
    assert refused("aclnnQuantFlashAttentionScore", **{**given, "sparseMode": 1}) == 161002
    assert refused("aclnnQuantFlashAttentionScore", **{**given, "headNum": 3}) == 161002
    assert refused("aclnnQuantFlashAttentionScore", **{**given, "dScaleK": np.ones((1, 1, 4, 1), F)}) == 161002
