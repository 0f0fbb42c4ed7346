"""Functionalization's write-back on NPUs: a value goes into the memory that was to change, through the view.

Three ways, the first that fits: a row-major view is a device-to-device copy; a view that is a strided slice of its base
is one aclnnStridedSliceAssignV2; any other view without overlap gets the flat places of its elements, made on the
device with aclnnArange, and one aclnnIndexPutImpl into the flattened base.

Invariant: nothing is written unless a way was found; TAKEN counts which way each write-back went.
"""

from __future__ import annotations

from typing import Any

from ..._dispatch import registry
from ..._dispatch.keys import BACKENDS
from ..._dtype import dtype, int8, int16, int32, int64
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase, alias, is_contiguous, make, numel
from ..common.overlap import check_no_internal_overlap
from ..common.runtime import empty
from . import aclnn, creation, launch, runtime, table

# How often each way was taken: "copy", "slice", "index"; `last` is the latest.
TAKEN: dict[str, int] = {"copy": 0, "slice": 0, "index": 0}
_LAST: list[str] = []

_SLICE = "aclnnStridedSliceAssignV2"
_INDEX = "aclnnIndexPutImpl"
# Documented for these chips only.
_SLICE_CHIPS = ("910B",)
# Dtypes as others of the same width, where only the bits have to move.
_SAME_BITS: dict[str, dtype] = {
    "bool": int8,
    "uint8": int8,
    "uint16": int16,
    "uint32": int32,
    "uint64": int64,
    "complex64": int64,
    "float8_e5m2": int8,
    "float8_e4m3fn": int8,
    "float8_e5m2fnuz": int8,
    "float8_e4m3fnuz": int8,
    "float8_e8m0fnu": int8,
    "complex32": int32,
}


def last_write_back() -> str:
    """The way the latest write-back went; empty before the first."""
    return _LAST[-1] if _LAST else ""


def _took(way: str) -> None:
    TAKEN[way] += 1
    _LAST[:] = [way]


def write_back(target: TensorBase, value: TensorBase, op: str) -> None:
    """Put `value` into `target`'s memory; `op` is the operator the user called."""
    if numel(target) == 0:
        return
    if value._dtype is not target._dtype:
        cast = empty(value._shape, contiguous_strides(value._shape), target._dtype, target._device)
        creation.cast_into(cast, value, op)
        value = cast
    if not is_contiguous(value):
        value = creation.compact(value)
    if is_contiguous(target):
        creation.copy_memory(target, value)
        _took("copy")
        return
    check_no_internal_overlap(target)
    if target._dtype.name == "complex128":
        # No vendor dtype is as wide: the parts go one by one.
        target, value = creation.as_pairs(target), creation.as_pairs(value)
    found = slice_of(target)
    if found is not None:
        assign_slice(target, value, found, op)
        _took("slice")
        return
    put_at_places(target, value, op)
    _took("index")


def not_implemented(op: str, why: str) -> RuntimeError:
    return RuntimeError(f"aten::{op} is not implemented for NPU: {why}")


def movable(t: TensorBase, function: str) -> dtype | None:
    """A dtype of the same width in which a function moves these elements unchanged."""
    mask = table.signature(function).params[0].mask
    for dt in (t._dtype, _SAME_BITS.get(t._dtype.name)):
        if dt is not None and mask >> int(dt.code) & 1:
            return dt
    return None


