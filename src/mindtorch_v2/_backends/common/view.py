"""Geometry of views: shape, strides and offset of a tensor that shares another's memory, the same on every device.

Invariant: a layout function reads metadata only, gives a geometry that lies inside the one it was given (as_strided,
which may not, is checked against the storage), and refuses with PyTorch's text.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._device import META
from ..._dispatch.keys import BACKENDS, BATCHED, CONJUGATE, LAZY
from ..._dispatch.op import Kernel, Op
from ..._dispatch.state import is_grad_enabled
from ..._dtype import dtype, float16, float32, float64
from ..._dtype_names import tensor_type
from ..._mypyc import i64
from ..._ops.rules.base import wrap_dim, wrap_dims
from ..._sizes import LONG_MAX, SHORT, concrete, geometry_too_large, numel_of, overflows
from ..._strides import view_strides
from ..._tensor_base import MULTI_OUTPUT_NODE, TensorBase, alias, make, make_view, numel
from .kernels import bounds_checked

Ints = tuple[int, ...]
Layout = tuple[Ints, Ints, int]

_INCOMPATIBLE: Final = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
    "contiguous subspaces). Use .reshape(...) instead."
)


# -- reshaping ----------------------------------------------------------------------------------------------------
def infer_size(size: Ints, total: i64) -> Ints:
    """The shape with its -1 worked out; PyTorch's errors when the elements do not fit."""
    # Python's integers: a product of sizes may be larger than 64 bits.
    known: int = 1
    elements: int = int(total)
    hole: i64 = -1
    i: i64 = 0
    for n in size:
        if n == -1:
            if hole >= 0:
                raise RuntimeError("only one dimension can be inferred")
            hole = i
        elif n >= 0:
            known *= n
        else:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(size)}")
        i += 1
    if hole < 0:
        if known != elements:
            concrete(size)
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {total}")
        if total == 0:
            numel_of(size)
        return size
    if known > 0 and elements % known == 0 and (elements > 0 or known <= LONG_MAX):
        out = list(size)
        out[hole] = elements // known
        return tuple(out)
    if total == 0:
        concrete(size)
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(size)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    concrete(size)
    raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {total}")


def view(shape: Ints, stride: Ints, offset: int, size: Ints) -> Layout:
    total = numel_of(shape)
    size = infer_size(size, total)
    strides = view_strides(shape, stride, size, total)
    if strides is None:
        raise RuntimeError(_INCOMPATIBLE)
    return size, strides, offset


def alias_layout(shape: Ints, stride: Ints, offset: int) -> Layout:
    return shape, stride, offset


def expand(shape: Ints, stride: Ints, offset: int, size: Ints) -> Layout:
    n: i64 = len(size)
    d = n - len(shape)
    sizes: list[int] = [0] * n
    strides: list[int] = [0] * n
    i: i64 = n - 1
    while i >= 0:
        want: i64 = size[i]
        if want > SHORT:
            concrete(size)
        if i < d:
            if want < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({want}) isn't allowed in a leading, non-existing dimension {i}"
                )
            sizes[i] = int(want)
            if want == 1 and n > d:
                strides[i] = sizes[i + 1] * strides[i + 1] if i + 1 < n else 1
        else:
            have: i64 = shape[i - d]
            if want == -1:
                want = have
            if want != have:
                if have != 1:
                    raise RuntimeError(
                        f"The expanded size of the tensor ({want}) must match the existing size ({have}) at "
                        f"non-singleton dimension {i}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
                    )
                strides[i] = 0
            else:
                strides[i] = stride[i - d]
            sizes[i] = int(want)
        i -= 1
    expanded = tuple(sizes)
    numel_of(expanded)
    return expanded, tuple(strides), offset


# -- order of dimensions ------------------------------------------------------------------------------------------
def permute(shape: Ints, stride: Ints, offset: int, dims: Ints) -> Layout:
    n = len(shape)
    if len(dims) != n:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {n} is not equal to len(dims) = {len(dims)}"
        )
    sizes: list[int] = []
    strides: list[int] = []
    seen = 0
    for d in dims:
        w = wrap_dim(d, n)
        bit = 1 << w
        if seen & bit:
            raise RuntimeError("permute(): duplicate dims are not allowed.")
        seen |= bit
        sizes.append(shape[w])
        strides.append(stride[w])
    return tuple(sizes), tuple(strides), offset


