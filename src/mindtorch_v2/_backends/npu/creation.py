"""Filling, copying and casting on NPUs, and the lines of factories that are more than filling.

Invariant: values move on the device only; a copy whose source and target share memory goes through a temporary.
"""

from __future__ import annotations

import math
from typing import Any

from ..._device import device
from ..._dispatch import registry
from ..._dtype import bool as bool_
from ..._dtype import dtype, float32, float64, int64, uint8
from ..._ops.rules.layout import expand_strides
from ..._strides import contiguous_strides, extent
from ..._tensor_base import TensorBase, alias, is_contiguous, numel
from ..common.runtime import empty
from ..common.spacing import exponents, one
from . import launch, memory, table
from .lines import choose, helper, into, line, npu, parts

_MOST_DIMS = 8
# Dtypes the vendor's kernels do not move, as ones of the same width that they do.
_SAME_BITS = dict.fromkeys(
    ("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu"), uint8
)


def index_of(dev: device) -> int:
    index = dev.index
    assert index is not None
    return index


def retyped(t: TensorBase, dt: dtype) -> TensorBase:
    """The same memory read as another dtype of the same width."""
    new = alias(t, t._shape, t._stride, t._offset)
    new._dtype = dt
    return new


def as_pairs(t: TensorBase) -> TensorBase:
    """A complex tensor as its real and imaginary parts, in one more dimension."""
    new = alias(t, (*t._shape, 2), (*[s * 2 for s in t._stride], 1), t._offset * 2)
    new._dtype = t._dtype.to_real()
    return new


def once(t: TensorBase) -> TensorBase:
    """An expanded tensor without its repetitions: each place is there once."""
    if not any(s == 0 and n > 1 for n, s in zip(t._shape, t._stride)):
        return t
    shape = tuple(1 if s == 0 else n for n, s in zip(t._shape, t._stride))
    return alias(t, shape, t._stride, t._offset)


def run(function: str, op: str, *values: Any) -> None:
    launch.launch(launch.resolve(function), list(values), op)


# -- filling --------------------------------------------------------------------------------------------------------
def fill(dst: TensorBase, value: Any) -> None:
    """Write a number everywhere."""
    if numel(dst) == 0:
        return
    dst = once(dst)
    if len(dst._shape) > _MOST_DIMS:
        dst, _ = merged(dst, dst, "fill_")
    dt = dst._dtype
    if dt.name in _SAME_BITS:
        value, dst = _bits(value, dt), retyped(dst, uint8)
        dt = uint8
    if isinstance(value, TensorBase):
        run("aclnnInplaceFillTensor", "fill_", dst, value)
    elif (
        value == 0
        and (not isinstance(value, float) or math.copysign(1, value) > 0)
        and _accepts("aclnnInplaceZero", dt)
    ):
        run("aclnnInplaceZero", "zero_", dst)
    else:
        run("aclnnInplaceFillScalar", "fill_", dst, _as(value, dt))


def _accepts(function: str, dt: dtype) -> bool:
    return bool(table.signature(function).params[0].mask >> int(dt.code) & 1)


def _as(value: Any, dt: dtype) -> Any:
    """A number as its dtype will hold it, so that the vendor has nothing to convert."""
    if dt is bool_:
        return bool(value)
    if dt.is_integer:
        return int(value.real if isinstance(value, complex) else value)
    if dt.is_complex:
        return complex(value)
    return float(value.real if isinstance(value, complex) else value)


def _bits(value: Any, dt: dtype) -> int:
    """The byte that holds a number in an 8-bit floating type."""
    from ... import full

    byte = full((), value, dtype=dt).view(uint8).item()
    return int(byte)


