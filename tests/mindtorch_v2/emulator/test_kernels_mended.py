"""Rules that operators keep otherwise than their documents seem to say: each was found by a vendor example."""

from __future__ import annotations

from ctypes import byref, c_int32, c_void_p
from typing import Any

import numpy as np
import pytest

from ._emulator import Runtime, isolated, load
from ._kernels import In, Out, Reuse, Scalar, assert_same, call, refused

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_relu_grad_has_its_argument_first() -> None:
    x, y = np.array([-1, 0, 2], np.float32), np.array([5, 6, 7], np.float32)
    assert call("aclnnReluGradV3", x=x, y=y, z=Out((3,))).tolist() == [0, 0, 7]


@pytest.mark.parametrize("invert", [False, True])
def test_a_scalar_among_elements_is_one_answer(invert: bool) -> None:
    for number, found in ((3, True), (9, False)):
        got = call("aclnnIsInScalarTensor", element=number, testElements=np.arange(4), assumeUnique=False,
                   invert=invert, out=Out((), "bool"))  # fmt: skip
        assert got.shape == () and bool(got) == (found != invert)
    assert refused("aclnnIsInScalarTensor", element=1, testElements=np.arange(4), out=Out((4,), "bool")) == 161002


def test_gather_mode() -> None:
    x = floats(4, 3)
    values: dict[str, Any] = {"self": x, "dim": 0, "index": np.array([2, 0]), "batchDims": 0, "out": Out((2, 3))}
    assert_same(call("aclnnGatherV3", **values, mode=1), x[[2, 0]])
    assert refused("aclnnGatherV3", **values, mode=0) == 161002


def test_a_negative_scale_is_none() -> None:
    x = floats(1, 2, 4)
    values: dict[str, Any] = {"self": x, "outputSize": [8], "alignCorners": False, "out": Out((1, 2, 8))}
    assert_same(call("aclnnUpsampleLinear1d", **values, scale=-1.0), call("aclnnUpsampleLinear1d", **values, scale=0.0))
    assert refused("aclnnUpsampleNearest1dV2", self=x, outputSize=[8], scaleL=-1.0, out=Out((1, 2, 8))) == 161002


def test_formats_that_are_not_looked_at() -> None:
    got = call("aclnnUpsampleLinear1dBackward", gradOut=np.ones((1, 1, 4), np.float32), outputSize=[4],
               inputSize=[1, 1, 2], alignCorners=False, scales=0.0, out=Out((1, 1, 2)))  # fmt: skip
    assert got.sum() == 4
    x, grid = floats(1, 1, 2, 2, 2), np.zeros((1, 1, 1, 1, 3), np.float32)
    dx, _ = call("aclnnGridSampler3DBackward", gradOutput=np.ones((1, 1, 1, 1, 1), np.float32), input=x, grid=grid,
                 interpolationMode=0, paddingMode=0, alignCorners=False, outputMask=[True, True],
                 inputGrad=Out(x.shape), gridGrad=Out(grid.shape))  # fmt: skip
    assert_same(dx, np.full(x.shape, 0.125, np.float32))
    dy, x = floats(3, 4), floats(3, 4)
    args: dict[str, Any] = {"rstd": np.ones(3, np.float32), "gamma": np.ones(4, np.float32)}
    odd = call("aclnnRmsNormGrad", dy=In(dy, "NCDHW"), x=In(x, "NCDHW"), **args, dxOut=Out((3, 4), format="NCDHW"),
               dgammaOut=Out((4,)))  # fmt: skip
    plain = call("aclnnRmsNormGrad", dy=dy, x=x, **args, dxOut=Out((3, 4)), dgammaOut=Out((4,)))
    for a, b in zip(odd, plain):
        assert_same(a, b)


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_plain_batches_are_normalized_below_five_dimensions(rank: int) -> None:
    x = floats(*(6, 2, 3, 2, 2)[:rank])
    values: dict[str, Any] = {"input": x, "training": True, "momentum": 0.1, "eps": 0.0, "output": Out(x.shape),
                              "saveMean": Out((2,)), "saveInvstd": Out((2,))}  # fmt: skip
    if rank == 5:
        assert refused("aclnnBatchNorm", **values) == 161002
        return
    axes = tuple(i for i in range(rank) if i != 1)
    got = call("aclnnBatchNorm", **values)[0]
    assert_same(got, (x - x.mean(axes, keepdims=True)) / x.std(axes, keepdims=True), 4)


