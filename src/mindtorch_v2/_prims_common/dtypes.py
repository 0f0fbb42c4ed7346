"""Questions about dtypes: categories, what to compute in, and what a result has."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import mindtorch_v2 as torch

Number = (bool, int, float, complex)
_ORDER: tuple[type, ...] = (bool, int, float, complex)


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """How an operator on elements finds its result's dtype."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


class REDUCTION_OUTPUT_TYPE_KIND(Enum):
    """How a reduction finds its result's dtype."""

    SAME = (0,)
    COMPLEX_TO_FLOAT = (1,)
    KEEP_PROMOTED_TYPE = (2,)
    ALWAYS_BOOL = (3,)


def is_float_dtype(dtype: Any) -> bool:
    """Whether a dtype is floating point."""
    return bool(dtype.is_floating_point)


def is_complex_dtype(dtype: Any) -> bool:
    return bool(dtype.is_complex)


def is_boolean_dtype(dtype: Any) -> bool:
    return bool(dtype == torch.bool)


def is_integer_dtype(dtype: Any) -> bool:
    """Whether a dtype is an integer; truth values are none."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def corresponding_real_dtype(dtype: Any) -> Any:
    return dtype.to_real()


def corresponding_complex_dtype(dtype: Any) -> Any:
    return dtype.to_complex()


def is_low_precision_dtype(dtype: Any) -> bool:
    """Whether sums of this dtype are taken in a wider one."""
    return dtype in (torch.float16, torch.bfloat16, torch.complex32)


def dtype_to_type(dtype: Any) -> type:
    """Python's type of numbers for a dtype."""
    if not isinstance(dtype, torch.dtype):
        raise AssertionError(f"Expected torch.dtype, got {type(dtype)}")
    if dtype == torch.bool:
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def dtype_to_type_ctor(dtype: Any) -> Callable[[Any], Any]:
    """What makes such a number."""
    return dtype_to_type(dtype)


def type_to_dtype(typ: type) -> Any:
    """The dtype that a Python number of this type gets."""
    if not isinstance(typ, type):
        raise AssertionError(f"Expected type, got {type(typ)}")
    if typ in (bool, int):
        return torch.bool if typ is bool else torch.int64
    if typ in (float, complex):
        default = torch.get_default_dtype()
        return default if typ is float else default.to_complex()
    raise ValueError(f"Invalid type {typ}!")


def number_type(x: Any) -> type:
    """The Python type of a number."""
    return type(x)


def get_dtype(x: Any) -> Any:
    """The dtype of a tensor or number."""
    return x.dtype if isinstance(x, torch.Tensor) else type_to_dtype(type(x))


def dtype_or_default(dtype: Any) -> Any:
    return dtype if dtype is not None else torch.get_default_dtype()


def get_computation_dtype(dtype: Any) -> Any:
    """What values of a dtype are computed in."""
    return {torch.bfloat16: torch.float32, torch.float16: torch.float32, torch.complex32: torch.complex64}.get(
        dtype, dtype
    )


def get_acc_type(dtype: Any, device: Any) -> Any:
    """What sums are kept in."""
    if device.type == "cpu":
        if dtype.is_complex:
            return torch.complex128
        return torch.float64 if dtype in (torch.bfloat16, torch.float16, torch.float32) else dtype
    return get_computation_dtype(dtype)


def get_higher_type(a: type, b: type) -> type:
    """The wider of two types of numbers."""
    for each in (a, b):
        if each not in _ORDER:
            raise RuntimeError(f"Expected builtin numeric types, found {a}, {b}")
    return max(a, b, key=_ORDER.index)


def is_weakly_lesser_type(a: type, b: type) -> bool:
    """Whether numbers of type a are among those of type b."""
    for each in (a, b):
        if each not in _ORDER:
            raise RuntimeError(f"Expected builtin numeric types, found {a}, {b}")
    return _ORDER.index(a) <= _ORDER.index(b)


def can_safe_cast_to(*, cast_to: Any, cast_from: Any) -> bool:
    """Whether a dtype's category holds the other's."""
    return is_weakly_lesser_type(dtype_to_type(cast_from), dtype_to_type(cast_to))


