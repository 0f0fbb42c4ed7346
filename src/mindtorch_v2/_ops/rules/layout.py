"""Strides of results, from the tensors they are made of.

Invariant: equal to what PyTorch's TensorIterator and memory formats give; `preserve_format` keeps a dense layout and
orders any other one.
"""

from __future__ import annotations

from typing import Any, Final

from ..._dispatch.keys import SPARSE
from ..._dispatch.op import Spec, plain_name
from ..._dtype import dtype
from ..._layout import memory_format as MemoryFormat
from ..._layout import preserve_format
from ..._mypyc import i64
from ..._sizes import strided_bytes
from ..._strides import (
    CHANNELS_LAST,
    CHANNELS_LAST_3D,
    CONTIGUOUS,
    channels_last_strides,
    contiguous_strides,
    format_of,
    format_strides,
    strides_dense,
    strides_in_order,
    strides_match,
)
from ..._tensor_base import TensorBase, alias, is_contiguous

Ints = tuple[int, ...]

PRESERVE: Final[Any] = preserve_format


def expand_strides(t: TensorBase, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of `t` broadcast to `shape`."""
    if t._shape is shape or t._shape == shape:
        return t._stride
    n: i64 = len(shape)
    d = n - len(t._shape)
    if d < 0:
        raise RuntimeError(
            f"the number of sizes provided ({n}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(t._shape)})")
    if n == 2:
        # Rows beside a matrix.
        last = t._stride[1 - d] if d < 2 and (t._shape[1 - d] != 1 or shape[1] == 1) else 0
        return (t._stride[0] if d == 0 and (t._shape[0] != 1 or shape[0] == 1) else 0, last)
    out: list[int] = [0] * n
    i: i64 = d
    while i < n:
        size: i64 = t._shape[i - d]
        if size != 1 or shape[i] == 1:
            out[i] = t._stride[i - d]
        i += 1
    return tuple(out)


def ordered_strides(shape: tuple[int, ...], tensors: list[TensorBase], common: dtype | None = None) -> tuple[int, ...]:
    """Strides of a dense result whose dimensions are ordered as the inputs' are, once cast to the dtype `common`."""
    n: i64 = len(shape)
    if n < 2:
        return contiguous_strides(shape)
    plain = True
    for t in tensors:
        if len(t._shape) == 0:
            # Beside another shape the order of the strides counts, also where sizes of one leave it open.
            if 1 in shape:
                plain = False
        elif t._shape != shape or not is_contiguous(t):
            plain = False
    if plain:
        return contiguous_strides(shape)
    if common is not None and 1 in shape and any([is_recast(t, common) for t in tensors]):
        return ordered_strides(shape, [recast(t) if is_recast(t, common) else t for t in tensors])
    first = tensors[0]
    if n == 4 and first._shape == shape:
        # Images in channels-last order get the strides of that format, also where sizes of one leave them open.
        wanted = channels_last_strides(shape, 2)
        if all([t._shape == shape and strides_match(t._shape, t._stride, wanted) for t in tensors]):
            return wanted
    if first._shape == shape and strides_dense(first._shape, first._stride):
        alike = True
        for t in tensors:
            if t._shape != shape or t._stride != first._stride:
                alike = False
        if alike:
            return first._stride
    return strides_in_order(shape, [expand_strides(t, shape) for t in tensors])


def is_recast(t: TensorBase, common: dtype) -> bool:
    """Whether PyTorch's CPU operators copy this operand first, into another layout. Only where sizes of one leave
    strides open does the copy show."""
    return t._dtype is not common and t._device.type == "cpu" and len(t._shape) > 1 and not (
        is_contiguous(t) or strides_dense(t._shape, t._stride))


def recast(t: TensorBase) -> TensorBase:
    return alias(t, t._shape, strides_in_order(t._shape, [t._stride]), 0)


def preserved_strides(t: TensorBase) -> Ints:
    """Strides of a copy that keeps the layout of `t`."""
    if is_contiguous(t) or strides_dense(t._shape, t._stride):
        return t._stride
    return ordered_strides(t._shape, [t])


def copy_strides(t: TensorBase, memory_format: Any) -> Ints:
    """Strides of a copy of `t` in a memory format; none given means the layout is kept."""
    if memory_format is None or memory_format is PRESERVE:
        return preserved_strides(t)
    return format_strides(t._shape, memory_format)


def kept_strides(t: TensorBase, memory_format: Any, dt: dtype) -> Ints:
    """Strides of a copy of `t` in another dtype; PyTorch names them where their bytes cannot be counted."""
    stride = copy_strides(t, memory_format)
    if t._contig != 1 and (memory_format is None or memory_format is PRESERVE):
        strided_bytes(t._shape, stride, 0, dt.itemsize)
    return stride


def is_contiguous_as(t: TensorBase, memory_format: Any) -> bool:
    """Whether the elements lie in the order of a memory format."""
    if memory_format is None or memory_format is CONTIGUOUS:
        return is_contiguous(t)
    if memory_format is CHANNELS_LAST:
        return len(t._shape) == 4 and strides_match(t._shape, t._stride, channels_last_strides(t._shape, 2))
    if memory_format is CHANNELS_LAST_3D:
        return len(t._shape) == 5 and strides_match(t._shape, t._stride, channels_last_strides(t._shape, 3))
    if is_contiguous(t):
        return True
    raise RuntimeError("preserve memory format is unsupported by the contiguous operator")


def asked_contiguous(t: TensorBase, *, memory_format: object = CONTIGUOUS) -> bool:
    """`Tensor.is_contiguous`."""
    if t._keys & SPARSE:
        t._storage.check_has("is_contiguous")
        return False
    if memory_format is CONTIGUOUS or memory_format is PRESERVE:
        return is_contiguous(t)
    if memory_format is CHANNELS_LAST or memory_format is CHANNELS_LAST_3D:
        return is_contiguous_as(t, memory_format)
    if not isinstance(memory_format, MemoryFormat):
        kind = plain_name(memory_format)
        raise TypeError(f"is_contiguous(): argument 'memory_format' must be torch.memory_format, not {kind}")
    raise RuntimeError(f"is_contiguous: unsupported memory format {memory_format}")


def suggested_format(t: TensorBase) -> Any:
    """The memory format that the strides look like; None for the plain order, and where they do not tell."""
    return format_of(t._shape, t._stride)


def in_format_of(t: TensorBase, shape: Ints, dt: dtype | None = None, rank: int = -1) -> Spec:
    """A result in the memory format of `t`, which unbatched images (fewer than `rank` + 2 dimensions) do not have."""
    form = suggested_format(t) if 0 not in shape and (rank < 0 or len(shape) == rank + 2) else None
    d = t._dtype if dt is None else dt
    return Spec(shape, format_strides(shape, form), d, d, t._device)
