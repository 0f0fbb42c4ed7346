"""Weights in the matrix unit's blocks, of 8 and of 4 bits, and the products that read them, against NumPy."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int, c_int64, c_uint64, c_void_p
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ._direct import Direct, check, check_refusals, each
from ._kernels import HALF_BYTES, In, Out, call, device, int64s, refused
from .test_kernels_quantized_norm import F, H, make, to_bytes, wide

RNG = np.random.default_rng(29)
BF = ml_dtypes.bfloat16


def blocks(x: np.ndarray) -> np.ndarray:
    """(..., rows, columns) as columns of blocks of 16 rows and 32 bytes."""
    width = 64 if x.dtype.name in HALF_BYTES else 32 // x.dtype.itemsize
    rows, columns = -(-x.shape[-2] // 16), -(-x.shape[-1] // width)
    padded = np.zeros((*x.shape[:-2], rows * 16, columns * width), x.dtype)
    padded[..., : x.shape[-2], : x.shape[-1]] = x
    apart = padded.reshape(*x.shape[:-2], rows, 16, columns, width)
    return np.ascontiguousarray(np.moveaxis(apart, -2, -4))


def nz(x: np.ndarray) -> In:
    return In(blocks(x), "FRACTAL_NZ", x.shape)


def whole(*shape: int) -> np.ndarray:
    return RNG.integers(-20, 20, shape).astype(np.int8)


def halves(*shape: int) -> np.ndarray:
    return RNG.integers(-8, 8, shape).astype(ml_dtypes.int4)


def in_words(x: np.ndarray) -> np.ndarray:
    """Eight integers of four bits in each INT32."""
    codes = (x.astype(np.int64) & 15).reshape(*x.shape[:-1], -1, 8)
    words = (codes << (4 * np.arange(8))).sum(-1)
    return words.astype(np.uint32).view(np.int32)


X, W = make(5, 20), make(20, 18)
BATCH_X, BATCH_W = make(3, 5, 20), make(3, 20, 18)
SELF = make(18)
IX, IW = whole(5, 40), whole(40, 34)
SCALE = RNG.uniform(0.01, 0.03, 34).astype(F)
TOKEN = RNG.uniform(0.5, 1.5, 5).astype(F)
EXACT = IX.astype(float) @ IW.astype(float)
QUANT: dict[str, Any] = {"x1": IX, "x2": nz(IW), "x1Scale": TOKEN, "x2Scale": SCALE, "transposeX1": False,
                         "transposeX2": False, "groupSize": 0}  # fmt: skip

ROWS, GROUPS, INNER, WIDTH = 7, 3, 32, 64
LIST = np.array([2, 2, 6])  # ends; row 6 belongs to no group
OF = np.array([0, 0, 2, 2, 2, 2])
GX, GW, GH = whole(ROWS, INNER), whole(GROUPS, INNER, WIDTH), halves(GROUPS, INNER, WIDTH)
GSCALE = RNG.uniform(0.001, 0.003, (GROUPS, WIDTH)).astype(F)
GTOKEN = RNG.uniform(0.5, 1.5, ROWS).astype(F)
GY = np.zeros((ROWS, WIDTH))
GY[:6] = np.einsum("ik,ikj->ij", GX[:6].astype(float), GW[OF].astype(float)) * wide(GSCALE)[OF] * wide(GTOKEN)[:6, None]
GBIAS = (8 * GH.astype(float).sum(1) * wide(GSCALE)).astype(F)
HY = np.zeros((ROWS, WIDTH))
HY[:6] = np.einsum("ik,ikj->ij", GX[:6].astype(float), GH[OF].astype(float)) * wide(GSCALE)[OF] * wide(GTOKEN)[:6, None]
CODED = GSCALE.view(np.uint32).astype(np.int64)


def gated(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = y.shape[1] // 2
    g = y[:, :half] / (1 + np.exp(-y[:, :half])) * y[:, half:]
    step = np.abs(g).max(-1) / 127
    return to_bytes(g / np.where(step > 0, step, 1)[:, None]), step.astype(F)


SWIGLU, STEP = gated(GY)
SWIGLU_HALVES, STEP_HALVES = gated(HY)
LOGIT = make(ROWS, dtype=F)
TOKENS = np.array([3, 0, 3, 1, 2, 0, 1])
SHARED = make(2, WIDTH, dtype=BF)


def finalized(y: np.ndarray) -> np.ndarray:
    out = np.zeros((4, WIDTH))
    out[1:3] = wide(SHARED) * 0.5
    for i in range(6):
        out[TOKENS[i]] += y[i] * float(LOGIT[i])
    return out.astype(F)


V1: dict[str, Any] = {"x": GX, "weightScale": GSCALE, "xScale": GTOKEN, "groupList": LIST}
V2: dict[str, Any] = {"x": GX, "weightScale": [GSCALE], "xScale": GTOKEN, "groupList": np.array([2, 0, 4]),
                      "dequantMode": 0, "dequantDtype": 0, "quantMode": 0, "groupListType": 1}  # fmt: skip
ROUTE: dict[str, Any] = {"dtype": 0, "sharedInputWeight": 0.5, "sharedInputOffset": 1, "groupListType": 0}
NAMES1 = {"scaleOptional": CODED, "biasOptional": GBIAS, "pertokenScaleOptional": GTOKEN, "groupListOptional": LIST,
          "sharedInputOptional": SHARED, "logitOptional": LOGIT, "rowIndexOptional": TOKENS}  # fmt: skip
NAMES2 = {"pertokenScaleOptional": GTOKEN, "groupList": LIST, "sharedInput": SHARED, "logit": LOGIT, "rowIndex": TOKENS}
STRAIGHT = {"transposeX1": False, "transposeX2": False}
FX, FW, FBIAS = whole(5, 16), whole(16, 12), RNG.integers(-50, 50, 12).astype(np.int32)
FSCALE = RNG.uniform(0.01, 0.03, 12).astype(F)
FUSED = (FX.astype(float) @ FW.astype(float) + FBIAS) * wide(FSCALE) * wide(TOKEN)[:, None]
ANTI, SHIFT = make(2, 32), make(2, 32)
ANTI_W = halves(32, 32)
ANTI_FULL = (ANTI_W.astype(float) + np.repeat(wide(SHIFT), 16, 0)[:32]) * np.repeat(wide(ANTI), 16, 0)[:32]
ANTI_X = make(5, 32)
SUM_X, SUM_W, SUM_ROWS = whole(2, 5, 32), whole(2, 32, 34), RNG.uniform(0.5, 1.5, (2, 5)).astype(F)
SUM_SCALE = SCALE.astype(BF)
GROUP_W = make(GROUPS, 20, 18)
GROUP_X = make(ROWS - 1, 20)

CASES = [
    Direct(
        "aclnnMatmulWeightNz", {"self": X, "mat2": nz(W), "cubeMathType": 0}, {"out": (wide(X) @ wide(W)).astype(H)}
    ),
    Direct(
        "aclnnAddmmWeightNz",
        {"self": SELF, "mat1": X, "mat2": nz(W), "beta": 0.5, "alpha": 2.0, "cubeMathType": 0},
        {"out": (0.5 * wide(SELF) + 2 * wide(X) @ wide(W)).astype(H)},
    ),
    Direct(
        "aclnnBatchMatMulWeightNz",
        {"self": BATCH_X, "mat2": nz(BATCH_W), "cubeMathType": 0},
        {"out": (wide(BATCH_X) @ wide(BATCH_W)).astype(H)},
    ),
    Direct(
        "aclnnTransposeBatchMatMulWeightNz",
        {
            "x1": BATCH_X,
            "x2": nz(BATCH_W),
            "permX1": [0, 1, 2],
            "permX2": [0, 1, 2],
            "permY": [1, 0, 2],
            "cubeMathType": 0,
            "batchSplitFactor": 1,
        },
        {"out": (wide(BATCH_X) @ wide(BATCH_W)).transpose(1, 0, 2).astype(H)},
    ),
    Direct("aclnnQuantMatmulWeightNz", QUANT, {"out": (EXACT * wide(SCALE) * wide(TOKEN)[:, None]).astype(H)}),
    Direct(
        "aclnnQuantMatmulWeightNz",
        {**QUANT, "x2": nz(np.ascontiguousarray(IW.T)), "transposeX2": True},
        {"out": (EXACT * wide(SCALE) * wide(TOKEN)[:, None]).astype(H)},
    ),
    Direct(
        "aclnnQuantMatmulReduceSumWeightNz",
        {
            "x1": SUM_X,
            "x2": nz(SUM_W),
            "x1Scale": SUM_ROWS,
            "x2Scale": SUM_SCALE,
            "dims": [0],
            "keepDims": False,
            "groupSize": 0,
            **STRAIGHT,
        },
        {
            "out": (
                (SUM_X.astype(float) @ SUM_W.astype(float) * wide(SUM_ROWS)[..., None]).sum(0) * wide(SUM_SCALE)
            ).astype(BF)
        },
    ),
    Direct(
        "aclnnWeightQuantBatchMatmulNz",
        {
            "x": ANTI_X,
            "weight": nz(ANTI_W),
            "antiquantScale": ANTI,
            "antiquantOffsetOptional": SHIFT,
            "antiquantGroupSize": 16,
        },
        {"y": (wide(ANTI_X) @ ANTI_FULL).astype(H)},
        20,
    ),
    Direct(
        "aclnnWeightQuantBatchMatmulV2",
        {
            "x": ANTI_X,
            "weight": in_words(ANTI_W),
            "antiquantScale": ANTI,
            "antiquantOffsetOptional": SHIFT,
            "antiquantGroupSize": 16,
        },
        {"y": (wide(ANTI_X) @ ANTI_FULL).astype(H)},
        20,
    ),
    Direct("aclnnConvertWeightToINT4Pack", {"weight": ANTI_W.astype(np.int32)}, {"weightInt4Pack": ANTI_W}),
    Direct("aclnnConvertWeightToINT4Pack", {"weight": ANTI_W.astype(np.int32)}, {"weightInt4Pack": in_words(ANTI_W)}),
    Direct("aclnnGroupedMatmulSwigluQuant", {**V1, "weight": GW}, {"output": SWIGLU, "outputScale": STEP}),
    Direct(
        "aclnnGroupedMatmulSwigluQuant",
        {**V1, "weight": GH, "bias": GBIAS},
        {"output": SWIGLU_HALVES, "outputScale": STEP_HALVES},
    ),
    Direct("aclnnGroupedMatmulSwigluQuantWeightNZ", {**V1, "weight": nz(GW)}, {"output": SWIGLU, "outputScale": STEP}),
    Direct("aclnnGroupedMatmulSwigluQuantV2", {**V2, "weight": [GW]}, {"output": SWIGLU, "outputScale": STEP}),
    Direct(
        "aclnnGroupedMatmulSwigluQuantWeightNzV2", {**V2, "weight": [nz(GW)]}, {"output": SWIGLU, "outputScale": STEP}
    ),
    Direct(
        "aclnnGroupedMatmulFinalizeRouting",
        {"x": GX, "w": GH, **NAMES1, **ROUTE, "transposeX": False, "transposeW": False},
        {"y": finalized(HY)},
        40,
        ("y",),
    ),
    Direct(
        "aclnnGroupedMatmulFinalizeRoutingV2",
        {"x1": GX, "x2": GH, **NAMES1, **ROUTE, **STRAIGHT},
        {"out": finalized(HY)},
        40,
        ("out",),
    ),
    Direct(
        "aclnnGroupedMatmulFinalizeRoutingV3",
        {"x1": GX, "x2": in_words(GH), **NAMES1, **ROUTE, **STRAIGHT},
        {"out": finalized(HY)},
        40,
        ("out",),
    ),
    Direct(
        "aclnnGroupedMatmulFinalizeRoutingWeightNz",
        {"x1": GX, "x2": nz(GW), "scale": GSCALE, **NAMES2, **ROUTE, **STRAIGHT},
        {"out": finalized(GY)},
        40,
        ("out",),
    ),
    Direct(
        "aclnnGroupedMatmulFinalizeRoutingWeightNzV2",
        {"x1": GX, "x2": nz(GW), "scale": GSCALE, **NAMES2, **ROUTE, **STRAIGHT},
        {"out": finalized(GY)},
        40,
        ("out",),
    ),
    Direct(
        "aclnnFusedQuantMatmul",
        {
            "x1": FX,
            "x2": FW,
            "x1Scale": TOKEN,
            "x2Scale": FSCALE,
            "biasOptional": FBIAS,
            "fusedOpType": "relu",
            "groupSizeOptional": 0,
        },
        {"out": np.maximum(FUSED, 0).astype(H)},
    ),
    Direct(
        "aclnnFusedQuantMatmulWeightNz",
        {
            "x1": FX,
            "x2": nz(FW),
            "x1Scale": TOKEN,
            "x2Scale": FSCALE,
            "biasOptional": FBIAS,
            "fusedOpType": "",
            "groupSizeOptional": 0,
        },
        {"out": FUSED.astype(H)},
    ),
]


@each(CASES)
def test_weights(case: Direct) -> None:
    check(case)


@each([case for case in CASES if case.name not in ("aclnnConvertWeightToINT4Pack", "aclnnWeightQuantBatchMatmulV2")])
def test_weights_refused(case: Direct) -> None:
    check_refusals(case)


@pytest.mark.parametrize("blocked", [False, True])
def test_grouped_matmul(blocked: bool) -> None:
    want = np.einsum("ik,ikj->ij", wide(GROUP_X), wide(GROUP_W)[OF])
    values = {
        "x": [GROUP_X],
        "groupListOptional": LIST,
        "splitItem": 3,
        "groupType": 0,
        "groupListType": 0,
        "actType": 0,
    }
    if blocked:
        got = call(
            "aclnnGroupedMatmulWeightNz",
            **values,
            weight=[nz(GROUP_W)],
            quantGroupSize=0,
            out=[Out((6, 18), "float16")],
        )
    else:
        got = call("aclnnGroupedMatmulV4", **values, weight=[GROUP_W], out=[Out((6, 18), "float16")])
    np.testing.assert_allclose(wide(got), want, rtol=4e-3, atol=4e-3)


def test_grouped_matmul_of_half_bytes() -> None:
    scale, shift = make(GROUPS, WIDTH), make(GROUPS, WIDTH)
    x = make(6, INNER)
    matrices = (GH.astype(float) + wide(shift)[:, None]) * wide(scale)[:, None]
    got = call(
        "aclnnGroupedMatmulV4",
        x=[x],
        weight=[GH],
        antiquantScaleOptional=[scale],
        antiquantOffsetOptional=[shift],
        groupListOptional=LIST,
        splitItem=3,
        groupType=0,
        groupListType=0,
        actType=0,
        out=[Out((6, WIDTH), "float16")],
    )
    np.testing.assert_allclose(wide(got), np.einsum("ik,ikj->ij", wide(x), matrices[OF]), rtol=4e-3, atol=4e-2)


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.float32])
def test_format_cast(dtype: Any) -> None:
    x = RNG.integers(-9, 9, (2, 19, 35)).astype(dtype)
    shape = blocks(x).shape
    there = call("aclnnNpuFormatCast", srcTensor=x, dstTensor=In(np.full(shape, 77, dtype), "FRACTAL_NZ", x.shape))
    # The blocks come back through the view; what they hold is asked of the function that goes the other way.
    assert there.shape == x.shape
    back = call("aclnnNpuFormatCast", srcTensor=nz(x), dstTensor=Out(x.shape, x.dtype.name))
    np.testing.assert_array_equal(back, x)


def test_blocks_must_be_blocks() -> None:
    assert refused("aclnnMatmulWeightNz", self=X, mat2=W, cubeMathType=0, out=Out((5, 18), "float16")) == 161002
    assert refused("aclnnMatmul", self=X, mat2=nz(W), cubeMathType=0, out=Out((5, 18), "float16")) == 161002


def ask_size(shape: tuple[int, ...], dtype: int) -> int:
    dev = device()
    dev.base.aclCreateIntArray.restype = c_void_p
    array = dev.base.aclCreateIntArray(int64s(shape), c_uint64(len(shape)))
    size = c_uint64()
    code = dev.ops.aclnnCalculateMatmulWeightSizeV2(c_void_p(array), c_int(dtype), byref(size))
    if dtype == 1:
        old = c_uint64()
        assert dev.ops.aclnnCalculateMatmulWeightSize(c_void_p(array), byref(old)) == code
        assert old.value == size.value
    dev.base.aclDestroyIntArray(c_void_p(array))
    dev.check("aclnnCalculateMatmulWeightSizeV2", code)
    return int(size.value)


def test_sizes_of_weights() -> None:
    assert ask_size((20, 18), 1) == 32 * 32
    assert ask_size((20, 18), 2) == 32 * 32
    assert ask_size((3, 16, 33), 2) == 3 * 16 * 64
    with pytest.raises(Exception, match="161002"):
        ask_size((20,), 1)
    with pytest.raises(Exception, match="161002"):
        ask_size((20, 18), 9)
    assert device().ops.aclnnCalculateMatmulWeightSize(c_void_p(None), c_void_p(None)) == 161001


def test_a_weight_turned_in_place() -> None:
    """What the vendor's examples do: ask for the size, allocate, turn, multiply."""
    dev = device()
    data = np.zeros(ask_size(W.shape, 1), H)
    data[: W.size] = W.reshape(-1)
    address = dev.upload(data.tobytes())
    handle = dev.base.aclCreateTensor(int64s(W.shape), 2, 1, int64s((18, 1)), 0, 2, int64s([W.size]), 1, address)
    size, executor = c_uint64(), c_void_p()
    dev.check("phase 1", dev.ops.aclnnTransMatmulWeightGetWorkspaceSize(c_void_p(handle), byref(size), byref(executor)))
    workspace = dev.malloc(size.value)
    dev.check("phase 2", dev.ops.aclnnTransMatmulWeight(c_void_p(workspace), size, executor, c_void_p(None)))
    dev.check("sync", dev.rt.aclrtSynchronizeStream(c_void_p(None)))
    got = np.frombuffer(dev.download(address, data.nbytes), H)
    np.testing.assert_array_equal(got, blocks(W).reshape(-1))
    again = dev.ops.aclnnTransMatmulWeightGetWorkspaceSize(c_void_p(handle), byref(size), byref(executor))
    assert again == 161002
    form = ctypes.c_int()
    dev.check("format", dev.base.aclGetFormat(c_void_p(handle), byref(form)))
    assert form.value == 29
    shape, rank, actual = POINTER(c_int64)(), c_uint64(), c_int()
    ask = dev.ops.aclnnNpuFormatCastCalculateSizeAndFormat
    dev.check("ask", ask(c_void_p(handle), c_int(29), c_int(-1), byref(shape), byref(rank), byref(actual)))
    assert [shape[i] for i in range(rank.value)] == [2, 2, 16, 16] and actual.value == 29
    assert ask(c_void_p(handle), c_int(3), c_int(-1), byref(shape), byref(rank), byref(actual)) == 161002
    dev.base.aclDestroyTensor(handle)
    dev.rt.aclrtFree(address)
    dev.rt.aclrtFree(workspace)
    assert not dev.violations()


def test_integers_of_four_bits() -> None:
    x = np.arange(-8, 8).astype(np.int32).reshape(2, 8)
    got = call("aclnnConvertWeightToINT4Pack", weight=x, weightInt4Pack=Out((2, 8), "int4"))
    np.testing.assert_array_equal(got.astype(np.int32), x)
    assert refused("aclnnConvertWeightToINT4Pack", weight=x + 1, weightInt4Pack=Out((2, 8), "int4")) == 507015
