"""What formulas share: products with conjugates for derivatives, a wider type for kernels made of several operators.

Invariant: real values are their own conjugate and cost nothing; a value may be a tensor or a Python number. Half types
are computed in float32 and rounded once.
"""
from __future__ import annotations

from typing import Any

from ..._core_operators import CORE, HOOKS
from ..._dtype import dtype, float32
from ..._promotion import promote, result_type_of
from ..._strides import CONTIGUOUS, format_strides
from ..._tensor_base import TensorBase
from ..rules.layout import is_contiguous_as, suggested_format


def conj(x: Any) -> Any:
    if isinstance(x, TensorBase):
        return CORE.conj.call((x,)) if x._dtype.is_complex else x
    return x.conjugate()


def times(g: Any, x: Any) -> Any:
    """g * conj(x)."""
    return CORE.mul.call((g, conj(x)))


def over(g: Any, x: Any) -> Any:
    """g / conj(x)."""
    return CORE.div.call((g, conj(x)))


def zeros_like(t: TensorBase) -> Any:
    return HOOKS.zeros(t._shape, t._dtype, t._device)


def wide(t: TensorBase) -> Any:
    """The tensor in float32 if it is narrower."""
    dt = t._dtype
    return CORE.to_copy.call((t, float32, None, None, False)) if dt.is_floating_point and dt.itemsize < 4 else t


def common(a: TensorBase, b: TensorBase) -> dtype:
    """The dtype of two operands together; one without dimensions counts less."""
    if (len(a._shape) == 0) == (len(b._shape) == 0):
        return promote(a._dtype, b._dtype)
    return result_type_of(b._dtype, a._dtype, None) if len(a._shape) == 0 else result_type_of(a._dtype, b._dtype, None)


def pair(a: TensorBase, b: TensorBase) -> tuple[Any, Any]:
    """Two operands in their common dtype, float32 if that is narrower."""
    x: Any = a
    y: Any = b
    if a._dtype is not b._dtype:
        dt = common(a, b)
        x = a if a._dtype is dt else CORE.to_copy.call((a, dt, None, None, False))
        y = b if b._dtype is dt else CORE.to_copy.call((b, dt, None, None, False))
    return wide(x), wide(y)


def narrow(x: Any, a: TensorBase, b: TensorBase | None = None) -> Any:
    """A result computed from wide operands, in the dtype of the operands themselves."""
    dt = a._dtype if b is None else common(a, b)
    return x if x._dtype is dt or dt.itemsize >= 4 else CORE.to_copy.call((x, dt, None, None, False))


def in_format(out: Any, like: TensorBase, rank: int = -1) -> Any:
    """A result of its own memory, in the memory format of `like` (what `in_format_of` says of its strides)."""
    return laid_out(out, like, suggested_format(like) if rank < 0 or len(like._shape) == rank + 2 else None)


def laid_out(out: Any, like: TensorBase, form: Any) -> Any:
    """A result with exactly the strides of a format, where sizes of one leave a choice too; no memory of `like`."""
    if out._storage is like._storage:
        out = CORE.clone.call((out, None))
    shape = out._shape
    if out._stride == format_strides(shape, form) or (0 in shape and is_contiguous_as(out, form)):
        return out
    return CORE.clone.call((out, CONTIGUOUS if form is None else form))