# -- strided slices -------------------------------------------------------------------------------------------------
class Slice:
    """A view as base[begin:end:step] in every dimension of a row-major base."""

    def __init__(self, base: TensorBase, begin: list[int], end: list[int], step: list[int], dt: dtype) -> None:
        self.base, self.begin, self.end, self.step, self.dt = base, begin, end, step, dt

    def shape(self) -> tuple[int, ...]:
        return tuple((e - b + s - 1) // s for b, e, s in zip(self.begin, self.end, self.step))


def slice_of(target: TensorBase) -> Slice | None:
    """The view as a slice of its base, if it is one, and the vendor can write it."""
    if runtime.chip() not in _SLICE_CHIPS or not aclnn.symbols_ok(_SLICE):
        return None
    dt = movable(target, _SLICE)
    if dt is None:
        return None
    base = target._base_field
    if base is not None and is_contiguous(base) and base._dtype is target._dtype and 1 <= len(base._shape) <= 8:
        found = slice_in(base, target, dt)
        if found is not None:
            return found
    if target._view_op is registry.get("as_strided"):
        return None
    seen = base_by_strides(target)
    return None if seen is None else slice_in(seen, target, dt)


def base_by_strides(target: TensorBase) -> TensorBase | None:
    """The storage as a row-major tensor in which the view moves one step at a time along each dimension.

    A base that was itself reshaped, or a step along the last dimension, is no slice of the tracked base's dimensions
    but is one of these."""
    steps = [s for n, s in zip(target._shape, target._stride) if n > 1]
    total = int(target._storage.nbytes) // int(target._dtype.itemsize)
    shape = [total]
    for s in steps:
        if s <= 0 or s > shape[-1] or (len(shape) > 1 and shape[-1] % s):
            return None
        shape[-1:] = [shape[-1] // s, s]
    if len(shape) > 8:
        return None
    sizes = tuple(shape)
    return make(
        target._storage, 0, sizes, contiguous_strides(sizes), target._dtype, target._device, target._keys & BACKENDS
    )


def slice_in(base: TensorBase, target: TensorBase, dt: dtype) -> Slice | None:
    """The view as a slice of this row-major tensor: every dimension of the view moves along one of its dimensions, in
    order, and along the last one without gaps, as the vendor asks."""
    left = int(target._offset) - int(base._offset)
    if left < 0:
        return None
    dims = [(n, s) for n, s in zip(target._shape, target._stride) if n > 1]
    begin, end, step = [], [], []
    at = 0
    for size, stride in zip(base._shape, contiguous_strides(base._shape)):
        start, left = divmod(left, stride)
        if start >= size:
            return None
        count, pace = 1, 1
        if at < len(dims):
            n, s = dims[at]
            if s % stride == 0 and start + (n - 1) * (s // stride) < size:
                count, pace = n, s // stride
                at += 1
        begin.append(start)
        end.append(start + (count - 1) * pace + 1)
        step.append(pace)
    if at < len(dims) or step[-1] != 1:
        return None
    return Slice(base, begin, end, step, dt)


def assign_slice(target: TensorBase, value: TensorBase, found: Slice, op: str) -> None:
    shape = found.shape()
    base = creation.retyped(found.base, found.dt)
    source = creation.retyped(alias(value, shape, contiguous_strides(shape), value._offset), found.dt)
    launch.launch(launch.resolve(_SLICE), [base, source, found.begin, found.end, found.step, None], op)


# -- places ---------------------------------------------------------------------------------------------------------
def put_at_places(target: TensorBase, value: TensorBase, op: str) -> None:
    dt = movable(target, _INDEX)
    if dt is None:
        raise not_implemented(op, f"{_INDEX} does not take {target._dtype.name}")
    for function, there in (("aclnnArange", aclnn.arange_symbols_ok()), (_INDEX, aclnn.index_put_impl_symbols_ok())):
        if not there:
            raise not_implemented(
                op, f"writing through this view needs {function}, which the vendor's libraries do not have"
            )
    count = int(numel(target))
    places = flat_places(target, op)
    storage = target._storage
    size = int(storage.nbytes) // int(dt.itemsize)
    flat = make(storage, 0, (size,), (1,), dt, target._device, target._keys & BACKENDS)
    source = creation.retyped(alias(value, (count,), (1,), value._offset), dt)
    launch.launch(launch.resolve(_INDEX), [flat, (places,), source, False, False], op)


def flat_places(target: TensorBase, op: str) -> TensorBase:
    """Where each element of a view lies in its storage, in the view's order: sums of ranges, made on the device."""
    total: Any = None
    start = int(target._offset)
    dims = [(n, s) for n, s in zip(target._shape, target._stride) if n > 1]
    shape = tuple(n for n, _ in dims)
    for i, (n, s) in enumerate(dims):
        along = empty((n,), (1,), int64, target._device)
        launch.launch(launch.resolve("aclnnArange"), [start, start + n * s, s, along], op)
        start = 0
        after = len(dims) - 1 - i
        spread = alias(along, (n,) + (1,) * after, (1,) + (0,) * after, 0)
        if total is None:
            total = spread
            continue
        grown = shape[: i + 1] + (1,) * after
        both = empty(grown, contiguous_strides(grown), int64, target._device)
        launch.launch(launch.resolve("aclnnAdd"), [total, spread, 1, both], op)
        total = both
    return alias(total, (int(numel(target)),), (1,), 0)
