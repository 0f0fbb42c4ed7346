"""`make_tensor`: tensors of random numbers for tests.

Invariant: for a seed the numbers are PyTorch's, so that a test that was written for PyTorch sees the same data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from .._dtype import dtype as dtype_type
from .._tensor import Tensor
from .._warn import warn

__all__ = ["make_tensor"]

_INTEGRAL_TYPES = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
]
_FLOATING_TYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
_FLOATING_8BIT_TYPES = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
_COMPLEX_TYPES = [torch.complex32, torch.complex64, torch.complex128]
_BOOLEAN_OR_INTEGRAL_TYPES = [torch.bool, *_INTEGRAL_TYPES]
_FLOATING_OR_COMPLEX_TYPES = [*_FLOATING_TYPES, *_COMPLEX_TYPES]


def _interval(dtype: dtype_type) -> tuple[Any, Any, float, float]:
    """Lowest and highest (exclusive) value of a dtype, and the interval that is used by default."""
    if dtype is torch.bool:
        return 0, 2, 0, 2
    if dtype in _INTEGRAL_TYPES:
        info = torch.iinfo(dtype)
        # randint takes no bound beyond 64 signed bits.
        return info.min, info.max + (1 if dtype is not torch.int64 else 0), -9, 10
    return torch.finfo(dtype).min, torch.finfo(dtype).max, -9, 9


def _bounds(dtype: dtype_type, low: Any, high: Any) -> tuple[Any, Any]:
    """The interval to draw from: as asked for, inside what the dtype can hold."""
    lowest, highest, default_low, default_high = _interval(dtype)
    low = default_low if low is None else low
    high = default_high if high is None else high
    if any(isinstance(value, float) and math.isnan(value) for value in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low == high and dtype in _FLOATING_OR_COMPLEX_TYPES:
        warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{lowest}, {highest})"
        )
    low, high = min(max(low, lowest), highest), min(max(high, lowest), highest)
    return (math.ceil(low), math.ceil(high)) if dtype in _BOOLEAN_OR_INTEGRAL_TYPES else (low, high)


def _uniform_random_(t: Any, low: float, high: float) -> Any:
    # uniform_ refuses an interval whose length is no number of the dtype.
    if high - low >= torch.finfo(t.dtype).max:
        return t.uniform_(low / 2, high / 2).mul_(2)
    return t.uniform_(low, high)


def _draw(shape: tuple[int, ...], dtype: dtype_type, device: Any, low: Any, high: Any) -> Any:
    if dtype in _BOOLEAN_OR_INTEGRAL_TYPES:
        low, high = _bounds(dtype, low, high)
        return torch.randint(low, high, shape, device=device, dtype=dtype)
    if dtype in _FLOATING_OR_COMPLEX_TYPES:
        low, high = _bounds(dtype, low, high)
        result = torch.empty(shape, device=device, dtype=dtype)
        _uniform_random_(torch.view_as_real(result) if dtype in _COMPLEX_TYPES else result, low, high)
        return result
    if dtype in _FLOATING_8BIT_TYPES:
        low, high = _bounds(dtype, low, high)
        return _uniform_random_(torch.empty(shape, device=device, dtype=torch.float32), low, high).to(dtype)
    raise TypeError(
        f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor(). To request support, file an "
        "issue at: https://github.com/pytorch/pytorch/issues"
    )


def make_tensor(
    *shape: Any,
    dtype: dtype_type,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of numbers drawn uniformly from `[low, high)`, by default -9 to 9 (integers to and with 9).

    `exclude_zero` replaces zeros by the smallest positive number; `noncontiguous` takes every second element of a
    larger tensor.
    """
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    sizes = tuple(sizes)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous!r} and memory_format={memory_format!r}"
        )
    if requires_grad and dtype in _BOOLEAN_OR_INTEGRAL_TYPES:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype!r}"
        )
    # A tensor of one element is contiguous whatever its strides.
    if noncontiguous and math.prod(sizes) > 1:
        result: Tensor = _draw((*sizes[:-1], 2 * sizes[-1]), dtype, device, low, high)[..., 1::2]
    else:
        result = _draw(sizes, dtype, device, low, high)
        if memory_format is not None:
            result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if dtype in _BOOLEAN_OR_INTEGRAL_TYPES else torch.finfo(dtype).tiny
    if dtype in _FLOATING_OR_COMPLEX_TYPES:
        result.requires_grad = requires_grad
    return result