def get_higher_dtype(a: Any, b: Any) -> Any:
    """The dtype that two dtypes, tensors or numbers have in common; None stands for nothing."""
    found = [x if isinstance(x, torch.dtype) else get_dtype(x) for x in (a, b) if x is not None]
    if len(found) < 2:
        return found[0] if found else None
    return torch.promote_types(*found)


def check_same_dtype(*args: Any) -> None:
    """Refuse tensors of different dtypes and numbers of other types."""
    full: Any = None
    for x in args:
        if isinstance(x, torch.Tensor):
            full = full if full is not None else x.dtype
            if x.dtype != full:
                raise RuntimeError(f"Tensor with dtype {x.dtype} is not the expected dtype of {full}!")
        elif not isinstance(x, Number):
            raise RuntimeError(f"Unexpected type when checking for same dtype, {type(x)}!")


def check_fp_or_complex(dtype: Any, fn_name: str, allow_low_precision_dtypes: bool = True) -> None:
    """Refuse integers, and small floating types where they are not allowed."""
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{fn_name}: Expected a floating point or complex tensor as input. Got {dtype}")
    if not allow_low_precision_dtypes and is_low_precision_dtype(dtype):
        raise RuntimeError(f"{fn_name}: Half precision dtypes not supported. Got {dtype}")


def _common_dtype(args: tuple[Any, ...]) -> Any:
    """The dtype of a result: numbers and tensors without dimensions count by their category alone."""
    highest: type = bool
    ranks: list[Any] = [None, None]
    for x in args:
        if isinstance(x, torch.Tensor):
            highest = get_higher_type(highest, dtype_to_type(x.dtype))
            of = 0 if x.ndim else 1
            ranks[of] = get_higher_dtype(ranks[of], x.dtype)
        elif isinstance(x, Number):
            highest = get_higher_type(highest, type(x))
        elif x is not None:
            raise ValueError(f"Unexpected type {type(x)} when computing elementwise type promotion!")
    found: Any = None
    for dtype in ranks:
        if dtype is not None and (
            found is None or not is_weakly_lesser_type(dtype_to_type(dtype), dtype_to_type(found))
        ):
            found = dtype
    if found is None or not is_weakly_lesser_type(highest, dtype_to_type(found)):
        if highest is complex and found is not None and found.is_floating_point:
            return found.to_complex()
        return type_to_dtype(highest)
    return found


def elementwise_dtypes(*_args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[Any, Any]:
    """What an operator on elements computes in, and the dtype of its result."""
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND
    result = _common_dtype(_args)
    if type_promotion_kind is kind.NO_OPMATH:
        return result, result
    if type_promotion_kind is kind.INT_TO_FLOAT and not (result.is_floating_point or result.is_complex):
        result = torch.get_default_dtype()
    if type_promotion_kind is kind.BOOL_TO_LONG and result == torch.bool:
        return torch.int64, torch.int64
    computed = get_computation_dtype(result)
    if type_promotion_kind is kind.COMPLEX_TO_FLOAT and result.is_complex:
        return computed, corresponding_real_dtype(result)
    return computed, torch.bool if type_promotion_kind is kind.ALWAYS_BOOL else result


def reduction_dtypes(arg: Any, output_dtype_kind: REDUCTION_OUTPUT_TYPE_KIND, dtype: Any = None) -> tuple[Any, Any]:
    """What a reduction computes in, and the dtype of its result; None leaves that to the reduction."""
    kind = REDUCTION_OUTPUT_TYPE_KIND
    given = dtype if dtype is not None else arg.dtype
    computed = get_computation_dtype(given)
    if output_dtype_kind is kind.KEEP_PROMOTED_TYPE:
        return computed, None
    if output_dtype_kind is kind.ALWAYS_BOOL:
        return computed, torch.bool
    if output_dtype_kind is kind.COMPLEX_TO_FLOAT and given.is_complex:
        given = corresponding_real_dtype(given)
    return computed, given
