"""Operators that only move elements into new places: joining, flipping, repeating, triangles, diagonals, padding."""
from __future__ import annotations

from typing import Any

from .._backends.common import overlap, transfer
from .._backends.common import view as v
from .._dispatch.op import Op, Spec, type_name
from .._layout import contiguous_format, preserve_format
from .._promotion import can_cast
from .._sizes import dense_bytes
from .._strides import format_strides
from .._tensor_base import TensorBase, alias, numel
from .._warn import warn
from . import copy, view
from .rules.base import KeptRule, like, spec, wrap_dim
from .rules.layout import preserved_strides, suggested_format
from .rules.shape import CatRule, FlipRule, StackRule, TriangleRule, check_sizes, check_value
from .table import composite, op

Ints = tuple[int, ...]


# -- joining ------------------------------------------------------------------------------------------------------
def _cat_grad(g: Any, dim: int, tensors_shapes: list[Ints]) -> list[Any]:
    """Each tensor's part of the gradient."""
    out, at = [], 0
    d = dim + g.dim() if dim < 0 else dim
    for shape in tensors_shapes:
        if len(shape) == 1 and shape[0] == 0:
            out.append(g.new_zeros((0,)))
        else:
            out.append(view.SLICE.call((g, d, at, at + shape[d], 1)))
            at += shape[d]
    return out


CAT: Op = op("cat(Tensor[] tensors, int dim=0) -> Tensor", meta=CatRule(), out=True,
         grad=dict(tensors=lambda g, dim, tensors_shapes: _cat_grad(g, dim, tensors_shapes)))
CAT.row.fallback = transfer.CAT
transfer.across(CAT, transfer.CAT)
STACK: Op = op("stack(Tensor[] tensors, int dim=0) -> Tensor", meta=StackRule(), out=True,
           grad=dict(tensors=lambda g, dim: view.UNBIND.call((g, dim))))
STACK.row.fallback = transfer.STACK
transfer.across(STACK, transfer.STACK)
for _name in ("concat", "concatenate"):
    _form = composite(f"{_name}(Tensor[] tensors, int dim=0) -> Tensor", lambda tensors, dim: CAT.call((tensors, dim)))
    _form.row.out_op = CAT.row.out_op


def _joined(name: str, prepare: Any, least: int, dim: Any) -> None:
    """hstack and the like: cat along a fixed dimension after every tensor got enough of them."""
    def parts_of(tensors: Any) -> Any:
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        parts = tensors
        for t in tensors:
            if len(t._shape) < least:
                parts = tuple([prepare(t) for t in tensors])
                break
        return parts, dim(parts)

    form = composite(f"{name}(Tensor[] tensors) -> Tensor", lambda tensors: CAT.call(parts_of(tensors)))
    form.row.out_op = composite(f"{name}.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)",
                                lambda tensors, out: CAT.row.out_op.call((*parts_of(tensors), out)), function=False)
    form.row.out_op.is_out = True


def _atleast_1d(self: Any) -> Any:
    return self if self.dim() >= 1 else view.VIEW.call((self, (1,)))


def _atleast_2d(self: Any) -> Any:
    n = self.dim()
    return self if n >= 2 else view.VIEW.call((self, (1, 1))) if n == 0 else view.UNSQUEEZE.call((self, 0))


def _atleast_3d(self: Any) -> Any:
    n = len(self._shape)
    if n >= 3:
        return self
    if n == 2:
        return view.UNSQUEEZE.call((self, -1))
    if n == 0:
        return view.VIEW.call((self, (1, 1, 1)))
    return view.UNSQUEEZE.call((view.UNSQUEEZE.call((self, 0)), -1))


def _as_column(self: Any) -> Any:
    return self if len(self._shape) >= 2 else view.VIEW.call((view._contiguous(self), (numel(self), 1)))


