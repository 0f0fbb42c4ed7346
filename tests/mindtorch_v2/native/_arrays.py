"""Operands of native kernels from NumPy arrays, and results as arrays.

Invariant: the memory stays NumPy's; nothing is copied on the way in.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from mindtorch_v2 import _native

Array = Any
CODES = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
    "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 12, "float8_e5m2": 13, "float8_e4m3fn": 14,
    "uint16": 15, "uint32": 16, "uint64": 17,
}  # fmt: skip
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), BFLOAT16]
TOLERANCE = {"float32": 2e-6, "float64": 1e-13, "float16": 2e-3, "bfloat16": 1.6e-2}
ALL = [np.dtype(name) for name in CODES if not name.startswith(("bfloat", "float8"))] + [BFLOAT16]
NONE = (None, 0, (), 0)


def code(dtype: Any) -> int:
    return CODES[np.dtype(dtype).name]


def operand(array: Array) -> tuple[Any, int, tuple[int, ...], int]:
    """The memory an array covers as a foreign storage, and the array's place in it."""
    if array.size == 0:
        strides = tuple(s // array.itemsize for s in array.strides)
        return _native.Storage(0), 0, strides, code(array.dtype)
    low, high = np.lib.array_utils.byte_bounds(array)
    storage = _native.Storage.wrap(low, high - low, array)
    offset = (array.__array_interface__["data"][0] - low) // array.itemsize
    return storage, offset, tuple(s // array.itemsize for s in array.strides), code(array.dtype)


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def new(shape: tuple[int, ...], dtype: Any) -> tuple[None, int, tuple[int, ...], int]:
    """A result that the kernel shall allocate."""
    return None, 0, dense(shape), code(dtype)


def read(storage: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    count = math.prod(shape)
    return np.frombuffer(storage, dtype=np.dtype(dtype), count=count).reshape(shape)


def random(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -100), min(info.max, 100), shape).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def layouts(array: Array) -> list[Array]:
    """The same values dense, column-major, inside a larger array with steps, and backwards in memory."""
    wide = np.zeros(tuple(2 * s + 1 for s in array.shape), array.dtype)
    inner = wide[tuple(slice(1, None, 2) for _ in array.shape)]
    inner[...] = array
    backwards = np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    return [np.ascontiguousarray(array), np.asfortranarray(array), inner, backwards]


def close(got: Array, want: Array, scale: float = 1.0) -> None:
    name = got.dtype.name
    tolerance = TOLERANCE.get(name, 0.0) * scale
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
        return
    kind = np.complex128 if got.dtype.kind == "c" else np.float64
    if got.dtype.kind == "c":
        tolerance = scale * (2e-5 if name == "complex64" else 1e-12)
    np.testing.assert_allclose(got.astype(kind), np.asarray(want).astype(kind), rtol=tolerance, atol=tolerance)


def tensor(torch: Any, array: Array) -> Any:
    """A PyTorch tensor with the array's values."""
    array = np.ascontiguousarray(array)
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def values(torch: Any, result: Any) -> Array:
    result = result.detach().contiguous()
    if result.dtype == torch.bfloat16:
        return result.view(torch.int16).numpy().view(BFLOAT16)
    return result.numpy()