def transpose(shape: Ints, stride: Ints, offset: int, dim0: int, dim1: int) -> Layout:
    n = len(shape)
    a = wrap_dim(dim0, n)
    b = wrap_dim(dim1, n)
    if a == b:
        return shape, stride, offset
    if n == 2:
        return (shape[1], shape[0]), (stride[1], stride[0]), offset
    sizes = list(shape)
    strides = list(stride)
    sizes[a], sizes[b] = sizes[b], sizes[a]
    strides[a], strides[b] = strides[b], strides[a]
    return tuple(sizes), tuple(strides), offset


def t(shape: Ints, stride: Ints, offset: int) -> Layout:
    n = len(shape)
    if n > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {n}D")
    if n < 2:
        return shape, stride, offset
    return (shape[1], shape[0]), (stride[1], stride[0]), offset


# -- parts --------------------------------------------------------------------------------------------------------
def select(shape: Ints, stride: Ints, offset: int, dim: int, index: int) -> Layout:
    n = len(shape)
    if n == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d: i64 = wrap_dim(dim, n)
    size: i64 = shape[d]
    at: i64 = index
    if at < -size or at >= size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {d}")
    if at < 0:
        at += size
    step: i64 = stride[d]
    where = int(offset + at * step)
    if n == 1:
        return (), (), where
    if n == 2:
        return ((shape[1],), (stride[1],), where) if d == 0 else ((shape[0],), (stride[0],), where)
    sizes = list(shape)
    strides = list(stride)
    del sizes[d]
    del strides[d]
    return tuple(sizes), tuple(strides), where


def slice_(shape: Ints, stride: Ints, offset: int, dim: int, start: int | None, end: int | None, step: int) -> Layout:
    n = len(shape)
    if n == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    d: i64 = wrap_dim(dim, n)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if step > LONG_MAX:
        step = LONG_MAX
    size: i64 = shape[d]
    first = clamped(start, 0, size)
    last = clamped(end, size, size)
    if last < first:
        last = first
    jump: i64 = stride[d]
    by: i64 = step
    length = int((last - first - 1) // by + 1) if last > first else 0
    where = int(offset + first * jump)
    if overflows(jump, by):
        raise geometry_too_large(
            shape[:d] + (length,) + shape[d + 1 :], stride[:d] + (stride[d] * step,) + stride[d + 1 :]
        )
    if n == 1:
        return (length,), (int(jump * by),), where
    sizes = list(shape)
    strides = list(stride)
    sizes[d] = length
    strides[d] = int(jump * by)
    return tuple(sizes), tuple(strides), where


def clamped(at: int | None, missing: i64, size: i64) -> i64:
    """A slice bound counted from the front and kept inside the dimension."""
    if at is None:
        return missing
    # Compared as Python's integers: the user's may be larger than 64 bits.
    whole: int = int(size)
    if at < 0:
        back: int = at + whole
        if back < 0:
            return 0
        return back
    if at > whole:
        return size
    return at


def squeeze(shape: Ints, stride: Ints, offset: int) -> Layout:
    sizes: list[int] = []
    strides: list[int] = []
    for i, s in enumerate(shape):
        if s != 1:
            sizes.append(s)
            strides.append(stride[i])
    return tuple(sizes), tuple(strides), offset


def squeeze_dim(shape: Ints, stride: Ints, offset: int, dim: int) -> Layout:
    d = wrap_dim(dim, len(shape))
    if len(shape) == 0 or shape[d] != 1:
        return shape, stride, offset
    sizes = list(shape)
    strides = list(stride)
    del sizes[d]
    del strides[d]
    return tuple(sizes), tuple(strides), offset


def squeeze_dims(shape: Ints, stride: Ints, offset: int, dim: Ints) -> Layout:
    drop = wrap_dims(dim, len(shape))
    sizes: list[int] = []
    strides: list[int] = []
    for i, s in enumerate(shape):
        if s != 1 or i not in drop:
            sizes.append(s)
            strides.append(stride[i])
    return tuple(sizes), tuple(strides), offset


def unsqueeze(shape: Ints, stride: Ints, offset: int, dim: int) -> Layout:
    n = len(shape)
    d = wrap_dim(dim, n + 1)
    step: i64 = 1
    if d < n:
        step = shape[d] * stride[d]
    if n == 2 and d == 0:
        return (1, shape[0], shape[1]), (int(step), stride[0], stride[1]), offset
    if n == 1:
        return ((1, shape[0]), (int(step), stride[0]), offset) if d == 0 else ((shape[0], 1), (stride[0], 1), offset)
    sizes = list(shape)
    strides = list(stride)
    sizes.insert(d, 1)
    strides.insert(d, int(step))
    return tuple(sizes), tuple(strides), offset


def diagonal(shape: Ints, stride: Ints, offset: int, diag: int, dim1: int, dim2: int) -> Layout:
    n = len(shape)
    a = wrap_dim(dim1, n)
    b = wrap_dim(dim2, n)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    length: int
    if diag >= 0:
        length = max(min(shape[a], shape[b] - diag), 0)
    else:
        length = max(min(shape[a] + diag, shape[b]), 0)
    if length > 0:
        offset += diag * stride[b] if diag >= 0 else -diag * stride[a]
    sizes: list[int] = []
    strides: list[int] = []
    for i, s in enumerate(shape):
        if i != a and i != b:
            sizes.append(s)
            strides.append(stride[i])
    sizes.append(length)
    strides.append(stride[a] + stride[b])
    return tuple(sizes), tuple(strides), offset


def unfold(shape: Ints, stride: Ints, offset: int, dimension: int, size: int, step: int) -> Layout:
    n = len(shape)
    d = wrap_dim(dimension, n)
    room = 1 if n == 0 else shape[d]
    if size > room:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {room} but size is {size}")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    sizes = list(shape)
    strides = list(stride)
    sizes.append(size)
    strides.append(1 if n == 0 else stride[d])
    if n > 0:
        sizes[d] = (room - size) // step + 1
        strides[d] = step * stride[d]
        if strides[d] > LONG_MAX:
            raise geometry_too_large(tuple(sizes), tuple(strides))
    return tuple(sizes), tuple(strides), offset


# -- several views at once ----------------------------------------------------------------------------------------
def split(shape: Ints, stride: Ints, offset: int, split_size: int, dim: int) -> list[Layout]:
    n = len(shape)
    if n == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    d = wrap_dim(dim, n)
    total = shape[d]
    if split_size == 0:
        if total != 0:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {total}")
        return [(shape, stride, offset)]
    parts = max((total + split_size - 1) // split_size, 1)
    check_pieces(parts)
    return pieces(shape, stride, offset, d, [min(split_size, total - i * split_size) for i in range(parts)])


def split_with_sizes(shape: Ints, stride: Ints, offset: int, split_sizes: Ints, dim: int) -> list[Layout]:
    n = len(shape)
    if n == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, n)
    total = 0
    for s in split_sizes:
        if s < 0:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes have only non-negative entries, but got "
                f"split_sizes={list(split_sizes)}"
            )
        total += s
    if total != shape[d]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[d]} (input tensor's size at dimension "
            f"{d}), but got split_sizes={list(split_sizes)}"
        )
    return pieces(shape, stride, offset, d, list(split_sizes))