# -- copying --------------------------------------------------------------------------------------------------------
def copy(dst: TensorBase, src: TensorBase) -> None:
    """Copy values within a device, casting and broadcasting."""
    if numel(dst) == 0:
        return
    if src._dtype is dst._dtype and src._dtype.name in _SAME_BITS:
        src, dst = retyped(src, uint8), retyped(dst, uint8)
    if src._shape != dst._shape:
        src = alias(src, dst._shape, expand_strides(src, dst._shape), src._offset)
    if src._storage is dst._storage:
        if src._dtype is dst._dtype and src._offset == dst._offset and src._stride == dst._stride:
            return
        if _touch(dst, src):
            src = compact(src)
    if src._dtype is dst._dtype and is_contiguous(dst) and is_contiguous(src):
        copy_memory(dst, src)
        return
    copy_strided(dst, src)


def copy_memory(dst: TensorBase, src: TensorBase) -> None:
    """Device to device, both row-major and of one dtype."""
    size = int(dst._dtype.itemsize)
    memory.check_allocated(dst)
    memory.check_allocated(src)
    memory.copy_bytes(
        index_of(dst._device),
        int(dst._storage.ptr) + int(dst._offset) * size,
        int(src._storage.ptr) + int(src._offset) * size,
        int(numel(dst)) * size,
    )


def copy_strided(dst: TensorBase, src: TensorBase) -> None:
    """Through the vendor's copy, which knows strides and casts."""
    if dst._dtype.is_complex and not is_contiguous(dst):
        # The vendor writes complex numbers into row-major memory only; their parts go anywhere.
        if src._dtype is not dst._dtype:
            packed = empty(src._shape, contiguous_strides(src._shape), dst._dtype, dst._device)
            run("aclnnInplaceCopy", "copy_", packed, src)
            src = packed
        dst, src = as_pairs(dst), as_pairs(src)
    if len(dst._shape) > _MOST_DIMS:
        dst, src = merged(dst, src, "copy_")
    run("aclnnInplaceCopy", "copy_", dst, src)


def _touch(a: TensorBase, b: TensorBase) -> bool:
    """Whether two tensors of one storage may share memory."""
    first, second = int(a._dtype.itemsize), int(b._dtype.itemsize)
    low, start = int(a._offset) * first, int(b._offset) * second
    return (
        low < start + int(extent(b._shape, b._stride)) * second
        and start < low + int(extent(a._shape, a._stride)) * first
    )


def compact(t: TensorBase) -> TensorBase:
    """A row-major copy."""
    out = empty(t._shape, contiguous_strides(t._shape), t._dtype, t._device)
    copy(out, t)
    return out


def merged(dst: TensorBase, src: TensorBase, op: str) -> tuple[TensorBase, TensorBase]:
    """Both with neighbouring dimensions joined where both move through them alike: vendors count to eight."""
    dims: list[list[int]] = []
    for n, d, s in zip(dst._shape, dst._stride, src._stride):
        if n == 1:
            continue
        if dims and dims[-1][1] == d * n and dims[-1][2] == s * n:
            dims[-1] = [dims[-1][0] * n, d, s]
        else:
            dims.append([n, d, s])
    if len(dims) > _MOST_DIMS:
        raise RuntimeError(
            f"{op}: {len(dims)} dimensions that cannot be joined are not available on NPU; "
            f"the vendor's functions take at most {_MOST_DIMS}"
        )
    shape = tuple(d[0] for d in dims)
    return (
        alias(dst, shape, tuple(d[1] for d in dims), dst._offset),
        alias(src, shape, tuple(d[2] for d in dims), src._offset),
    )


def cast_into(out: TensorBase, src: TensorBase, op: str) -> None:
    """Write values in `out`'s dtype; the two have one shape and share no memory."""
    if numel(out) == 0:
        return
    plain = is_contiguous(src) or not (src._dtype is bool_ or src._dtype.is_complex)
    if plain and is_contiguous(out) and len(out._shape) <= _MOST_DIMS:
        run("aclnnCast", op, src, out._dtype, out)
    else:
        copy_strided(out, src)


