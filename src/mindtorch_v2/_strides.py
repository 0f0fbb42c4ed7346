"""Geometry of strided memory: row-major, channels-last and dense strides, memory formats, extents.

Invariant: everything here is a function of plain shapes and strides, counted in elements; no tensor is asked anything.
"""

from __future__ import annotations

from typing import Any, Final

from ._layout import channels_last, channels_last_3d, contiguous_format
from ._layout import memory_format as memory_format_type
from ._mypyc import i64
from ._sizes import LONG_MAX, SHORT, empty_before, overflows, strides_too_large, too_large

Ints = tuple[int, ...]

# As `Any`: compared by identity, without a check of the type.
CONTIGUOUS: Final[Any] = contiguous_format
CHANNELS_LAST: Final[Any] = channels_last
CHANNELS_LAST_3D: Final[Any] = channels_last_3d

# Shared by all tensors with these strides: most tensors of one dimension.
_NONE: Final[Ints] = ()
_ONE: Final[Ints] = (1,)


def contiguous_strides(shape: Ints) -> Ints:
    """Row-major strides; a dimension of size 0 counts as 1, as in PyTorch."""
    n: i64 = len(shape)
    if n == 0:
        return _NONE
    if n == 1:
        if shape[0] > SHORT and shape[0] > LONG_MAX:
            raise strides_too_large(shape)
        return _ONE
    if n == 2:
        wide = shape[1]
        if (shape[0] > _HALF or wide > _HALF) and max(shape[0], 1) * wide > LONG_MAX:
            raise strides_too_large(shape)
        return (wide if wide > 1 else 1, 1)
    out = [1] * n
    acc: i64 = 1
    i: i64 = n - 1
    while i >= 0:
        out[i] = acc
        s = shape[i]
        if s > 1:
            if (s > SHORT and s > LONG_MAX) or overflows(acc, s):
                if i == 0 and s <= LONG_MAX and empty_before(shape):
                    break  # no stride counts the first size, and there are no elements
                raise strides_too_large(shape)
            acc *= s
        i -= 1
    return tuple(out)


_HALF: Final = 2147483647


def strides_contiguous(shape: Ints, stride: Ints) -> bool:
    """Whether the elements lie in row-major order; sizes of one may have any stride."""
    expected: i64 = 1
    i: i64 = len(shape) - 1
    ok = True
    while i >= 0:
        n: i64 = shape[i]
        if n == 0:
            return True
        if n != 1:
            s: i64 = stride[i]
            if s != expected:
                ok = False
            expected *= n
        i -= 1
    return ok


def channels_last_strides(shape: Ints, dims: int) -> Ints:
    """Strides with the channels moving fastest, for a batch of `dims`-dimensional images. Unlike in row-major strides a
    size of 0 counts as it is, as in PyTorch."""
    if len(shape) != dims + 2:
        raise RuntimeError(f"required rank {dims + 2} tensor to use channels_last{'_3d' if dims == 3 else ''} format")
    out: list[int] = [0] * len(shape)
    step: i64 = 1
    order = [1, *range(dims + 1, 1, -1), 0]
    for d in order:
        out[d] = int(step)
        n: i64 = shape[d]
        if overflows(step, n):
            raise too_large(shape)
        step *= n
    return tuple(out)


def fastest_first(shape: Ints, expanded: list[Ints]) -> list[int]:
    """The dimensions in the order of the operands' strides, those of the first one first."""
    n: i64 = len(shape)
    perm: list[int] = [int(n - 1 - k) for k in range(n)]
    i: i64 = 1
    while i < n:
        d1 = i
        d0 = i - 1
        while d0 >= 0:
            c = compare(perm[d0], perm[d1], expanded, shape)
            if c > 0:
                perm[d0], perm[d1] = perm[d1], perm[d0]
                d1 = d0
            elif c < 0:
                break
            d0 -= 1
        i += 1
    return perm


def strides_in_order(shape: Ints, expanded: list[Ints]) -> Ints:
    """Strides of a dense result whose dimensions are ordered as in the operands' strides."""
    n: i64 = len(shape)
    if n == 2 and shape[0] <= _HALF and shape[1] <= _HALF:
        return (1, shape[0]) if compare(1, 0, expanded, shape) > 0 else contiguous_strides(shape)
    perm = fastest_first(shape, expanded)
    natural = True
    for k in range(n):
        if perm[k] != n - 1 - k:
            natural = False
    if natural:
        return contiguous_strides(shape)
    out: list[int] = [0] * n
    step: i64 = 1
    for p in perm:
        out[p] = int(step)
        size: i64 = shape[p]
        if overflows(step, size):
            raise too_large(shape)
        step *= size
    return tuple(out)