def test_the_diagonal_takes_numbers_that_can_be_cast() -> None:
    x = np.zeros((2, 2), np.float32)
    for value in (Scalar(1.5, "float32"), Scalar(1.5, "float64"), Scalar(1, "int64"), Scalar(True, "bool")):
        got = call("aclnnInplaceFillDiagonal", selfRef=x, fillValue=value, wrap=False)
        assert got.tolist() == [[float(value.value), 0], [0, float(value.value)]]
    assert refused("aclnnInplaceFillDiagonal", selfRef=np.zeros((2, 2), np.int32), fillValue=1j, wrap=False) == 161002


@pytest.mark.parametrize("wrap", (False, True))
def test_the_diagonal_of_a_vector(wrap: bool) -> None:
    """The elements whose indices are all equal: every one."""
    got = call("aclnnInplaceFillDiagonal", selfRef=np.arange(5, dtype=np.float32), fillValue=7, wrap=wrap)
    assert got.tolist() == [7.0] * 5
    cube = np.zeros((2, 2, 2), np.float32)
    assert refused("aclnnInplaceFillDiagonal", selfRef=cube, fillValue=7, wrap=wrap) == 161002


def test_truth_in_other_dtypes() -> None:
    x = np.array([[0, 1], [0, 0]], np.int32)
    got = call("aclnnAny", self=x, dim=[1], keepdim=False, out=Out((2,), "uint8"))
    assert got.dtype == np.uint8 and got.tolist() == [1, 0]
    signs = np.array([-1, 2], np.float32)
    for dtype in ("bool", "float32", "float16", "int32", "uint8", "int64"):
        assert call("aclnnSignbit", self=signs, out=Out((2,), dtype)).tolist() == [1, 0]


def test_signed_seeds() -> None:
    drawn = [
        call("aclnnInplaceUniformTensor", selfRef=np.zeros(64, np.float32), **{"from": 2.0}, to=3.0,
             seedTensor=np.array([5], kind), offsetTensor=np.array([0], kind), offset=0)
        for kind in (np.int64, np.uint64)
    ]  # fmt: skip
    assert_same(drawn[0], drawn[1])
    assert drawn[0].min() >= 2 and drawn[0].max() < 3 and len(set(drawn[0].tolist())) > 60


def test_gradients_promote() -> None:
    g, x = np.ones(3, np.float16), np.array([-1, 0, 1], np.float32)
    got = call("aclnnGeluBackward", gradOutput=g, self=x, gradInput=Out((3,)))
    assert_same(got, call("aclnnGeluBackward", gradOutput=g.astype(np.float32), self=x, gradInput=Out((3,))))