def check_pieces(n: int) -> None:
    """Refuse more views than any memory holds before the first one is made."""
    if n > _MOST_PIECES:
        raise RuntimeError(f"can't allocate memory: you tried to make a list of {n} tensors")


_MOST_PIECES: Final = 268435456


def pieces(shape: Ints, stride: Ints, offset: int, d: int, lengths: list[int]) -> list[Layout]:
    out: list[Layout] = []
    at = offset
    step = stride[d]
    for length in lengths:
        sizes = list(shape)
        sizes[d] = length
        out.append((tuple(sizes), stride, at))
        at += length * step
    return out


def unbind(shape: Ints, stride: Ints, offset: int, dim: int) -> list[Layout]:
    n = len(shape)
    if n == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, n)
    sizes = list(shape)
    strides = list(stride)
    del sizes[d]
    del strides[d]
    check_pieces(shape[d])
    shape_left = tuple(sizes)
    stride_left = tuple(strides)
    return [(shape_left, stride_left, offset + i * stride[d]) for i in range(shape[d])]


# -- kernels ------------------------------------------------------------------------------------------------------
# The common views have a kernel each, so that their layout functions are called directly.
@final
class ViewSizeKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        total = numel(src)
        size = infer_size(args[1], total)
        strides = view_strides(src._shape, src._stride, size, total)
        if strides is None:
            raise RuntimeError(_INCOMPATIBLE)
        return make_view(src, size, strides, src._offset, op, args)


