"""Questions about dtypes, and objects that make index expressions.

Invariant: nothing is computed.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ._dtypes import can_cast_dtypes, default_dtypes, dtype, promote
from ._normalizations import ArrayLike, normalizer
from ._util import coerce_to_tensor


def _torch_dtype(x: Any) -> Any:
    """The dtype that something is or has."""
    from ._ndarray import ndarray

    if isinstance(x, ndarray):
        return x.tensor.dtype
    try:
        return dtype(x).torch_dtype
    except TypeError:
        return coerce_to_tensor(x).dtype


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether one dtype can be cast to another."""
    return can_cast_dtypes(_torch_dtype(from_), _torch_dtype(to), casting)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that several promote to."""
    found = [_torch_dtype(x) for x in arrays_and_dtypes]
    result = found[0] if found else arrays_and_dtypes[0]
    for other in found[1:]:
        result = promote(result, other)
    return dtype(result)


@normalizer
def common_type(*tensors: ArrayLike) -> Any:
    """The floating dtype that holds what all arrays have."""
    is_complex = any(t.is_complex() for t in tensors)
    result = torch.float16
    for t in tensors:
        own = t.dtype
        if not (own.is_floating_point or own.is_complex):
            own = default_dtypes().float_dtype
        result = promote(result, own)
    if is_complex and not result.is_complex:
        result = promote(result, torch.complex64)
    return result


@normalizer
def min_scalar_type(a: ArrayLike, /) -> Any:
    """The smallest dtype that holds the values."""
    if a.dtype is torch.bool or a.numel() > 1:
        return dtype(a.dtype)
    kinds: tuple[Any, ...] = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if a.is_complex():
        kinds = (torch.complex64, torch.complex128)
    elif a.dtype.is_floating_point:
        kinds = (torch.float16, torch.float32, torch.float64)
    values = (torch.view_as_real(a) if a.is_complex() else a).flatten().tolist()
    return dtype(next((kind for kind in kinds if _holds(kind, values)), kinds[-1]))


def _holds(kind: torch.dtype, values: list[Any]) -> bool:
    limits: Any = torch.finfo(kind) if kind.is_floating_point or kind.is_complex else torch.iinfo(kind)
    return all(limits.min <= value <= limits.max for value in values)


def finfo(dtyp: Any) -> Any:
    """The limits of a floating dtype."""
    return torch.finfo(dtype(dtyp).torch_dtype)


def iinfo(dtyp: Any) -> Any:
    """The limits of a whole dtype."""
    return torch.iinfo(dtype(dtyp).torch_dtype)


class IndexExpression:
    """Gives back what is between its brackets."""

    def __init__(self, maketuple: bool) -> None:
        self.maketuple = maketuple

    def __getitem__(self, item: Any) -> Any:
        return (item,) if self.maketuple and not isinstance(item, tuple) else item


index_exp = IndexExpression(maketuple=True)
s_ = IndexExpression(maketuple=False)

NAMES = ["can_cast", "common_type", "finfo", "iinfo", "index_exp", "min_scalar_type", "result_type", "s_"]