# -- factories ------------------------------------------------------------------------------------------------------
def _cut_off(start: Any, end: Any, step: Any, dtype: Any, *options: Any) -> bool:
    """Whole numbers are asked for between or by fractions."""
    return (
        dtype is not None and dtype.is_integer and not (type(start) is int and type(end) is int and type(step) is int)
    )


def _arange_of_fractions(out: Any, start: Any, end: Any, step: Any, *options: Any) -> None:
    """How many there are is the rule's to say, from the fractions; then those are cut off."""
    count, first, by = numel(out), int(start), int(step)
    if count and by:
        found = empty(out._shape, contiguous_strides(out._shape), int64, out._device)
        run("aclnnArange", "arange", first, first + count * by, by, found)
        copy(out, found)
    elif count:
        fill(out, first)


def _logspace(out: Any, start: Any, end: Any, steps: int, base: float, *options: Any) -> None:
    if steps == 1:
        copy(out, one(base, start, out))
    elif steps:
        wide = float64 if out._dtype.is_integer else out._dtype
        found = exponents(whole(start, out), whole(end, out), steps, wide, out._device)
        powers = empty((steps,), (1,), found._dtype, out._device)
        run("aclnnPowScalarTensor", "logspace", float(base), found, powers)
        copy(out, powers)


def _eye(out: Any, n: int, m: int, *options: Any) -> None:
    """Zeros and ones of another dtype."""
    if n * m:
        ones = empty((n, m), (m, 1), uint8, out._device)
        run("aclnnEye", "eye", n, m, ones)
        copy(out, ones)


def _whole_linspace(out: Any, start: Any, end: Any, steps: int, *options: Any) -> None:
    """Integers: from both ends towards the middle in float32, cut off, as PyTorch does it."""
    from ... import arange

    start, end = whole(start, out), whole(end, out)
    if steps == 1:
        fill(out, start)
    elif steps > 1:
        up = arange(steps, dtype=float32, device=out._device)
        step = (end - start) / (steps - 1)
        low, high = up * step + start, (steps - 1 - up) * -step + end
        copy(out, registry.get("where").call((up < steps // 2, low, high)))


def whole(value: Any, out: Any) -> Any:
    """What of a number the result's dtype holds."""
    return int(value) if out._dtype.is_integer else value


@helper
def bound(value: Any, out: Any) -> Any:
    """Where a range begins or ends, as a number of its kind: not every chip takes integers for fractions."""
    return float(value) if out._dtype.is_floating_point else whole(value, out)


def _indices(upper: bool) -> Any:
    def kernel(row: int, col: int, offset: int, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
        from ... import arange

        down = arange(row, device=device).unsqueeze(1)
        right = arange(col, device=device)
        inside = right - down >= offset if upper else right - down <= offset
        return inside.nonzero().t().contiguous().to(dtype or int64)

    return kernel


npu(
    "arange",
    choose(
        _cut_off, {False: line("aclnnArange(start, end, step, out)"), True: into(_arange_of_fractions, aliasing=True)}
    ),
)
npu(
    "linspace",
    "aclnnLinspace(bound(start, out), bound(end, out), steps, out)",
    otherwise=into(_whole_linspace, aliasing=True),
)
npu("eye", "aclnnEye(n, m, out)", otherwise=into(_eye, aliasing=True))
npu("logspace", into(_logspace))
npu("tril_indices", parts(_indices(False)))
npu("triu_indices", parts(_indices(True)))
npu("complex", "aclnnComplex(real, imag, out)", cast=())
npu(
    "polar",
    "aclnnPolar(abs, angle, out)",
    cast=(),
    absent=parts(lambda abs, angle: registry.get("complex").call((abs * angle.cos(), abs * angle.sin()))),
)


def last_write_back() -> str:
    """Which way the latest write-back of functionalization went: "copy", "slice" or "index"."""
    from . import write_back

    return write_back.last_write_back()