def compare(d0: int, d1: int, strides: list[Ints], shape: Ints) -> i64:
    """Which of two dimensions moves faster; 0 when the inputs do not say."""
    for s in strides:
        s0: i64 = s[d0]
        s1: i64 = s[d1]
        if s0 == 0 or s1 == 0:
            continue
        if s0 < s1:
            return -1
        if s0 > s1:
            return 1
        n0: i64 = shape[d0]
        n1: i64 = shape[d1]
        if n0 > n1:
            return 1
    return 0


def strides_dense(shape: Ints, stride: Ints) -> bool:
    """Non-overlapping and dense: some order of the dimensions is row-major."""
    pairs = sorted([(stride[i], n) for i, n in enumerate(shape) if n != 1])
    expected = 1
    for s, n in pairs:
        if n == 0:
            return True
        if s != expected:
            return False
        expected *= n
    return True


def strides_match(shape: Ints, stride: Ints, wanted: Ints) -> bool:
    """Whether the strides are the wanted ones; sizes of one may have any."""
    i: i64 = 0
    for n in shape:
        if n != 1 and stride[i] != wanted[i]:
            return False
        i += 1
    return True


def format_strides(shape: Ints, memory_format: Any) -> Ints:
    """Strides of a new tensor in a memory format."""
    if memory_format is None or memory_format is CONTIGUOUS:
        return contiguous_strides(shape)
    if memory_format is CHANNELS_LAST:
        return channels_last_strides(shape, 2)
    if memory_format is CHANNELS_LAST_3D:
        return channels_last_strides(shape, 3)
    if not isinstance(memory_format, memory_format_type):
        raise TypeError(f"argument 'memory_format' must be torch.memory_format, not {type(memory_format).__name__}")
    raise RuntimeError("unsupported memory format option Preserve")


def format_of(shape: Ints, stride: Ints) -> Any:
    """The memory format that strides look like; None for the plain order, and where they do not tell."""
    n = len(shape)
    if n == 4 and like_channels_last(shape, stride, [1, 3, 2, 0]):
        return CHANNELS_LAST
    if n == 5 and like_channels_last(shape, stride, [1, 4, 3, 2, 0]):
        return CHANNELS_LAST_3D
    return None


def like_channels_last(shape: Ints, stride: Ints, order: list[int]) -> bool:
    """PyTorch's guess: strides grow in the given order of dimensions. Sizes of one are where it can only guess."""
    least: i64 = 0
    if stride[1] == 0:
        return False
    for d in order:
        size: i64 = shape[d]
        step: i64 = stride[d]
        if size == 0 or step < least:
            return False
        if d == 0 and least == stride[1]:
            return False
        least = step * size if size > 1 else step
    return True


def extent(shape: Ints, stride: Ints) -> i64:
    """How many elements a layout spans from its first one."""
    last: i64 = 0
    i: i64 = 0
    n: i64 = len(shape)
    while i < n:
        size: i64 = shape[i]
        if size == 0:
            return 0
        step: i64 = stride[i]
        last += (size - 1) * step
        i += 1
    return last + 1


def view_strides(shape: Ints, stride: Ints, size: Ints, total: i64) -> Ints | None:
    """Strides that show the same `total` elements in shape `size`, or None when only a copy can."""
    if total == 0:
        return stride if size == shape else contiguous_strides(size)
    i: i64 = len(shape) - 1
    if i < 0 or (stride[i] == 1 and strides_contiguous(shape, stride)):
        return contiguous_strides(size)
    out: list[int] = [0] * len(size)
    d: i64 = len(size) - 1
    base: i64 = stride[i]
    chunk: i64 = 1
    seen: i64 = 1
    while i >= 0:
        here: i64 = shape[i]
        chunk *= here
        last = i == 0
        broken = False
        if not last:
            before: i64 = shape[i - 1]
            step: i64 = stride[i - 1]
            broken = before != 1 and step != chunk * base
        if last or broken:
            # The dimensions seen since the last break move as one.
            while d >= 0:
                want: i64 = size[d]
                if seen >= chunk and want != 1:
                    break
                out[d] = int(seen * base)
                seen *= want
                d -= 1
            if seen != chunk:
                return None
            if not last:
                base = stride[i - 1]
                chunk = 1
                seen = 1
        i -= 1
    return tuple(out) if d < 0 else None


def may_overlap(shape: Ints, stride: Ints) -> bool:
    """Whether a geometry may visit a place twice (exact for everything but unusual interleavings)."""
    pairs = sorted([(stride[i], n) for i, n in enumerate(shape) if n != 1])
    reach = 0
    for s, n in pairs:
        if n == 0:
            return False
        if s <= reach:
            return True
        reach += s * (n - 1)
    return False