@final
class ReshapeAliasKernel(Kernel):
    """A view whose strides were worked out already."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        size: Ints = args[1]
        stride: Ints = args[2]
        if len(size) != len(stride):
            raise RuntimeError(
                f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
            )
        if src._device is not META:
            bounds_checked(src, size, stride, src._offset)
        return make_view(src, size, stride, src._offset, op, args)


@final
class PermuteKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        shape, stride, offset = permute(src._shape, src._stride, int(src._offset), args[1])
        return make_view(src, shape, stride, offset, op, args)


@final
class TransposeKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        shape, stride, offset = transpose(src._shape, src._stride, int(src._offset), args[1], args[2])
        return make_view(src, shape, stride, offset, op, args)


@final
class TKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        shape, stride, offset = t(src._shape, src._stride, int(src._offset))
        return make_view(src, shape, stride, offset, op, args)


@final
class SelectKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        shape, stride, offset = select(src._shape, src._stride, int(src._offset), args[1], args[2])
        return make_view(src, shape, stride, offset, op, args)


@final
class SliceKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        shape, stride, offset = slice_(src._shape, src._stride, int(src._offset), args[1], args[2], args[3], args[4])
        return make_view(src, shape, stride, offset, op, args)


@final
class SqueezeKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        if len(args) == 1:
            shape, stride, offset = squeeze(src._shape, src._stride, int(src._offset))
        else:
            shape, stride, offset = squeeze_dim(src._shape, src._stride, int(src._offset), args[1])
        return make_view(src, shape, stride, offset, op, args)


@final
class UnsqueezeKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        shape, stride, offset = unsqueeze(src._shape, src._stride, int(src._offset), args[1])
        return make_view(src, shape, stride, offset, op, args)


@final
class PiecesKernel(Kernel):
    """Several views at once; autograd must know that they came together."""

    def __init__(self, kind: i64) -> None:
        self.kind: Final = kind

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        if self.kind == SPLIT:
            layouts = split(src._shape, src._stride, int(src._offset), args[1], args[2])
        elif self.kind == SPLIT_SIZES:
            layouts = split_with_sizes(src._shape, src._stride, int(src._offset), args[1], args[2])
        else:
            layouts = unbind(src._shape, src._stride, int(src._offset), args[1])
        recorded = is_grad_enabled()
        out: list[Any] = []
        for shape, stride, offset in layouts:
            piece = make_view(src, shape, stride, offset, op, args)
            if recorded:
                piece._cmeta = MULTI_OUTPUT_NODE
            out.append(piece)
        return tuple(out)


SPLIT: Final[i64] = 0
SPLIT_SIZES: Final[i64] = 1
UNBIND: Final[i64] = 2


# -- kernels for views whose geometry is not all there is to know ---------------------------------------------------
@final
class ExpandKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        size: Ints = args[1]
        if len(size) < len(src._shape):
            kind = tensor_type(src._dtype, src._device)
            raise RuntimeError(
                f"expand({kind}{{{list(src._shape)}}}, size={list(size)}): the number of sizes provided "
                f"({len(size)}) must be greater or equal to the number of dimensions in the tensor ({len(src._shape)})"
            )
        shape, stride, offset = expand(src._shape, src._stride, int(src._offset), size)
        return make_view(src, shape, stride, offset, op, args)


@final
class AsStridedKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        size: Ints = args[1]
        stride: Ints = args[2]
        offset: i64 = src._offset
        if args[3] is not None:
            offset = args[3]
        check_strided(src, size, stride, offset)
        return make_view(src, size, stride, offset, op, args)


def check_strided(src: TensorBase, size: Ints, stride: Ints, offset: i64) -> None:
    """Refuse a geometry that is malformed or leaves the storage."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    for s in stride:
        if s < 0:
            raise RuntimeError(
                f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}"
            )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if src._device is not META:
        # Without memory there is none to leave.
        bounds_checked(src, size, stride, offset)
    numel_of(size)


@final
class DetachKernel(Kernel):
    """The same memory and version counter, without history and without tracking a base."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        return alias(src, src._shape, src._stride, src._offset)


@final
class UnsafeViewKernel(Kernel):
    """The memory of a fresh row-major tensor in another shape; not tracked, because nobody else holds the original."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        shape, stride, offset = view(src._shape, src._stride, int(src._offset), args[1])
        keys = src._keys & (BACKENDS | BATCHED | LAZY)
        return make(src._storage, offset, shape, stride, src._dtype, src._device, keys)


def typed_view(src: TensorBase, layout: Layout, dt: dtype, op: Op, args: tuple[Any, ...]) -> TensorBase:
    """A view that reads the memory as another dtype; the geometry counts elements of that dtype."""
    out = make_view(src, layout[0], layout[1], layout[2], op, args)
    out._dtype = dt
    return out