_joined("hstack", _atleast_1d, 1, lambda parts: 0 if len(parts[0]._shape) == 1 else 1)
_joined("vstack", _atleast_2d, 2, lambda parts: 0)
_joined("row_stack", _atleast_2d, 2, lambda parts: 0)
_joined("dstack", _atleast_3d, 3, lambda parts: 2)
_joined("column_stack", _as_column, 2, lambda parts: 1)


def _at_least(name: str, one: Any) -> Any:
    def fn(*tensors: Any) -> Any:
        items = tensors[0] if len(tensors) == 1 else tensors
        if isinstance(items, TensorBase):
            return one(items)
        if not isinstance(items, (tuple, list)):
            raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                            f"{type_name(items)}")
        for i, t in enumerate(items):
            if not isinstance(t, TensorBase):
                raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, but found "
                                f"element of type {type_name(t)} at pos {i}")
        return tuple(one(t) for t in items)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"{name}(*tensors): views with at least {name[8]} dimensions."
    return fn


atleast_1d = _at_least("atleast_1d", _atleast_1d)
atleast_2d = _at_least("atleast_2d", _atleast_2d)
atleast_3d = _at_least("atleast_3d", _atleast_3d)


def meshgrid(*tensors: Any, indexing: Any = None) -> Any:
    """meshgrid(*tensors, indexing=None): coordinate grids, as views of one-dimensional tensors."""
    items = view.only_tensors(
        tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors)
    if not items:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
        indexing = "ij"
    elif isinstance(indexing, bytes):
        indexing = indexing.decode()
    elif not isinstance(indexing, str):
        raise TypeError(f"meshgrid(): argument 'indexing' must be str, not {type(indexing).__name__}")
    for t in items:
        if t._dtype is not items[0]._dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if t._device != items[0]._device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(items) >= 2
    parts = [items[1], items[0], *items[2:]] if swap else list(items)
    for t in parts:
        if t.dim() > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t}")
    shape = tuple(numel(t) for t in parts)
    n = len(shape)
    grids = [view.EXPAND.call((view.VIEW.call((t, (*(1,) * i, -1, *(1,) * (n - 1 - i)))), shape, False))
             for i, t in enumerate(parts)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


# -- order of elements --------------------------------------------------------------------------------------------
FLIP: Op = op("flip(Tensor self, int[] dims) -> Tensor", meta=FlipRule(),
          grad=dict(self=lambda g, dims: FLIP.call((g, dims))))


def _fliplr(self: Any) -> Any:
    if self.dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return FLIP.call((self, (1,)))


def _flipud(self: Any) -> Any:
    if self.dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return FLIP.call((self, (0,)))


composite("fliplr(Tensor self) -> Tensor", _fliplr)
composite("flipud(Tensor self) -> Tensor", _flipud)


def _roll_rule(self: Any, shifts: Ints, dims: Ints) -> Spec:
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not (len(shifts) == 1 and not dims) and len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if len(dims) == 1 and self.numel() == 0:
        # Nothing moves, so PyTorch does not look at the dimension.
        return Spec(self._shape, self._stride, self._dtype, self._dtype, self._device)
    for d in dims:
        if self.dim() == 0:
            raise IndexError(f"Dimension specified as {d} but tensor has no dimensions")
        wrap_dim(d, self.dim())
    # Two parts are joined along a dimension: where neither is empty, that keeps a memory format.
    joined = dims and self.numel() and all(n % self._shape[d] for n, d in zip(shifts, dims))
    stride = format_strides(self._shape, suggested_format(self)) if joined else None
    return spec(self._shape, self._dtype, self._device, stride)


def roll_in_parts(self: Any, shifts: Ints, dims: Ints) -> Any:
    if not dims:
        flat = view.VIEW.call((view._contiguous(self), (-1,)))
        return view.UNSAFE_VIEW.call((_rolled(flat, shifts[0], 0), self._shape))
    if len(dims) == 1 and self.numel() == 0:
        return copy.CLONE.call((self, preserve_format))
    out = self
    for s, d in zip(shifts, dims):
        out = _rolled(out, s, d)
    return out


def _rolled(t: Any, shift: int, dim: int) -> Any:
    n = t._shape[wrap_dim(dim, t.dim())]
    if n == 0:
        return copy.CLONE.call((t, contiguous_format))
    at = -shift % n
    return CAT.call(((view.SLICE.call((t, dim, at, n, 1)), view.SLICE.call((t, dim, 0, at, 1))), dim))


ROLL: Op = op("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", meta=KeptRule(_roll_rule),
          kernel=roll_in_parts, grad=dict(self=lambda g, shifts, dims: ROLL.call((g, tuple(-s for s in shifts), dims))))


def _rot90_rule(self: Any, k: int, dims: Ints) -> Spec:
    n = self.dim()
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if n < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {n}")
    a, b = wrap_dim(dims[0], n), wrap_dim(dims[1], n)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    if k % 4 == 0:
        return like(self)
    stride = preserved_strides(self)
    if k % 4 == 2:
        return spec(self._shape, self._dtype, self._device, stride)
    shape, stride, _ = v.transpose(self._shape, stride, 0, a, b)
    return spec(shape, self._dtype, self._device, stride)


def _rot90(self: Any, k: int, dims: Ints) -> Any:
    a, b = dims
    turns = k % 4
    if turns == 0:
        return copy.CLONE.call((self, contiguous_format))
    if turns == 2:
        return FLIP.call((self, (a, b)))
    flipped = FLIP.call((self, (b if turns == 1 else a,)))
    return view.DETACH.call((view.TRANSPOSE.call((flipped, a, b)),))


ROT90: Op = op("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", meta=_rot90_rule, kernel=_rot90,
           grad=dict(self=lambda g, k, dims: ROT90.call((g, -k, dims))))


# -- triangles and diagonals --------------------------------------------------------------------------------------
TRIL: Op = op("tril(Tensor self, SymInt diagonal=0) -> Tensor", meta=TriangleRule("tril"), inplace=True,
          overlap=overlap.APART, out=True, grad=dict(self=lambda g, diagonal: TRIL.call((g, diagonal))))
TRIU: Op = op("triu(Tensor self, SymInt diagonal=0) -> Tensor", meta=TriangleRule("triu"), inplace=True,
          overlap=overlap.APART, out=True, grad=dict(self=lambda g, diagonal: TRIU.call((g, diagonal))))


def _diag_embed_rule(self: Any, offset: int, dim1: int, dim2: int) -> Spec:
    n = self.dim() + 1
    a, b = wrap_dim(dim1, n), wrap_dim(dim2, n)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = abs(offset) + self._shape[-1]
    sizes = list(self._shape[:-1])
    for d in sorted((a, b)):
        sizes.insert(d, side)
    return like(self, tuple(sizes))


DIAG_EMBED: Op = op("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
                    meta=KeptRule(_diag_embed_rule), out="ops",
                    grad=dict(self=lambda g, offset, dim1, dim2: view.DIAGONAL.call((g, offset, dim1, dim2))))
DIAG_EMBED.row.fallback = transfer.EmbedKernel(v.diagonal)
DIAGONAL_COPY: Op = op(
    "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", method=False, out=True,
    meta=lambda self, offset, dim1, dim2: like(self, v.diagonal(self._shape, self._stride, 0, offset, dim1, dim2)[0]),
    kernel=lambda self, offset, dim1, dim2: copy.CLONE.call(
        (view.DIAGONAL.call((self, offset, dim1, dim2)), contiguous_format)),
    node="DiagonalBackward0_copy",
    grad=dict(self=lambda g, self_shape, offset, dim1, dim2:
              view.DIAGONAL_BACKWARD.call((g, self_shape, offset, dim1, dim2))))


def _diag(self: Any, diagonal: int) -> tuple[Op, tuple[Any, ...]]:
    """The operator that `diag` is, and its arguments."""
    n = self.dim()
    if n == 1:
        return DIAG_EMBED, (self, diagonal, -2, -1)
    if n == 2:
        return DIAGONAL_COPY, (self, diagonal, 0, 1)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {n}D")


def _diag_into(self: Any, diagonal: int, out: Any) -> Any:
    o, args = _diag(self, diagonal)
    if o is DIAG_EMBED and not can_cast(self._dtype, out._dtype):
        raise RuntimeError(f"diag: result type {self._dtype.scalar_name} can't be cast to the desired out= type "
                           f"{out._dtype.scalar_name}")
    return o.row.out_op.call((*args, out))


def _diag_of(self: Any, diagonal: int) -> Any:
    o, args = _diag(self, diagonal)
    return o.call(args)


DIAG: Op = composite("diag(Tensor self, int diagonal=0) -> Tensor", _diag_of)
DIAG.row.out_op = composite("diag.out(Tensor self, int diagonal=0, *, Tensor(a!) out) -> Tensor(a!)", _diag_into,
                            function=False, method=False)
DIAG.row.out_op.is_out = True


# -- repeating ----------------------------------------------------------------------------------------------------
def _repeat_rule(self: Any, repeats: Ints) -> Spec:
    if len(repeats) < self.dim():
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    padded = (1,) * (len(repeats) - self.dim()) + tuple(self._shape)
    sizes = tuple(r * s for r, s in zip(repeats, padded))
    check_sizes("repeat", sizes)
    return like(self, sizes)


def _repeat_grad(g: Any, repeats: Ints, self_shape: Ints) -> Any:
    """Sum over the copies."""
    if any(r == 0 for r in repeats):
        return g.new_zeros(self_shape)
    padded = (1,) * (len(repeats) - len(self_shape)) + tuple(self_shape)
    sizes: list[int] = []
    dims: list[int] = []
    for r, s in zip(repeats, padded):
        if r != 1:
            dims.append(len(sizes))
            sizes.append(r)
        sizes.append(s)
    out = view.RESHAPE.call((g, tuple(sizes)))
    if dims:
        out = out.sum(tuple(dims))
    return view.RESHAPE.call((out, self_shape))


REPEAT: Op = op("repeat(Tensor self, SymInt[] repeats) -> Tensor", meta=_repeat_rule, function=False,
            grad=dict(self=lambda g, repeats, self_shape: _repeat_grad(g, repeats, self_shape)))
REPEAT.row.fallback = transfer.REPEAT


def _tile(self: Any, dims: Ints) -> Any:
    return REPEAT.call((self, (1,) * (self.dim() - len(dims)) + dims))


composite("tile(Tensor self, SymInt[] dims) -> Tensor", _tile)


def _repeat_interleave(self: Any, repeats: int, dim: int | None, output_size: int | None) -> Any:
    if dim is None:
        self, dim = view.RESHAPE.call((self, (-1,))), 0
    d = wrap_dim(dim, self.dim())
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = self._shape if self.dim() else (1,)
    total = shape[d] * repeats
    if output_size is not None and output_size != total:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {total} but got {output_size}")
    wide = view.EXPAND.call((view.UNSQUEEZE.call((self, d + 1 if self.dim() else 0)),
                             (*shape[:d + 1], repeats, *shape[d + 1:]) if self.dim() else (repeats,), False))
    return view.VIEW.call((copy.CLONE.call((wide, contiguous_format)), (*shape[:d], total, *shape[d + 1:])))


def _repeat_interleave_tensor(self: Any, repeats: Any, dim: int | None, output_size: int | None) -> Any:
    if dim is None:
        self, dim = view.RESHAPE.call((self, (-1,))), 0
    d = wrap_dim(dim, self.dim())
    if not self.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if repeats.dim() == 0 or (repeats.dim() == 1 and numel(repeats) == 1):
        repeats = view.EXPAND.call((view.RESHAPE.call((repeats, (1,))), (self._shape[d],), False))
    if repeats.dim() != 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if numel(repeats) != self._shape[d]:
        raise RuntimeError(f"repeats must have the same size as input along dim, but got repeats.size(0) = "
                           f"{numel(repeats)} and input.size({d}) = {self._shape[d]}")
    index = _interleave_index(repeats, output_size)
    return view.read_alike(view.read_alike(self, self).index_select(d, index), self)


# Places that are listed in Python.
_FEW = 64


def _interleave_index(repeats: Any, output_size: int | None) -> Any:
    """0 repeats[0] times, 1 repeats[1] times, ..."""
    if repeats.dim() != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats._device.type == "meta" and output_size is not None:
        return repeats.new_empty((output_size,))
    if repeats._dtype.name not in ("int32", "int64"):
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{repeats._dtype.scalar_name}'")
    if repeats._device.type != "cpu":
        return _interleave_on_device(repeats, output_size)
    counts = repeats.tolist()
    if counts and min(counts) < 0:
        raise RuntimeError("repeats can not be negative")
    total = sum(counts)
    dense_bytes((total,), repeats._dtype.itemsize)
    out = repeats.new_empty((total if output_size is None else output_size,))
    if numel(out) != total:
        raise RuntimeError("allocated size does not match required size")
    if total <= _FEW:
        return repeats.new_tensor([i for i, count in enumerate(counts) for _ in range(count)])
    import numpy

    from .._from_data import from_numpy

    # A new tensor, not `out` written to: its version is that of a result. `out` showed that there is memory for it.
    return from_numpy(numpy.repeat(numpy.arange(len(counts)), counts)).to(repeats._dtype, copy=True)


def _interleave_on_device(repeats: Any, output_size: int | None) -> Any:
    """Counts how many elements end at or before each place; the host asks for two numbers, or none if it knows the
    size."""
    if numel(repeats) == 0:
        return repeats.new_empty((0,))
    ends = repeats.cumsum(0, dtype=repeats._dtype)
    if output_size is None:
        output_size, least = STACK.call(((ends[-1], repeats.min()), 0)).tolist()
        if least < 0:
            raise RuntimeError("repeats can not be negative")
    marks = repeats.new_zeros((output_size + 1,)).index_add(0, ends, repeats.new_ones(repeats._shape))
    return marks.cumsum(0, dtype=repeats._dtype)[:output_size]


composite("repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) "
          "-> Tensor", _repeat_interleave_tensor)
composite("repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) "
          "-> Tensor", _repeat_interleave)
composite("repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor", _interleave_index)


# -- padding ------------------------------------------------------------------------------------------------------
def _pad_rule(self: Any, pad: Ints, value: Any) -> Spec:
    n = self.dim()
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * n:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)}while the input has {n}dimensions.")
    sizes, kept = list(self._shape), list(self._shape)
    for k in range(len(pad) // 2):
        before, after = pad[2 * k], pad[2 * k + 1]
        sizes[n - 1 - k] += before + after
        kept[n - 1 - k] += min(before, 0) + min(after, 0)
    if any(x < 0 for x in kept):
        raise RuntimeError("narrow(): length must be non-negative.")
    for k in range(len(pad) // 2):
        d = n - 1 - k
        if sizes[d] < 0:
            raise RuntimeError(
                f"The input size {self._shape[d]}, plus negative padding {pad[2 * k]} and {pad[2 * k + 1]} resulted in "
                f"a negative output size, which is invalid. Check dimension {d} of your input.")
    shape = tuple(sizes)
    if all(p <= 0 for p in pad):
        return spec(shape, self._dtype, self._device, preserved_strides(alias(self, shape, self._stride, 0)))
    check_value(value, self._dtype)
    return spec(shape, self._dtype, self._device, format_strides(shape, suggested_format(self)))


PAD: Op = op("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", meta=KeptRule(_pad_rule),
             method=False, grad=dict(self=lambda g, pad: PAD.call((g, tuple(-p for p in pad), 0))))
PAD.row.fallback = transfer.PAD