def test_pointers_that_may_be_null() -> None:
    x = floats(4, 2)
    assert_same(call("aclnnBatchNormElemt", input=In(x, "NC"), eps=0.0, output=Out((4, 2), format="NC")), x)
    mean = np.array([1, 2], np.float32)
    got = call("aclnnBatchNormElemt", input=In(x, "NC"), mean=mean, eps=0.0, output=Out((4, 2), format="NC"))
    assert_same(got, x - mean)

    q = floats(1, 2, 4, 16)
    options: dict[str, Any] = {"scaleValue": 1.0, "keepProb": 1.0, "preTokens": 65536, "nextTokens": 65536,
                               "headNum": 2, "inputLayout": "BNSD", "innerPrecise": 0, "sparseMode": 0,
                               "pseType": 1}  # fmt: skip
    top, total, out = call("aclnnFlashAttentionScoreV2", query=q, key=q, value=q, **options,
                           softmaxMaxOut=Out((1, 2, 4, 8)), softmaxSumOut=Out((1, 2, 4, 8)),
                           attentionOutOut=Out(q.shape))  # fmt: skip
    grads = call("aclnnFlashAttentionScoreGradV2", query=q, keyIn=q, value=q, dy=np.ones_like(q),
                 softmaxMaxOptional=top, softmaxSumOptional=total, attentionInOptional=out, **options,
                 dqOut=Out(q.shape), dkOut=Out(q.shape), dvOut=Out(q.shape))  # fmt: skip
    assert len(grads) == 3
    assert refused("aclnnFlashAttentionScoreV2", query=q, key=None, value=q, **options) == 161001

    angles = np.ones((1, 4, 1, 16), np.float32)
    dy = floats(1, 4, 2, 16)
    values: dict[str, Any] = {"dy": dy, "cos": angles, "sin": angles * 0, "mode": 0, "dxOut": Out(dy.shape)}
    assert_same(call("aclnnRotaryPositionEmbeddingGrad", **values), dy)
    assert refused("aclnnRotaryPositionEmbeddingGrad", **values, xOptional=dy) == 161001


def test_a_prefix_that_nothing_looks_at() -> None:
    q = floats(4, 1, 16)
    options: dict[str, Any] = {"scaleValue": 0.25, "keepProb": 1.0, "preTokens": 65536, "nextTokens": 65536,
                               "headNum": 1, "inputLayout": "SBH", "innerPrecise": 0, "sparseMode": 0}  # fmt: skip
    outs = {"softmaxMaxOut": Out((1, 1, 4, 8)), "softmaxSumOut": Out((1, 1, 4, 8)), "attentionOutOut": Out(q.shape)}
    plain, given = (
        call("aclnnFlashAttentionScore", query=q, key=q, value=q, prefixOptional=prefix, **options, **outs)[2]
        for prefix in (None, [0])
    )
    assert_same(given, plain)
    values = {**options, "sparseMode": 5, "prefixOptional": [0]}
    assert refused("aclnnFlashAttentionScore", query=q, key=q, value=q, **values, **outs) == 161002


@pytest.mark.parametrize("name", ["aclnnPromptFlashAttentionV2", "aclnnPromptFlashAttentionV3"])
def test_shifted_scores_of_short_sequences(name: str) -> None:
    q, k, v = (floats(2, 2, n, 16).astype(np.float16) for n in (4, 6, 6))
    shift = floats(1, 2, 4, 6).astype(np.float16)
    got = call(name, query=q, key=k, value=v, pseShift=shift, actualSeqLengths=[3, 4], actualSeqLengthsKv=[5, 6],
               numHeads=2, scaleValue=0.25, preTokens=2**31 - 1, nextTokens=2**31 - 1, inputLayout="BNSD",
               numKeyValueHeads=2, sparseMode=0, **({"innerPrecise": 1} if name.endswith("V3") else {}),
               attentionOut=Out(q.shape, "float16"))  # fmt: skip
    want = np.zeros(q.shape)
    for b, (n, m) in enumerate(((3, 5), (4, 6))):
        logits = 0.25 * q[b, :, :n].astype(float) @ k[b, :, :m].astype(float).swapaxes(1, 2) + shift[0, :, :n, :m]
        p = np.exp(logits)
        want[b, :, :n] = p / p.sum(-1, keepdims=True) @ v[b, :, :m].astype(float)
    assert_same(got, want.astype(np.float16), 4)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_norms_of_lists_go_anywhere_with_one_element(shape: tuple[int, ...]) -> None:
    x = floats(3, 4)
    got = call("aclnnForeachNorm", x=[x], scalar=Scalar(2.0, "float32"), out=[Out(shape)])
    assert_same(got, np.linalg.norm(x).reshape(shape).astype(np.float32))