@final
class ViewDtypeKernel(Kernel):
    """The same bytes as another dtype. Not differentiable, so no base is tracked; the version counter is shared."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        dt: dtype = args[1]
        check_retyped(src)
        shape, stride, offset = dtype_layout(src, dt)
        out = alias(src, shape, stride, offset)
        out._dtype = dt
        return out


def check_retyped(src: TensorBase) -> None:
    """Bytes mean nothing by themselves where they are read as a conjugate or with the other sign."""
    if src._keys & LAZY:
        what = "conjugate view tensors" if src._keys & CONJUGATE else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {what} when converting to a different dtype.")


def check_geometry(sizes: list[int], strides: list[int]) -> None:
    """Refuse what 64 bits do not hold; a dimension without elements hides the others from their product."""
    for n in sizes:
        if n > LONG_MAX:
            raise geometry_too_large(tuple(sizes), tuple(strides))
    for n in strides:
        if n > LONG_MAX:
            raise geometry_too_large(tuple(sizes), tuple(strides))
    numel_of(tuple(sizes))


def dtype_layout(src: TensorBase, dt: dtype) -> Layout:
    """Geometry of the same bytes seen as `dt`."""
    old: i64 = src._dtype.itemsize
    new: i64 = dt.itemsize
    shape = src._shape
    stride = src._stride
    offset = src._offset
    if old == new:
        return shape, stride, int(offset)
    what = f"to view {src._dtype.scalar_name} as {dt.scalar_name} (different element sizes)"
    n = len(shape)
    if n == 0:
        raise RuntimeError(f"self.dim() cannot be 0 {what}")
    if stride[n - 1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {what}, but got {stride[n - 1]}")
    sizes = list(shape)
    strides = list(stride)
    if old > new:
        more = int(old // new)
        for i in range(n - 1):
            strides[i] = strides[i] * more
        sizes[n - 1] = sizes[n - 1] * more
        check_geometry(sizes, strides)
        return tuple(sizes), tuple(strides), int(offset) * more
    less = new // old
    if shape[n - 1] % less != 0:
        raise RuntimeError(f"self.size(-1) must be divisible by {less} {what}, but got {shape[n - 1]}")
    if offset % less != 0:
        raise RuntimeError(f"self.storage_offset() must be divisible by {less} {what}, but got {offset}")
    for i in range(n - 1):
        if stride[i] % less != 0:
            raise RuntimeError(f"self.stride({i}) must be divisible by {less} {what}, but got {stride[i]}")
        strides[i] = int(stride[i] // less)
    sizes[n - 1] = int(shape[n - 1] // less)
    return tuple(sizes), tuple(strides), int(offset // less)


@final
class ViewAsRealKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        if not src._dtype.is_complex:
            raise RuntimeError("view_as_real is only supported for complex tensors")
        if src._keys & CONJUGATE:
            raise RuntimeError(
                "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you "
                "can view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT "
                "alias the original."
            )
        sizes = list(src._shape)
        sizes.append(2)
        strides = [2 * s for s in src._stride]
        strides.append(1)
        check_geometry(sizes, strides)
        return typed_view(src, (tuple(sizes), tuple(strides), int(2 * src._offset)), src._dtype.to_real(), op, args)


@final
class ViewAsComplexKernel(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        dt = src._dtype
        if dt is not float32 and dt is not float64 and dt is not float16:
            raise RuntimeError(
                "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar "
                f"type: {dt.scalar_name}"
            )
        shape = src._shape
        stride = src._stride
        n = len(shape)
        if n == 0:
            raise RuntimeError("Input tensor must have one or more dimensions")
        if shape[n - 1] != 2:
            raise RuntimeError("Tensor must have a last dimension of size 2")
        if stride[n - 1] != 1:
            raise RuntimeError("Tensor must have a last dimension with stride 1")
        for i in range(n - 1):
            if stride[i] % 2 != 0 and shape[i] != 1:
                raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
        if src._offset % 2 != 0:
            raise RuntimeError("Tensor must have a storage_offset divisible by 2")
        sizes = list(shape)
        strides = [s // 2 for s in stride]
        del sizes[n - 1]
        del strides[n - 1]
        return typed_view(src, (tuple(sizes), tuple(strides), int(src._offset // 2)), dt.to_complex(), op, args)


VIEW: Final = ViewSizeKernel()
RESHAPE_ALIAS: Final = ReshapeAliasKernel()
PERMUTE: Final = PermuteKernel()
TRANSPOSE: Final = TransposeKernel()
T: Final = TKernel()
SELECT: Final = SelectKernel()
SLICE: Final = SliceKernel()
SQUEEZE: Final = SqueezeKernel()
UNSQUEEZE: Final = UnsqueezeKernel()
EXPAND: Final = ExpandKernel()
AS_STRIDED: Final = AsStridedKernel()
DETACH: Final = DetachKernel()
UNSAFE_VIEW: Final = UnsafeViewKernel()
VIEW_DTYPE: Final = ViewDtypeKernel()
VIEW_AS_REAL: Final = ViewAsRealKernel()
VIEW_AS_COMPLEX: Final = ViewAsComplexKernel()
