"""Native kernels called with raw operands: views of NumPy arrays, numbers, results to be made."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .._subject import IS_ORACLE

if IS_ORACLE:
    pytest.skip("tests of the native module have no other subject", allow_module_level=True)

import mindtorch_v2

_native: Any = mindtorch_v2._native


def _operators(first: int) -> list[str]:
    """The kernels of one kind, by the hundred their numbers begin with."""
    numbers = {n: getattr(_native, n) for n in dir(_native) if n.isupper()}
    return sorted(n for n, v in numbers.items() if first <= v < first + 100)


UNARY, BINARY, TERNARY = _operators(0), _operators(100), _operators(200)

CODES: dict[str, int] = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
    "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 12, "float8_e5m2": 13, "float8_e4m3fn": 14,
    "uint16": 15, "uint32": 16, "uint64": 17,
}  # fmt: skip
SMALL_FLOATS = {"bfloat16": ml_dtypes.bfloat16, "float8_e5m2": ml_dtypes.float8_e5m2,
                "float8_e4m3fn": ml_dtypes.float8_e4m3fn}  # fmt: skip
F32 = CODES["float32"]


def numpy_dtype(name: str) -> Any:
    return np.dtype(SMALL_FLOATS.get(name, name))


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def storage_of(array: Any) -> Any:
    """A copy of the memory of an array that owns it, whatever the order of its dimensions."""
    storage = _native.Storage(array.nbytes)
    ctypes.memmove(storage.ptr, array.ctypes.data, array.nbytes)
    return storage


def array_of(storage: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    return np.frombuffer(storage, np.uint8).view(dtype)[: math.prod(shape)].reshape(shape)


class View:
    """A NumPy array and the same elements in a storage, through the same strides."""

    def __init__(self, array: Any, name: str | None = None) -> None:
        base = array if array.base is None else array.base
        while base.base is not None:
            base = base.base
        self.array = array
        self.code = CODES[name or array.dtype.name]
        self.storage = storage_of(base)
        item = array.dtype.itemsize
        self.offset = (array.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // item
        self.strides = tuple(step // item for step in array.strides)

    def args(self, shape: tuple[int, ...] | None = None) -> tuple[Any, ...]:
        strides = self.strides
        if shape is not None:
            missing = len(shape) - len(strides)
            strides = (0,) * missing + strides
            sizes = (1,) * missing + self.array.shape
            strides = tuple(0 if size == 1 else step for size, step in zip(sizes, strides))
        return self.storage, self.offset, strides, self.code


NUMBER = (0, (), 0)


def operand(value: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    return value.args(shape) if isinstance(value, View) else (value, *NUMBER)


def fresh(shape: tuple[int, ...], name: str) -> tuple[Any, ...]:
    return None, 0, contiguous(shape), CODES[name]


def unary(op: int, a: View, out: str, compute: str) -> Any:
    shape = a.array.shape
    result = _native.unary(op, *a.args(), *fresh(shape, out), shape, CODES[compute])
    return array_of(result, numpy_dtype(out), shape)


def binary(op: int, a: Any, b: Any, out: str, compute: str, alpha: Any = 1) -> Any:
    shape = np.broadcast_shapes(*(v.array.shape for v in (a, b) if isinstance(v, View)))
    result = _native.binary(
        op, *operand(a, shape), *operand(b, shape), *fresh(shape, out), shape, CODES[compute], alpha
    )
    return array_of(result, numpy_dtype(out), shape)


def ternary(op: int, a: Any, b: Any, c: Any, out: str, compute: str, alpha: Any = 1) -> Any:
    shape = np.broadcast_shapes(*(v.array.shape for v in (a, b, c) if isinstance(v, View)))
    operands = (*operand(a, shape), *operand(b, shape), *operand(c, shape))
    result = _native.ternary(op, *operands, *fresh(shape, out), shape, CODES[compute], alpha)
    return array_of(result, numpy_dtype(out), shape)


def reduce(op: int, a: View, dims: tuple[int, ...], out: str, compute: str) -> Any:
    """The result with reduced dimensions of size one."""
    shape = a.array.shape
    kept = tuple(1 if d in dims else size for d, size in enumerate(shape))
    strides = tuple(0 if d in dims else step for d, step in enumerate(contiguous(kept)))
    target = (None, 0, strides, CODES[out])
    result = _native.reduce(op, *a.args(), *target, shape, CODES[compute], math.prod(kept))
    return array_of(result, numpy_dtype(out), kept)


def random(shape: tuple[int, ...], name: str = "float32", seed: int = 0) -> Any:
    values = np.asarray(np.random.default_rng(seed).standard_normal(shape) * 3)
    if name.startswith("complex"):
        return (values + 1j * random(shape, "float64", seed + 1)).astype(name)
    if name.startswith("u"):
        values = np.abs(values)
    return values.astype(numpy_dtype(name))


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-3, 1e-6, -1e-6, 1e-20, -1e-20, 1e-40, 1e20, -1e20, 88.0,
           -88.0, 88.7, -90.0, -100.0, -104.0, 3.4e38, -3.4e38, math.inf, -math.inf, math.nan, 0.999999, 1.000001, 7.5,
           20.0, 1e6, 1e7, -1e7, 127.0, -128.0]  # fmt: skip