def test_outputs_of_the_real_size() -> None:
    x = np.array([[0, 1, 2], [0, 0, 3]], np.int32)
    for columns in (3, 6):
        assert call("aclnnNonzeroV2", self=x, out=Out((2, columns), "int64")).tolist() == [[0, 0, 1], [1, 2, 2]]
    assert refused("aclnnNonzeroV2", self=x, out=Out((2, 7), "int64")) == 161002
    assert (
        refused("aclnnNonzeroV2", self=x, out=Out((2, 2), "int64")) != 0
    )  # the kernel finds more than there is room for
    rows = np.array([[1, 2], [0, 1], [1, 2]], np.int32)
    for size in (2, 3):
        values, inverse, counts = call("aclnnUniqueDim", self=rows, sorted=True, returnInverse=True, dim=0,
                                       valueOut=Out((size, 2), "int32"), inverseOut=Out((3,), "int64"),
                                       countsOut=Out((size,), "int64"))  # fmt: skip
        assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([[0, 1], [1, 2]], [1, 0, 1], [1, 2])


@isolated()
def test_operators_may_be_initialised_first(rt: Runtime) -> None:
    device = c_int32()
    assert rt.aclrtSetDevice(0) == 100001
    assert load("nnopbase").aclnnInit(None) == 0
    rt.ok.aclrtSetDevice(0)
    assert rt.aclrtGetDevice(byref(device)) == 0
    rt.ok.aclrtFree(rt.malloc(8))
    assert rt.aclInit(None) == 0


def test_optimizers_write_where_they_read() -> None:
    state = {name: floats(5) for name in ("var", "m", "v", "grad")}
    state["v"] = np.abs(state["v"])
    rates: dict[str, Any] = {"beta1Power": 0.9, "lr": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8}
    apart = call("aclnnApplyAdamax", **state, **rates, **{f"{n}Out": Out((5,)) for n in ("var", "m", "v")})
    reused = call("aclnnApplyAdamax", **state, **rates, **{f"{n}Out": Reuse(n) for n in ("var", "m", "v")})
    for a, b in zip(apart, reused):
        assert_same(a, b)
    with pytest.raises(AssertionError, match="alias"):  # but not over another input
        call("aclnnApplyAdamax", **state, **rates, varOut=Reuse("grad"), mOut=Out((5,)), vOut=Out((5,)))
    tensors = {name: np.array([value], np.float32) for name, value in {**rates, "beta2Power": 0.99}.items()}
    flags = {"useLocking": False, "useNesterov": False}
    apart = call("aclnnApplyAdamD", **state, **tensors, **flags, **{f"{n}Out": Out((5,)) for n in ("var", "m", "v")})
    reused = call("aclnnApplyAdamD", **state, **tensors, **flags, **{f"{n}Out": Reuse(n) for n in ("var", "m", "v")})
    for a, b in zip(apart, reused):
        assert_same(a, b)
    names = ("var", "accum", "accumUpdate")
    given: dict[str, Any] = {n: np.abs(floats(5)) for n in (*names, "grad")}
    given |= {"lr": 0.1, "rho": 0.9, "epsilon": 1e-6}
    apart = call("aclnnApplyAdadelta", **given, **{f"{n}Out": Out((5,)) for n in names})
    reused = call("aclnnApplyAdadelta", **given, **{f"{n}Out": Reuse(n) for n in names})
    for a, b in zip(apart, reused):
        assert_same(a, b)


def test_log_space_is_a_line() -> None:
    got = call("aclnnLogSpace", start=0.0, end=2.0, steps=3, base=10.0, result=Out((3,)))
    assert_same(got, np.array([1, 10, 100], np.float32))


