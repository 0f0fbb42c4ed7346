"""The emulator's random numbers: their statistics, and that seed and offset alone decide them.

Invariant: no value is expected of a stream that the vendor does not document; bounds are five deviations wide, and the
seeds fixed, so a passing test passes always.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import Out, Scalar, assert_same, call, refused

N = 20000


def within(x: Any, mean: float, deviation: float) -> None:
    values = np.asarray(x, np.float64)
    assert abs(values.mean() - mean) < 5 * deviation / values.size**0.5, values.mean()
    assert abs(values.std() - deviation) < 0.05 * deviation + 1e-9, values.std()


def zeros(dtype: str = "float32", n: int = N) -> np.ndarray:
    return np.zeros(n, np.dtype(dtype))


def device_seed(seed: int, offset: int, dtype: str = "int64") -> dict[str, Any]:
    return {"seedTensor": np.array([seed], dtype), "offsetTensor": np.array([offset], dtype), "offset": 4}


def uniform(seed: int = 1, offset: int = 0, low: float = -1, high: float = 3, dtype: str = "float32") -> np.ndarray:
    return call("aclnnInplaceUniform", selfRef=zeros(dtype), to=high, seed=seed, offset=offset, **{"from": low})


def test_uniform() -> None:
    x = uniform()
    within(x, 1, 4 / 12**0.5)
    assert x.min() >= -1 and x.max() < 3
    assert (uniform() == x).all() and (uniform(seed=2) != x).any() and (uniform(offset=4) != x).any()
    within(uniform(dtype="float64"), 1, 4 / 12**0.5)
    within(uniform(dtype="float16"), 1, 4 / 12**0.5)
    assert uniform(dtype="float16").max() < 3
    got = call("aclnnInplaceUniformTensor", selfRef=zeros(), to=3.0, **device_seed(1, 8, "uint64"), **{"from": -1.0})
    assert (got == uniform(offset=12)).all()
    assert refused("aclnnInplaceUniform", selfRef=zeros(), to=0.0, seed=0, offset=0, **{"from": 1.0}) == 161002


def test_normal() -> None:
    x = call("aclnnInplaceNormal", selfRef=zeros(), mean=2.0, std=0.5, seed=7, offset=0)
    within(x, 2, 0.5)
    assert abs((np.abs(x - 2) < 0.5).mean() - 0.6827) < 0.02  # the shape of the bell
    assert (call("aclnnNormalFloatFloat", mean=2.0, std=0.5, seed=7, offset=0, out=Out((N,))) == x).all()
    assert (call("aclnnInplaceNormalTensor", selfRef=zeros(), mean=2.0, std=0.5, **device_seed(7, -4)) == x).all()
    mean, std = np.full(N, 2, np.float32), np.full(N, 0.5, np.float32)
    assert (call("aclnnNormalTensorFloat", mean=mean, std=0.5, seed=7, offset=0, out=Out((N,))) == x).all()
    assert (call("aclnnNormalFloatTensor", mean=2.0, std=std, seed=7, offset=0, out=Out((N,))) == x).all()
    assert (call("aclnnNormalTensorTensor", mean=mean, std=std, seed=7, offset=0, out=Out((N,))) == x).all()
    assert refused("aclnnInplaceNormal", selfRef=zeros(), mean=0.0, std=-1.0, seed=0, offset=0) == 161002


def test_bernoulli() -> None:
    x = call("aclnnInplaceBernoulli", selfRef=zeros(), prob=0.3, seed=5, offset=4)
    within(x, 0.3, 0.21**0.5)
    assert set(np.unique(x)) == {0, 1}
    assert (call("aclnnBernoulli", self=zeros("int32"), prob=0.3, seed=5, offset=4, out=Out((N,), "int32")) == x).all()
    prob = np.full(N, 0.3, np.float32)
    prob[:10] = 1
    y = call("aclnnBernoulliTensor", self=zeros(), prob=prob, seed=5, offset=4, out=Out((N,)))
    assert (y[10:] == x[10:]).all() and (y[:10] == 1).all()
    assert (call("aclnnInplaceBernoulliTensor", selfRef=zeros(), prob=prob, seed=5, offset=4) == y).all()
    assert refused("aclnnInplaceBernoulli", selfRef=zeros(), prob=0.3, seed=5, offset=3) == 161002
    assert refused("aclnnInplaceBernoulli", selfRef=zeros(), prob=1.3, seed=5, offset=4) == 161002


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32"])
def test_integers(dtype: str) -> None:
    x = call("aclnnInplaceRandom", selfRef=zeros(dtype), to=13, seed=5, offset=0, **{"from": 3})
    assert set(np.unique(x)) == set(range(3, 13))
    within(x, 7.5, (99 / 12) ** 0.5)
    same = call("aclnnInplaceRandomTensor", selfRef=zeros(dtype), to=13, **device_seed(5, -4), **{"from": 3})
    assert (same == x).all()
    y = call("aclnnInplaceRandomWithoutFromTo", selfRef=zeros(dtype), seed=5, offset=0)
    top = {"int64": 2.0**63, "int32": 2.0**31, "uint8": 256, "float32": 2.0**24}[dtype]
    within(y / top, 0.5, 12**-0.5)
    assert y.min() >= 0
    assert (call("aclnnInplaceRandomWithoutFromToTensor", selfRef=zeros(dtype), **device_seed(5, -4)) == y).all()
    assert refused("aclnnInplaceRandom", selfRef=zeros(dtype), to=3, seed=5, offset=0, **{"from": 3}) == 161002


def test_exponential() -> None:
    x = call("aclnnSimThreadExponential", selfRef=zeros(), count=N, **{"lambda": 2.0}, seed=3, offset=0)
    within(x, 0.5, 0.5)
    assert x.min() > 0


def test_permutation() -> None:
    x = call("aclnnRandperm", n=N, seed=3, offset=0, out=Out((N,), "int64"))
    assert (np.sort(x) == np.arange(N)).all() and (x != np.arange(N)).mean() > 0.99
    assert (call("aclnnRandperm", n=N, seed=3, offset=0, out=Out((N,), "int64")) == x).all()
    # The first place is uniform.
    first = [int(call("aclnnRandperm", n=4, seed=s, offset=0, out=Out((4,), "int32"))[0]) for s in range(400)]
    assert all(60 < first.count(i) < 140 for i in range(4))
    assert refused("aclnnRandperm", n=3, seed=0, offset=0, out=Out((4,), "int64")) == 161002


def test_multinomial() -> None:
    weights = np.array([[1, 0, 3], [0, 2, 2]], np.float32)
    numbers = {"replacement": True, "numsamples": N}
    x = call("aclnnMultinomial", self=weights, seed=1, offset=0, **numbers, out=Out((2, N), "int64"))
    assert (x[0] != 1).all() and (x[1] != 0).all()
    within(x[0] == 2, 0.75, (3 / 16) ** 0.5)
    within(x[1] == 2, 0.5, 0.5)
    same = call("aclnnMultinomialTensor", self=weights, **device_seed(1, -4), **numbers, out=Out((2, N), "int64"))
    assert (same == x).all()
    few = {"replacement": False, "numsamples": 2}
    firsts = []
    for seed in range(400):
        pair = call("aclnnMultinomial", self=weights[0], seed=seed, offset=0, **few, out=Out((2,), "int64"))
        assert sorted(pair.tolist()) == [0, 2]
        firsts.append(pair[0] == 2)
    within(firsts, 0.75, (3 / 16) ** 0.5)
    assert (
        refused(
            "aclnnMultinomial",
            self=weights,
            seed=1,
            offset=0,
            replacement=False,
            numsamples=4,
            out=Out((2, 4), "int64"),
        )
        == 161002
    )


# -- dropout -----------------------------------------------------------------------------------------------------------
def bits(mask: np.ndarray, n: int) -> np.ndarray:
    return np.unpackbits(mask, bitorder="little")[:n].astype(bool)


MASK = Out(((N + 127) // 128 * 16,), "uint8")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_dropout(dtype: str) -> None:
    x = np.linspace(1, 2, N).astype(dtype)
    out, mask = call("aclnnDropout", input=x, p=0.25, train=True, seed=9, offset=0, out=Out((N,), dtype), maskOut=MASK)
    kept = bits(mask, N)
    within(kept, 0.75, (3 / 16) ** 0.5)
    want = np.where(kept, x.astype(np.float64) / 0.75, 0).astype(dtype)
    assert_same(out, want)
    v3 = call("aclnnDropoutV3", input=x, p=0.25, seed=9, offset=0, out=Out((N,), dtype), maskOut=MASK)
    assert (v3[1] == mask).all() and (v3[0] == out).all()
    assert_same(call("aclnnDropoutDoMask", self=x, mask=mask, prob=0.25, out=Out((N,), dtype)), want)
    grad = np.where(kept, x.astype(np.float64) * 2, 0).astype(dtype)
    assert_same(call("aclnnDropoutBackward", gradOutput=x, mask=mask, scale=2.0, out=Out((N,), dtype)), grad)
    assert_same(call("aclnnDropoutV3Grad", gradY=x, mask=mask, scale=2.0, gradX=Out((N,), dtype)), grad)
    for p, train, result in ((0.0, True, x), (1.0, True, 0 * x), (0.5, False, x)):
        out, untouched = call(
            "aclnnDropout", input=x, p=p, train=train, seed=9, offset=0, out=Out((N,), dtype), maskOut=MASK
        )
        assert (out == result).all() and (untouched == 0x5A).all()


def test_dropout_masks() -> None:
    mask = call("aclnnDropoutGenMask", shape=[N], prob=0.25, seed=9, offset=0, out=MASK)
    within(bits(mask, N), 0.75, (3 / 16) ** 0.5)
    same = call(
        "aclnnDropoutGenMaskV2", shape=[N // 2, 2], prob=0.25, seed=9, offset=0, probDataType="float32", out=MASK
    )
    assert (same == mask).all()
    tensor = call(
        "aclnnDropoutGenMaskV2Tensor", shape=[N], prob=0.25, **device_seed(9, -4), probDataType="float16", out=MASK
    )
    assert (tensor == mask).all()
    assert refused("aclnnDropoutGenMask", shape=[N], prob=0.25, seed=9, offset=0, out=Out((N // 8,), "uint8")) == 161002
    assert refused("aclnnDropoutGenMask", shape=[N], prob=1.25, seed=9, offset=0, out=MASK) == 161002
    x = np.ones(N, np.float32)
    assert refused("aclnnDropoutV3", input=x, p=0.5, seed=9, offset=2, out=Out((N,)), maskOut=MASK) == 161002


def test_masked_scale() -> None:
    x, mask = np.array([1, 2, 3], np.float32), np.array([1, 0, 1], np.uint8)
    assert call("aclnnMaskedScale", self=x, mask=mask, scale=2.0, out=Out((3,))).tolist() == [2, 0, 6]


def test_rrelu() -> None:
    x = np.linspace(-1, 1, N).astype(np.float32)
    numbers = {"lower": Scalar(0.1, "float32"), "upper": Scalar(0.3, "float32"), "seed": 3, "offset": 0}
    y = call("aclnnRReluWithNoise", self=x, noise=zeros(), training=True, **numbers, out=Out((N,)))
    slopes = y[x < 0] / x[x < 0]
    within(slopes, 0.2, 0.2 / 12**0.5)
    assert (y[x > 0] == x[x > 0]).all()
    assert (call("aclnnInplaceRReluWithNoise", self=x, noise=zeros(), training=True, **numbers) == y).all()
    even = call("aclnnRReluWithNoise", self=x, noise=zeros(), training=False, **numbers, out=Out((N,)))
    assert_same(even, np.where(x < 0, x * 0.2, x).astype(np.float32))
