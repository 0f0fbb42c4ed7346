"""The emulator's copies, casts, constants, sequences and complex parts against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ._kernels import Out, assert_same, call, refused
from ._pointwise import FLOATS, INTEGERS, SHAPE, sample

DTYPES = (*FLOATS, *INTEGERS)


@pytest.mark.oracle
@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_copy_and_cast(oracle: Any, source: str, target: str) -> None:
    kind = getattr(oracle, target)
    x = sample(source, (0, 5), SHAPE, 1)
    want = x.to(kind)
    strided = oracle.zeros(4, 3, dtype=kind).T
    assert_same(call("aclnnInplaceCopy", selfRef=strided, src=x), want)
    packed = x.contiguous()
    assert_same(call("aclnnCast", self=packed, dtype=target, out=Out(SHAPE, target)), want)


@pytest.mark.oracle
def test_copy_of_complex(oracle: Any) -> None:
    x = sample("complex64", (-2, 2), SHAPE, 1)
    assert_same(
        call("aclnnInplaceCopy", selfRef=oracle.zeros(SHAPE, dtype=oracle.complex128), src=x), x.to(oracle.complex128)
    )
    assert_same(call("aclnnInplaceCopy", selfRef=oracle.zeros(SHAPE), src=x), x.real)
    assert refused("aclnnInplaceCopy", selfRef=oracle.zeros(4, 3, dtype=oracle.complex64).T, src=x) == 161002


@pytest.mark.oracle
def test_copy_broadcasts(oracle: Any) -> None:
    row = sample("float32", (-2, 2), (4,), 1)
    assert_same(
        call("aclnnInplaceCopy", selfRef=oracle.zeros(SHAPE, dtype=oracle.float16), src=row), row.expand(SHAPE).half()
    )
    assert refused("aclnnInplaceCopy", selfRef=row, src=oracle.zeros(SHAPE)) == 161002
    assert_same(call("aclnnTensorMove", x=row, y=Out((4,))), row)


def test_cast_refuses() -> None:
    x = np.ones((2, 4), np.float32)
    assert refused("aclnnCast", self=x, dtype="int32", out=Out((2, 4), "int64")) == 161002
    assert refused("aclnnCast", self=x > 0, dtype="int32", out=Out((4, 2), "int32")) == 161002
    assert refused("aclnnCast", self=(x > 0)[:, ::2], dtype="int32", out=Out((2, 2), "int32")) == 161002
    assert call(
        "aclnnCast", self=np.array([np.nan, 1.7, -1.7], np.float32), dtype="int32", out=Out((3,), "int32")
    ).tolist() == [0, 1, -1]


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [*DTYPES, "complex64"])
def test_constants(oracle: Any, dtype: str) -> None:
    x = sample(dtype, (0, 5), SHAPE, 1)
    value: Any = {"bool": True, "complex64": 1 + 2j}.get(dtype, 3)
    assert_same(call("aclnnInplaceZero", selfRef=x), oracle.zeros_like(x))
    assert_same(call("aclnnInplaceFillScalar", selfRef=x, value=value), oracle.full_like(x, value))
    if dtype != "complex64":
        assert_same(call("aclnnInplaceOne", selfRef=x), oracle.ones_like(x))
    if dtype not in ("complex64", "float64"):
        tensor = oracle.tensor(value, dtype=x.dtype)
        assert_same(call("aclnnInplaceFillTensor", selfRef=x, value=tensor), oracle.full_like(x, value))
        assert refused("aclnnInplaceFillTensor", selfRef=x, value=x) == 161002
    if dtype not in ("complex64", "float64"):
        assert_same(call("aclnnEye", n=3, m=4, out=Out((3, 4), dtype)), oracle.eye(3, 4, dtype=x.dtype))


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32", "int64"])
def test_sequences(oracle: Any, dtype: str) -> None:
    kind = getattr(oracle, dtype)
    assert_same(call("aclnnArange", start=2, end=11, step=3, out=Out((3,), dtype)), oracle.arange(2, 11, 3, dtype=kind))
    assert_same(call("aclnnArange", start=5, end=0, step=-2, out=Out((3,), dtype)), oracle.arange(5, 0, -2, dtype=kind))
    assert_same(
        call("aclnnRange", start=2, end=11, step=3, out=Out((4,), dtype)), oracle.tensor([2, 5, 8, 11], dtype=kind)
    )
    if dtype in FLOATS:
        assert_same(
            call("aclnnArange", start=0.0, end=1.0, step=0.3, out=Out((4,), dtype)),
            oracle.arange(0, 1, 0.3, dtype=oracle.float64).to(kind),
        )
        assert_same(
            call("aclnnLinspace", start=-1.0, end=2.0, steps=7, out=Out((7,), dtype)),
            oracle.linspace(-1, 2, 7, dtype=oracle.float64).to(kind),
        )
    if dtype in ("float32", "float16", "bfloat16"):
        # The documents give the result two dimensions or more.
        assert_same(
            call("aclnnLogSpace", start=0.0, end=2.0, steps=5, base=2.0, result=Out((1, 5), dtype)),
            oracle.logspace(0, 2, 5, base=2, dtype=oracle.float64).to(kind)[None],
        )


def test_sequences_refuse() -> None:
    assert refused("aclnnArange", start=0, end=5, step=0, out=Out((5,), "int64")) == 161002
    assert refused("aclnnArange", start=0, end=5, step=-1, out=Out((5,), "int64")) == 161002
    assert refused("aclnnArange", start=0, end=5, step=1, out=Out((4,), "int64")) == 161002
    assert refused("aclnnLinspace", start=0.0, end=5.0, steps=4, out=Out((5,))) == 161002
    assert refused("aclnnEye", n=2, m=3, out=Out((3, 2))) == 161002
    assert call("aclnnArange", start=0, end=0, step=1, out=Out((0,), "int64")).shape == (0,)
    assert call("aclnnLinspace", start=3.0, end=5.0, steps=1, out=Out((1,))).tolist() == [3.0]


@pytest.mark.oracle
@pytest.mark.parametrize("dtype, result", [("float32", "complex64"), ("float64", "complex128")])
def test_complex_from_parts(oracle: Any, dtype: str, result: str) -> None:
    x, y = sample(dtype, (-2, 2), SHAPE, 1), sample(dtype, (-2, 2), (4,), 2)
    assert_same(call("aclnnComplex", real=x, imag=y, out=Out(SHAPE, result)), oracle.complex(x, y.expand(SHAPE)))
    assert_same(call("aclnnPolar", input=x, angle=y, out=Out(SHAPE, result)), oracle.polar(x, y.expand(SHAPE)))
    other = "complex64" if dtype == "float64" else "complex128"
    assert refused("aclnnComplex", real=x, imag=y, out=Out(SHAPE, other)) == 161002
