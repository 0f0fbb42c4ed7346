"""CPU lines of views' backward passes and of operators that move elements."""
from __future__ import annotations

from itertools import product
from typing import Any

from .... import _native
from ...._ops.rules.base import wrap_dim
from ...._ops.shape import roll_in_parts
from ...._strides import may_overlap, strides_contiguous
from ...._tensor_base import numel
from ...common.runtime import copy_same_device
from ...common.transfer import map_plain
from ..kernels.moves import roll_one
from ..kernels.shape import Cat, ConstantPad, Flip, Stack, Triangle
from ..lines import cpu, into
from ..numpy_view import np_view

Ints = tuple[int, ...]


def _unfold_backward(out: Any, grad_in: Any, input_sizes: Ints, dim: int, size: int, step: int) -> None:
    from numpy.lib.stride_tricks import as_strided

    whole = np_view(out)
    whole[...] = 0
    if grad_in.numel() == 0:
        return
    g = np_view(grad_in)
    if whole.ndim == 0:
        whole[...] = g[0]
        return
    d = dim % whole.ndim
    # As many neighbours of a window at a time as windows lie apart: those do not overlap each other.
    for k in range(0, size, step):
        width = min(step, size - k)
        shape, strides = [*whole.shape, width], [*whole.strides, whole.strides[d]]
        shape[d] = g.shape[d]
        strides[d] *= step
        start = [slice(None)] * whole.ndim
        start[d] = slice(k, None)
        part = as_strided(whole[tuple(start)], shape, strides)
        part += g[..., k:k + width]


def _places(size: Ints, stride: Ints, offset: int) -> Any:
    """Flat positions of every element of a geometry."""
    import numpy

    at = numpy.full((), offset, numpy.int64)
    for n, s in zip(size, stride):
        at = at[..., None] + numpy.arange(n, dtype=numpy.int64) * s
    return at


def _strided_map(out: Any, self: Any, size: Ints, stride: Ints, offset: int, to_size: Ints, to_stride: Ints,
                 to_offset: int, mean: bool) -> None:
    if not may_overlap(size, stride) and not may_overlap(to_size, to_stride):
        map_plain(out, self, size, stride, offset, to_size, to_stride, to_offset)
        return
    import numpy

    low = min(offset, to_offset)
    source = _places(size, stride, offset - low)
    target = _places(to_size, to_stride, to_offset - low)
    length = max(int(source.max(initial=-1)), int(target.max(initial=-1))) + 1
    values = np_view(self)
    visits = numpy.bincount((source if mean else target).ravel(), minlength=length).astype(values.dtype)
    if mean:
        values = values / visits[source]
    flat = numpy.zeros(length, values.dtype)
    numpy.add.at(flat, source.ravel(), values.ravel())
    result = flat[target]
    np_view(out)[...] = result if mean else result / visits[target]


def _roll(out: Any, self: Any, shifts: Ints, dims: Ints) -> None:
    """The parts before and behind the cuts, each to its place: one copy for each combination of them."""
    shape, source, target = self._shape, self._stride, out._stride
    if not dims and strides_contiguous(shape, source):
        shape, source, target, dims = (numel(self),), (1,), (1,), (0,)
    if not dims or numel(self) == 0 or not shape:
        copy_same_device(out, roll_in_parts(self, shifts, dims))
        return
    if len(dims) == 1:
        roll_one(out, self, shape, source, target, shifts[0], wrap_dim(dims[0], len(shape)))
        return
    moved: dict[int, int] = {}
    for shift, dim in zip(shifts, dims):
        d = wrap_dim(dim, len(shape))
        moved[d] = (moved.get(d, 0) + shift) % shape[d]
    cuts = [(d, shift) for d, shift in moved.items() if shift]
    for sides in product((False, True), repeat=len(cuts)):
        size, start, to = list(shape), int(self._offset), int(out._offset)
        for (d, shift), behind in zip(cuts, sides):
            if behind:
                size[d] = shift
                start += (shape[d] - shift) * source[d]
            else:
                size[d] -= shift
                to += shift * target[d]
        _native.copy(out._storage, to, target, out._dtype.code,
                     self._storage, start, source, self._dtype.code, tuple(size))  # fmt: skip


cpu("roll", into(_roll, calls_ops=True))
cpu("unfold_backward", into(_unfold_backward))
cpu("_strided_map", into(_strided_map))

cpu("cat", Cat())
cpu("stack", Stack())
cpu("flip", Flip())
cpu("constant_pad_nd", ConstantPad())
cpu("tril", Triangle(False))
cpu("triu", Triangle(True))