@pytest.mark.parametrize(("onesided", "normalized"), [(True, False), (False, True)])
@pytest.mark.parametrize("complex_out", [True, False])
def test_short_time_fourier(onesided: bool, normalized: bool, complex_out: bool) -> None:
    x, window, size, hop = floats(2, 20), floats(6), 8, 3
    padded = np.pad(window, (1, 1))
    frames = np.stack([x[:, i : i + size] * padded for i in range(0, 20 - size + 1, hop)], 1)
    want = (np.fft.rfft if onesided else np.fft.fft)(frames, axis=-1).transpose(0, 2, 1)
    want = (want / np.sqrt(size) if normalized else want).astype(np.complex64)
    expected = want if complex_out else np.stack([want.real, want.imag], -1)
    values: dict[str, Any] = {"self": x, "windowOptional": window, "nFft": size, "hopLength": hop, "winLength": 6,
                              "normalized": normalized, "onesided": onesided, "returnComplex": complex_out}  # fmt: skip
    assert_same(call("aclStft", **values, out=Out(expected.shape, expected.dtype.name)), expected, 8)
    for wrong in ({"nFft": 21}, {"hopLength": 0}, {"winLength": 9}, {"windowOptional": floats(5)}):
        assert refused("aclStft", **{**values, **wrong}, out=Out(expected.shape, expected.dtype.name)) == 161002


@isolated(ASCEND_EMULATOR_CHIP="310P")
def test_sleep_takes_an_array_or_a_tensor(rt: Runtime) -> None:
    ops, base = load("opapi"), load("nnopbase")
    import ctypes
    import time

    rt.start()
    base.aclCreateIntArray.restype = base.aclCreateTensor.restype = c_void_p
    address = rt.malloc(64)
    rt.upload(address, (1_000_000).to_bytes(8, "little"))
    one = (ctypes.c_int64 * 1)(1)
    cycles = (ctypes.c_int64 * 1)(1_000_000)  # of 20 ns
    array = base.aclCreateIntArray(cycles, ctypes.c_uint64(1))
    tensor = base.aclCreateTensor(one, ctypes.c_uint64(1), 9, one, ctypes.c_int64(0), 2, one, ctypes.c_uint64(1),
                                  c_void_p(address))  # fmt: skip
    for handle in (array, tensor):
        size, executor = ctypes.c_uint64(), c_void_p()
        assert ops.aclnnSleepGetWorkspaceSize(c_void_p(handle), byref(size), byref(executor)) == 0
        began = time.monotonic()
        assert ops.aclnnSleep(None, size, executor, None) == 0
        rt.ok.aclrtSynchronizeStream(None)
        assert time.monotonic() - began >= 0.02


def turned(x: np.ndarray, mode: int) -> np.ndarray:
    """What the cosines and what the sines are multiplied with."""
    if mode == 2:
        a, b, c, d = np.split(x, 4, -1)
        return np.stack([x, np.concatenate([-b, a, -d, c], -1)])
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([np.concatenate([even, odd], -1), np.concatenate([-odd, even], -1)])


@pytest.mark.parametrize("mode", [2, 3])
def test_other_ways_to_turn(mode: int) -> None:
    x, cos, sin, dy = floats(2, 3, 2, 16), floats(2, 3, 1, 16), floats(2, 3, 1, 16), floats(2, 3, 2, 16)
    parts = turned(x, mode)
    got = call("aclnnRotaryPositionEmbedding", x=x, cos=cos, sin=sin, mode=mode, out=Out(x.shape))
    assert_same(got, parts[0] * cos + parts[1] * sin, 2)
    outs = {"dxOut": Out(x.shape), "dcosOut": Out(cos.shape), "dsinOut": Out(sin.shape)}
    dx, dcos, dsin = call("aclnnRotaryPositionEmbeddingGrad", dy=dy, cos=cos, sin=sin, xOptional=x, mode=mode, **outs)
    assert_same(dcos, (parts[0] * dy).sum(2, keepdims=True), 4)
    assert_same(dsin, (parts[1] * dy).sum(2, keepdims=True), 4)
    flow = np.zeros(x.shape)  # column by column: both parts are linear in x
    for k, unit in enumerate(np.eye(16)):
        column = turned(unit, mode)
        flow[..., k] = (dy * (column[0] * cos + column[1] * sin)).sum(-1)
    assert_same(dx, flow.astype(np.float32), 8)
    odd = floats(2, 3, 2, 6)
    assert refused("aclnnRotaryPositionEmbedding", x=odd, cos=odd, sin=odd, mode=2, out=Out(odd.shape)) == 161002
