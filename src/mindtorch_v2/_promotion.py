"""Type promotion: the dtype of a result from the dtypes of its inputs.

Invariant: one table decides every pair, and it equals PyTorch's; a pair PyTorch refuses is refused with its text.
"""

from typing import Final

from ._dtype import (
    ALL,
    CATEGORY_BITS,
    DEFAULTS,
    STORED,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int16,
    int64,
)
from ._dtype import bool as bool_dtype

__all__ = ["can_cast", "number_dtype", "promote", "result_type_of"]

_FLOAT8: Final = ("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu")
# Types of few bits are among them: PyTorch knows them by their names alone.
_BARE_UNSIGNED: Final = ("uint16", "uint32", "uint64", "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7")


def _pair(a: dtype, b: dtype) -> dtype | None:
    """The promotion of a pair, None where PyTorch has none."""
    if a is b:
        return a
    if a.name in _FLOAT8 or b.name in _FLOAT8:
        return None
    if (a in STORED or b in STORED) and not (a.name in _BARE_UNSIGNED or b.name in _BARE_UNSIGNED):
        return None
    if a.name in _BARE_UNSIGNED or b.name in _BARE_UNSIGNED:
        # The wide unsigned types join floating types only.
        if a.is_floating_point:
            return a
        return b if b.is_floating_point else None
    if a.category != b.category:
        higher, lower = (a, b) if a.category > b.category else (b, a)
        if higher.is_complex and lower.is_floating_point and higher is not complex128:
            # The parts hold what the real type does.
            return float64.to_complex() if lower is float64 else higher if lower is float16 else complex64
        return higher
    if a.itemsize == b.itemsize:
        # Two different types of one size: int8 with uint8, float16 with bfloat16.
        return int16 if a.itemsize == 1 else float32
    return a if a.itemsize > b.itemsize else b


def _build() -> list[dtype | None]:
    # Other types that are only stored have no promotion.
    table: list[dtype | None] = [None] * (64 * 64)
    known = [*ALL, *[d for d in STORED if d.name in _BARE_UNSIGNED or d.is_floating_point]]
    for a in known:
        for b in known:
            table[a.code * 64 + b.code] = _pair(a, b)
    return table


_TABLE: Final = _build()


def promote(a: dtype, b: dtype) -> dtype:
    """The smallest type that holds both, by PyTorch's rules (`torch.promote_types`)."""
    if a is b:
        return a
    found = _TABLE[a.code * 64 + b.code]
    if found is None:
        raise _refusal(a, b)
    return found


def _refusal(a: dtype, b: dtype) -> RuntimeError:
    bits = a.category == CATEGORY_BITS or b.category == CATEGORY_BITS
    named = (*_FLOAT8, *_BARE_UNSIGNED)
    if bits or ((a in STORED or b in STORED) and a.name not in named and b.name not in named):
        return RuntimeError(f"Promotion from {a.scalar_name} and {b.scalar_name} is unsupported.")
    kinds = "Float8 Types" if a.name in _FLOAT8 or b.name in _FLOAT8 else "uint16, uint32, uint64 types"
    return RuntimeError(
        f"Promotion for {kinds} is not supported, attempted to promote {a.scalar_name} and {b.scalar_name}"
    )


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a result of type `from_` may be stored in a tensor of type `to`."""
    if from_.is_complex and not to.is_complex:
        return False
    if from_.is_floating_point and to.is_integer and to not in STORED:
        return False
    return not (to is bool_dtype and from_ is not bool_dtype)


def number_dtype(x: object) -> dtype:
    """The dtype of a Python number."""
    if isinstance(x, bool):
        return bool_dtype
    if isinstance(x, int):
        return int64
    if isinstance(x, float):
        return DEFAULTS.dtype
    if isinstance(x, complex):
        return DEFAULTS.complex_dtype()
    if hasattr(x, "item"):
        # A NumPy scalar counts as the Python number it holds.
        return number_dtype(x.item())
    raise TypeError(f"expected a number, got {type(x).__name__}")


def _combine(higher: dtype, lower: dtype) -> dtype:
    """Join two priority levels: the lower one decides only when its category is higher."""
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if lower.is_complex:
        # Taken as it is, without promotion: so the wide unsigned types join complex scalars though not complex tensors.
        return lower
    if higher.is_bool or lower.is_floating_point:
        return promote(higher, lower)
    return higher


def result_type_of(dim_dt: dtype | None, zero_dt: dtype | None, wrapped_dt: dtype | None) -> dtype:
    """The result type from the promoted types of the tensors with dimensions, those without, and Python numbers."""
    result: dtype | None = None
    if wrapped_dt is not None:
        if wrapped_dt.is_floating_point:
            result = DEFAULTS.dtype
        elif wrapped_dt.is_complex:
            result = DEFAULTS.complex_dtype()
        else:
            result = wrapped_dt
    if zero_dt is not None:
        result = zero_dt if result is None else _combine(zero_dt, result)
    if dim_dt is not None:
        result = dim_dt if result is None else _combine(dim_dt, result)
    if result is None:
        raise RuntimeError("result_type needs at least one tensor or number")
    return result
