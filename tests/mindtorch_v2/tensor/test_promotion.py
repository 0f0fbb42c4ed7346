"""Type promotion: every pair of types, as tensors with and without dimensions and as numbers, against the oracle."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mindtorch_v2 import _dtype
from mindtorch_v2._dtype import bfloat16, complex64, float16, float32, float64, int8, int16, int32, int64, uint8, uint16
from mindtorch_v2._promotion import can_cast, number_dtype, promote, result_type_of

from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = mindtorch_only
NAMES = [item.name for item in _dtype.ALL]
DEFAULT_NAMES = ["float32", "float64", "float16", "bfloat16"]
NUMBERS = [True, 2, 1.5, 1j]


@pytest.fixture
def oracle() -> Any:
    return pytest.importorskip("torch")


def outcome(function: Any, *args: Any) -> Any:
    try:
        return str(function(*args))
    except Exception as error:
        return type(error), str(error)


def test_promote() -> None:
    assert promote(uint8, int8) is int16
    assert promote(float16, bfloat16) is float32
    assert promote(int64, float16) is float16
    assert promote(float64, complex64) is _dtype.complex128
    assert promote(uint16, float16) is float16
    for item in _dtype.ALL:
        assert promote(item, item) is item
    with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported"):
        promote(uint16, int32)
    with pytest.raises(RuntimeError, match="attempted to promote Float8_e5m2 and Float"):
        promote(_dtype.float8_e5m2, float32)


def test_promotion_is_symmetric() -> None:
    for left, right in itertools.combinations(_dtype.ALL, 2):
        ours, mirrored = outcome(promote, left, right), outcome(promote, right, left)
        assert ours == mirrored or (ours[0], mirrored[0]) == (RuntimeError, RuntimeError)


def test_priority_of_dimensions() -> None:
    assert result_type_of(float16, float64, None) is float16
    assert result_type_of(int8, int64, None) is int8
    assert result_type_of(int8, float64, None) is float64
    assert result_type_of(_dtype.bool, None, int64) is int64
    assert result_type_of(int32, None, float32) is float32
    assert result_type_of(float64, None, complex64) is _dtype.complex128
    assert result_type_of(None, None, int64) is int64
    with pytest.raises(RuntimeError):
        result_type_of(None, None, None)


def test_numbers_follow_the_default_dtype() -> None:
    assert [number_dtype(x) for x in NUMBERS] == [_dtype.bool, int64, float32, complex64]
    _dtype.set_default_dtype(float64)
    assert [number_dtype(x) for x in NUMBERS] == [_dtype.bool, int64, float64, _dtype.complex128]
    assert result_type_of(int32, None, float32) is float64
    with pytest.raises(TypeError):
        number_dtype("1")


@pytest.mark.oracle
@pytest.mark.parametrize("left", NAMES)
def test_every_pair_equals_the_oracles(left: str, oracle: Any) -> None:
    for right in NAMES:
        ours = getattr(_dtype, left), getattr(_dtype, right)
        theirs = getattr(oracle, left), getattr(oracle, right)
        assert outcome(promote, *ours) == outcome(oracle.promote_types, *theirs), right
        assert can_cast(*ours) == oracle.can_cast(*theirs), right


def _same(function: Any, expected: Any) -> bool:
    ours = outcome(function)
    return bool(ours == expected)


@pytest.mark.oracle
@pytest.mark.parametrize("default", DEFAULT_NAMES)
@pytest.mark.parametrize("left", NAMES)
def test_result_types_equal_the_oracles(default: str, left: str, oracle: Any) -> None:
    _dtype.set_default_dtype(getattr(_dtype, default))
    oracle.set_default_dtype(getattr(oracle, default))
    try:
        ours = getattr(_dtype, left)
        full, zero = (oracle.zeros(shape, dtype=getattr(oracle, left)) for shape in ((1,), ()))
        for x in NUMBERS:
            expected = outcome(oracle.result_type, full, x)
            assert _same(lambda x=x: result_type_of(ours, None, number_dtype(x)), expected), x
            expected = outcome(oracle.result_type, zero, x)
            assert _same(lambda x=x: result_type_of(None, ours, number_dtype(x)), expected), x
        for right in NAMES:
            other = getattr(_dtype, right)
            other_full, other_zero = (oracle.zeros(shape, dtype=getattr(oracle, right)) for shape in ((1,), ()))
            expected = outcome(oracle.result_type, full, other_zero)
            assert _same(lambda other=other: result_type_of(ours, other, None), expected), right
            expected = outcome(oracle.result_type, full, other_full)
            assert _same(lambda other=other: result_type_of(promote(ours, other), None, None), expected), right
            expected = outcome(oracle.result_type, zero, other_zero)
            assert _same(lambda other=other: result_type_of(None, promote(ours, other), None), expected), right
    finally:
        oracle.set_default_dtype(oracle.float32)


@pytest.mark.parametrize("name", "hypot atan2 copysign logaddexp logaddexp2 xlogy fmod maximum fmax".split())
@pytest.mark.parametrize("flip", [False, True])
def test_an_operand_without_dimensions_counts_less(name: str, flip: bool) -> None:
    """Also where the result is computed from wider operands."""
    pair = [torch.tensor(0.5), torch.ones(2, 2, dtype=torch.float16)]
    assert getattr(torch, name)(*(pair[::-1] if flip else pair)).dtype is torch.float16
