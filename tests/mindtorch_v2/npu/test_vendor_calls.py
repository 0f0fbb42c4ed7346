"""Calls of C functions by address: what reaches the function, in which register, and what is refused before."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from mindtorch_v2 import _native

from .._subject import mindtorch_only

pytestmark = mindtorch_only


def address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def called(kinds: list[Any], letters: bytes, values: list[Any]) -> list[Any]:
    """What a C function with these parameters, and the two results, was given."""
    seen: list[Any] = []

    def body(*arguments: Any) -> int:
        seen.extend(arguments[:-2])
        ctypes.c_uint64.from_address(arguments[-2]).value = 4096
        ctypes.c_void_p.from_address(arguments[-1]).value = 0x5A00
        return 7

    function = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds, ctypes.c_void_p, ctypes.c_void_p)(body)
    assert _native.vendor_phase1(address(function), letters, values) == (7, 4096, 0x5A00)
    return seen


I64, I32, U64, F64, F32, P, S, B = (
    ctypes.c_int64,
    ctypes.c_int32,
    ctypes.c_uint64,
    ctypes.c_double,
    ctypes.c_float,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.c_bool,
)


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 7, 12, 30])
def test_integers_in_registers_and_on_the_stack(count: int) -> None:
    values = [(-1) ** i * (i + 1) * 2**33 for i in range(count)]
    assert called([I64] * count, b"i" * count, values) == values


def test_floats_between_integers() -> None:
    kinds = [P, F64, I64, F32, B, I32, S, F64, U64, I64, I64, F32, P, I64]
    values = [None, 0.5, -3, 1.25, True, -7, b"mean", -2.5, 2**64 - 1, 5, 6, 0.75, 0x1000, 9]
    assert called(kinds, b"idifiisdiiifii", values) == values


def test_eight_floats() -> None:
    values = [float(i) + 0.5 for i in range(8)]
    assert called([F64, F32] * 4, b"df" * 4, values) == values


def test_a_tensor_is_described() -> None:
    seen: list[Any] = []

    def body(dims: Any, n: int, code: int, strides: Any, offset: int, form: int, storage: Any, m: int, ptr: int) -> int:
        seen.extend([dims[:n], code, strides[:n] if strides else None, offset, form, storage[:m], ptr])
        return 0x1234

    longs = ctypes.POINTER(I64)
    function = ctypes.CFUNCTYPE(P, longs, U64, I32, longs, I64, I32, longs, U64, P)(body)
    assert _native.vendor_tensor(address(function), (2, 3), (1, 2), 9, 5, 2, 100, 0x4000) == 0x1234
    assert seen == [[2, 3], 9, [1, 2], 5, 2, [100], 0x4000]
    seen.clear()
    assert _native.vendor_tensor(address(function), (), None, 0, 0, -1, 1, 0) == 0x1234
    assert seen == [[], 0, None, 0, -1, [1], None]
    none = ctypes.CFUNCTYPE(P)(lambda: None)
    assert _native.vendor_tensor(address(none), (), None, 0, 0, 0, 1, 0) is None


def test_every_handle_is_destroyed() -> None:
    seen: list[int] = []

    def body(handle: int) -> int:
        seen.append(handle)
        return handle % 10

    function = ctypes.CFUNCTYPE(I32, P)(body)
    assert _native.vendor_destroy(address(function), [10, None, 13, 20, 14]) == 3
    assert seen == [10, 13, 20, 14]


def test_the_second_phase() -> None:
    function = ctypes.CFUNCTYPE(I32, P, U64, P, P)(lambda *given: int(given == (1, 2, 3, None)))
    assert _native.vendor_phase2(address(function), 1, 2, 3, 0) == 1


def test_what_is_refused_before_a_call() -> None:
    call: Any = _native.vendor_phase1
    for wrong in ((0, b"", []), (1, b"i", []), (1, b"i" * 60, [0] * 60), (1, b"d" * 9, [0.0] * 9)):
        with pytest.raises(ValueError):
            call(*wrong)
    bad: Any
    for bad in (
        ("f", b"", []),
        (1, "i", [1]),
        (1, b"i", (1,)),
        (1, b"i", [1.5]),
        (1, b"d", ["x"]),
        (1, b"s", ["x"]),
        (1,),
    ):
        with pytest.raises(TypeError):
            call(*bad)
    tensor: Any = _native.vendor_tensor
    with pytest.raises(ValueError, match="a stride for each size"):
        tensor(1, (2, 3), (1,), 0, 0, 0, 6, 0)
    with pytest.raises(TypeError, match="at most 64 sizes"):
        tensor(1, (1,) * 65, None, 0, 0, 0, 1, 0)
    with pytest.raises(TypeError):
        tensor(1, [2], None, 0, 0, 0, 1, 0)
