"""Views: operators whose result shares the memory of their first argument, and the rows their backward passes need."""
from __future__ import annotations

from typing import Any

from .._backends.common import lazy, transfer
from .._backends.common import view as v
from .._core_operators import CORE
from .._dispatch.binding import BAD, convert, fitted, is_element, need
from .._dispatch.keys import CONJUGATE, NEGATIVE
from .._dispatch.op import Kernel, Op, Spec, plain_name
from .._layout import contiguous_format
from .._sizes import LONG_MAX, is_long
from .._strides import contiguous_strides
from .._tensor_base import TensorBase, is_contiguous, numel
from .._warn import warn_once
from . import copy
from .composites import view as composed
from .composites.formulas import conj
from .composites.rows import ROWS
from .rules.base import like, wrap_dim
from .rules.pointwise import broadcast
from .rules.questions import is_conj, is_neg
from .rules.shape import check_sizes
from .table import composite, op, view

Ints = tuple[int, ...]
_ABSENT = object()  # an argument that was not given, where None is refused


def _served_by(o: Op, kernel: Kernel) -> Op:
    """Use a kernel of its own for a view whose layout needs more than the geometry."""
    o.row.view_kernel = kernel
    return o


# -- reshaping ----------------------------------------------------------------------------------------------------
def _reshape_grad(g: Any, self_shape: Ints) -> Any:
    return RESHAPE.call((g, self_shape))


VIEW: Op = _served_by(view("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", layout=v.view, function=False,
                       grad=dict(self=_reshape_grad)), v.VIEW)
_served_by(view("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", layout=v.alias_layout, function=False),
           v.VIEW_DTYPE)
UNSAFE_VIEW: Op = op("_unsafe_view(Tensor self, SymInt[] size) -> Tensor", function=False, method=False,
                 meta=lambda self, size: like(self, v.infer_size(size, numel(self))), grad=dict(self=_reshape_grad))
transfer.everywhere(UNSAFE_VIEW, v.UNSAFE_VIEW)
UNSAFE_VIEW.reads_lazily = True


# What reshape makes of a tensor that is not row-major but can be viewed in the new shape.
RESHAPE_ALIAS: Op = _served_by(
    view("_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)", layout=v.alias_layout,
         function=False, method=False, grad=dict(self=_reshape_grad)), v.RESHAPE_ALIAS)


def _composed(schema: str, kernel: Kernel, **options: Any) -> Op:
    """A composite whose Python is compiled."""
    o = composite(schema, _unused, **options)
    o.composite = kernel
    return o


def _unused(*args: Any) -> Any:
    """Stands for a composite's function until its kernel is set."""


_reshape = composed.reshaped
RESHAPE: Op = _composed("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", composed.RESHAPE)
composite("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", lambda self, other: _reshape(self, other._shape),
          function=False)
composite("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", lambda self, other: VIEW.call((self, other._shape)),
          function=False)


_composed("flatten(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", composed.FLATTEN)


def _contiguous(self: Any) -> Any:
    return self if is_contiguous(self) else copy.CLONE.call((self, contiguous_format))


CONTIGUOUS: Op = _composed("contiguous(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)",
                           composed.CONTIGUOUS, function=False)
composite("ravel(Tensor(a) self) -> Tensor(a)", lambda self: VIEW.call((_contiguous(self), (-1,))))


def _unflatten(self: Any, dim: int, sizes: Ints) -> Any:
    d = wrap_dim(dim, self.dim())
    if self.dim() == 0:
        raise RuntimeError(
            f"unflatten got an unexpected error:\nDimension specified as {dim} but tensor has no dimensions")
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    length = self._shape[d]
    try:
        inferred = v.infer_size(sizes, length)
    except RuntimeError as e:
        if "is invalid for input of size" not in str(e):
            raise RuntimeError(f"unflatten got an unexpected error:\n{e}") from None
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
                           f"({length}) in the input tensor") from None
    return VIEW.call((self, (*self._shape[:d], *inferred, *self._shape[d + 1:])))


composite("unflatten(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", _unflatten)

# -- expanding ----------------------------------------------------------------------------------------------------
# The engine sums a gradient to its input's shape.
EXPAND: Op = _served_by(view("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
                         layout=v.expand, function=False, grad=dict(self=lambda g: g)), v.EXPAND)
composite("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
          lambda self, other: EXPAND.call((self, other._shape, False)), function=False)
composite("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
          lambda self, size: EXPAND.call((self, size, False)))


def only_tensors(items: Any) -> Any:
    """What was given where a list of tensors belongs."""
    for i, t in enumerate(items):
        if not isinstance(t, TensorBase):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {plain_name(t)}")
    return items


def broadcast_tensors(*tensors: Any) -> Any:
    """All tensors expanded to their common shape; one that has it is returned itself."""
    items = only_tensors(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors)
    shape = broadcast(list(items))
    return tuple(t if t._shape == shape else EXPAND.call((t, shape, False)) for t in items)


# -- order of dimensions ------------------------------------------------------------------------------------------
def _inverse(dims: Ints) -> Ints:
    n = len(dims)
    out = [0] * n
    for i, d in enumerate(dims):
        out[d % n] = i
    return tuple(out)


PERMUTE: Op = _served_by(view("permute(Tensor(a) self, int[] dims) -> Tensor(a)", layout=v.permute,
                          grad=dict(self=lambda g, dims: PERMUTE.call((g, _inverse(dims))))), v.PERMUTE)
TRANSPOSE: Op = _served_by(view("transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", layout=v.transpose,
                            grad=dict(self=lambda g, dim0, dim1: TRANSPOSE.call((g, dim0, dim1)))), v.TRANSPOSE)
T: Op = _served_by(view("t(Tensor(a) self) -> Tensor(a)", layout=v.t, grad=dict(self=lambda g: T.call((g,)))), v.T)
_composed("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", composed.SWAP)
_composed("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", composed.SWAP)


for _name in ("movedim", "moveaxis"):
    composite(f"{_name}.int(Tensor(a) self, int source, int destination) -> Tensor(a)", composed.move_one)
    composite(f"{_name}.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", composed.move_many)


def _adjoint(self: Any, name: str = "adjoint()") -> Any:
    n = self.dim()
    if n == 1:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor.")
    if n == 0:
        shown = name if name == "adjoint()" else f"Tensor.{name}"
        warn_once(f"{shown} is deprecated on 0-D tensors. Consider using x.conj().")
        return self.conj() if self._dtype.is_complex else self
    out = TRANSPOSE.call((self, -2, -1))
    return out.conj() if self._dtype.is_complex else out


composite("adjoint(Tensor(a) self) -> Tensor(a)", _adjoint)


def matrix_H(self: Any) -> Any:
    """`Tensor.H`"""
    n = self.dim()
    if n not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {n}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if n > 2 else ""))
    return _adjoint(self, "H")


def mH(self: Any) -> Any:
    """`Tensor.mH`"""
    return _adjoint(self, "mH")


# -- parts --------------------------------------------------------------------------------------------------------
def _backward_of(name: str, extra: str, layout: Any, forward: Any) -> Op:
    """The row that writes a view's gradient into zeros of the input's shape. Its own derivative is the view."""
    def meta(grad_output: Any, input_sizes: tuple[int, ...], *rest: Any) -> Spec:
        check_sizes("zeros", input_sizes)
        return like(grad_output, input_sizes)

    o = op(f"{name}_backward(Tensor grad_output, SymInt[] input_sizes, {extra}) -> Tensor",
           meta=meta, function=False, grad=dict(grad_output=forward))
    o.row.fallback = transfer.ScatterKernel(layout)
    return o


SELECT: Op = _served_by(
    view("select(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", layout=v.select,
         grad=dict(self=lambda g, self_shape, dim, index: SELECT_BACKWARD.call((g, self_shape, dim, index)))), v.SELECT)
SELECT_BACKWARD: Op = _backward_of("select", "int dim, int index", v.select,
                               lambda g, dim, index: SELECT.call((g, dim, index)))
SLICE: Op = _served_by(
    view("slice(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)", layout=v.slice_,
         function=False, method=False,
         grad=dict(self=lambda g, self_shape, dim, start, end, step:
                   SLICE_BACKWARD.call((g, self_shape, dim, 0 if start is None else start,
                                        LONG_MAX if end is None else end, step)))), v.SLICE)
SLICE_BACKWARD: Op = _backward_of("slice", "int dim, int? start, int? end, int step", v.slice_,
                              lambda g, dim, start, end, step: SLICE.call((g, dim, start, end, step)))
DIAGONAL: Op = view("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", layout=v.diagonal,
                grad=dict(self=lambda g, self_shape, offset, dim1, dim2:
                          DIAGONAL_BACKWARD.call((g, self_shape, offset, dim1, dim2))))
DIAGONAL_BACKWARD: Op = _backward_of("diagonal", "int offset, int dim1, int dim2", v.diagonal,
                                 lambda g, offset, dim1, dim2: DIAGONAL.call((g, offset, dim1, dim2)))
UNFOLD: Op = view("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", layout=v.unfold,
                  function=False, grad=dict(self=lambda g, self_shape, dimension, size, step:
                        UNFOLD_BACKWARD.call((g, self_shape, dimension, size, step))))


def _unfold_backward_meta(grad_in: Any, input_sizes: tuple[int, ...], dim: int, size: int, step: int) -> Spec:
    check_sizes("zeros", input_sizes)
    wrap_dim(dim, len(input_sizes))
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise ValueError(f"step is {step} but must be > 0")
    seen = v.unfold(tuple(input_sizes), contiguous_strides(tuple(input_sizes)), 0, dim, size, step)[0]
    if tuple(grad_in._shape) != seen:
        raise RuntimeError(f"unfold_backward: expected a gradient of the shape {list(seen)}, got "
                           f"{list(grad_in._shape)}")
    return like(grad_in, input_sizes)


UNFOLD_BACKWARD: Op = op("unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
                     meta=_unfold_backward_meta, function=False,
                     grad=dict(grad_in=lambda g, dim, size, step: UNFOLD.call((g, dim, size, step))))


def _narrow_at(self: Any, dim: int, start: Any, length: int) -> Any:
    if start.dim() != 0 or not start._dtype.is_integer:
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    return NARROW.call((self, dim, start.item(), length))


composite("narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)", _narrow_at)
NARROW: Op = _composed("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", composed.NARROW)

SQUEEZE: Op = _served_by(view("squeeze(Tensor(a) self) -> Tensor(a)", layout=v.squeeze,
                          grad=dict(self=lambda g, self_shape: VIEW.call((g, self_shape)))), v.SQUEEZE)
SQUEEZE_DIM: Op = _served_by(
    view("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", layout=v.squeeze_dim, node="SqueezeBackward1",
         grad=dict(self=lambda g, self_shape: VIEW.call((g, self_shape)))), v.SQUEEZE)
SQUEEZE_DIMS: Op = view("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", layout=v.squeeze_dims,
                    node="SqueezeBackward2", grad=dict(self=lambda g, self_shape: VIEW.call((g, self_shape))))
UNSQUEEZE: Op = _served_by(view("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", layout=v.unsqueeze,
                            grad=dict(self=lambda g, self_shape: VIEW.call((g, self_shape)))), v.UNSQUEEZE)


def squeeze(self: Any, dim: Any = _ABSENT) -> Any:
    """squeeze(dim): without the dimensions of size one, or without those named that have it."""
    if dim is _ABSENT:
        return SQUEEZE.call((self,))
    if type(dim) is int and is_long(dim):
        return SQUEEZE_DIM.call((self, dim))
    got = convert(SQUEEZE_DIM.schema.args[1], dim)
    if got is not BAD:
        return SQUEEZE_DIM.call((self, got))
    if dim is not None:
        got = fitted("squeeze", SQUEEZE_DIMS.schema.args[1], (dim,) if is_element(dim) else dim)
    if got is BAD:
        from .._dispatch.complaint import complaint

        raise complaint("squeeze", [SQUEEZE, SQUEEZE_DIM, SQUEEZE_DIMS], True, (dim,), {})
    return SQUEEZE_DIMS.call((self, got))


# -- any geometry -------------------------------------------------------------------------------------------------
def _as_strided_grad(g: Any, self_shape: Ints, self_stride: Ints, self_offset: int, size: Ints, stride: Ints,
                     storage_offset: int | None) -> Any:
    if 0 in size:
        # As in PyTorch, what nothing was read from gets zeros of no history.
        return g.new_zeros(self_shape)
    at = self_offset if storage_offset is None else storage_offset
    return STRIDED_MAP.call((g, size, stride, at, self_shape, self_stride, self_offset, False))


AS_STRIDED: Op = _served_by(
    view("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
         layout=v.alias_layout, grad=dict(self=_as_strided_grad)), v.AS_STRIDED)

# Values at one geometry, seen at another over the same flat memory. Where the first geometry visits a place twice the
# values are summed; `mean` divides them by the number of visits there, otherwise what is read is divided by the visits
# of the second geometry. The two choices are each other's transposes.
def _strided_map_meta(self: Any, size: Any, stride: Any, offset: int, to_size: Any, to_stride: Any, to_offset: int,
                      mean: bool) -> Spec:
    if tuple(self._shape) != tuple(size):
        raise RuntimeError(f"_strided_map: expected an input of the shape {list(size)}, got {list(self._shape)}")
    if len(size) != len(stride) or len(to_size) != len(to_stride):
        raise RuntimeError("_strided_map: expected as many strides as sizes")
    return like(self, to_size)


STRIDED_MAP: Op = op(
    "_strided_map(Tensor self, int[] size, int[] stride, int offset, int[] to_size, int[] to_stride, int to_offset, "
    "bool mean) -> Tensor", function=False, method=False,
    meta=_strided_map_meta,
    grad=dict(self=lambda g, size, stride, offset, to_size, to_stride, to_offset, mean:
              STRIDED_MAP.call((g, to_size, to_stride, to_offset, size, stride, offset, not mean))))
STRIDED_MAP.row.fallback = transfer.STRIDED_MAP

ALIAS: Op = view("alias(Tensor(a) self) -> Tensor(a)", layout=v.alias_layout, function=False, method=False,
             grad=dict(self=lambda g: g))
DETACH: Op = _served_by(view("detach(Tensor(a) self) -> Tensor(a)", layout=v.alias_layout), v.DETACH)


# -- several views at once ----------------------------------------------------------------------------------------
SPLIT: Op = _served_by(view("split(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]", layout=v.split,
                            function=False, method=False,
                            grad=dict(self=lambda grads, dim: CORE.cat.call((grads, dim)))),
                       v.PiecesKernel(v.SPLIT))
SPLIT_SIZES: Op = _served_by(
    view("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
         layout=v.split_with_sizes, grad=dict(self=lambda grads, dim: CORE.cat.call((grads, dim)))),
    v.PiecesKernel(v.SPLIT_SIZES))


def split_method(self: Any, split_size: Any, dim: Any = 0) -> Any:
    """split(split_size, dim=0): views of `split_size` elements each, or of the sizes in a list."""
    if isinstance(split_size, TensorBase) and numel(split_size) == 1:
        single: Any = split_size
        try:
            split_size = int(single)
        except ValueError:  # NaN is no size; the sizes of pieces refuse it by name
            pass
    if isinstance(split_size, bool):
        raise _no_split(self, split_size, dim)
    if type(dim) is not int or not is_long(dim):
        dim = _dim_of_split(self, split_size, dim)
    if type(split_size) is int and is_long(split_size):
        return SPLIT.call((self, split_size, dim))
    size = convert(_SPLIT_SIZE_ARG, split_size)
    if size is BAD:
        return SPLIT_SIZES.call((self, _parts(split_size), dim))
    return SPLIT.call((self, size, dim))


def _parts(sizes: Any) -> Any:
    """The sizes of pieces; PyTorch asks for a sequence before it looks at what is in it."""
    got = fitted("split_with_sizes", _SPLIT_SIZES_ARG, sizes)
    if got is not BAD:
        return got
    found = [i for i, x in enumerate(sizes) if not hasattr(x, "__index__")] if isinstance(sizes, (list, tuple)) else []
    if found and found[0] > 0:
        raise TypeError(f"split_with_sizes(): argument 'split_sizes' failed to unpack the object at pos {found[0] + 1} "
                        f"with error \"type must be tuple of ints,but got {plain_name(sizes[found[0]])}\"")
    return need("split_with_sizes", _SPLIT_SIZES_ARG, 2, sizes)


def _dim_of_split(self: Any, sizes: Any, dim: Any) -> int:
    got = convert(_SPLIT_DIM_ARG, dim)
    if got is not BAD:
        return int(got)
    if convert(_SPLIT_SIZE_ARG, sizes) is BAD:
        return int(need("split_with_sizes", _SPLIT_DIM_ARG, 3, dim))
    raise _no_split(self, sizes, dim)


def _no_split(self: Any, size: Any, dim: Any) -> TypeError:
    from .._dispatch.complaint import complaint

    return complaint("split", [], False, (self, size, dim), {})


def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """split(tensor, split_size_or_sections, dim=0): views of a tensor's parts."""
    return tensor.split(split_size_or_sections, dim)


_SPLIT_SIZE_ARG = SPLIT.schema.args[1]
_SPLIT_SIZES_ARG = SPLIT_SIZES.schema.args[1]
_SPLIT_DIM_ARG = SPLIT.schema.args[2]


UNBIND: Op = _served_by(view("unbind(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", layout=v.unbind,
                         grad=dict(self=lambda grads, dim: CORE.stack.call((grads, dim)))), v.PiecesKernel(v.UNBIND))


def _chunk(self: Any, chunks: int, dim: int) -> Any:
    if self.dim() == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = self._shape[wrap_dim(dim, self.dim())]
    each = (size + chunks - 1) // chunks
    if each == 0:
        return SPLIT_SIZES.call((self, (0,) * chunks, dim))
    return SPLIT.call((self, each, dim))


composite("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", _chunk)


def _tensor_split(self: Any, sections: int, dim: int) -> Any:
    d = _splittable(self, dim)
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    v.check_pieces(sections)
    small, longer = divmod(self._shape[d], sections)
    ends, at = [], 0
    for i in range(sections):
        at += small + (i < longer)
        ends.append(at)
    return _cut(self, ends, d)


def _tensor_split_at(self: Any, indices: Ints, dim: int) -> Any:
    d = _splittable(self, dim)
    return _cut(self, [*indices, self._shape[d]], d)


def _tensor_split_tensor(self: Any, tensor_indices_or_sections: Any, dim: int) -> Any:
    given = tensor_indices_or_sections
    if given._device.type != "cpu":
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {given._device}")
    if given._dtype.name != "int64":
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{given._dtype.scalar_name}")
    if given.dim() == 0:
        return _tensor_split(self, given.item(), dim)
    if given.dim() != 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            f"got a tensor with {given.dim()} dims")
    return _tensor_split_at(self, tuple(given.tolist()), dim)


def _splittable(self: Any, dim: int) -> int:
    if self.dim() == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    return wrap_dim(dim, self.dim())


def _cut(self: Any, ends: list[int], dim: int) -> Any:
    out, start = [], 0
    for end in ends:
        out.append(SLICE.call((self, dim, start, end, 1)))
        start = end
    return tuple(out)


composite("tensor_split.sections(Tensor(a -> *) self, int sections, int dim=0) -> Tensor(a)[]", _tensor_split)
composite("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]", _tensor_split_at)
composite("tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) "
          "-> Tensor(a)[]", _tensor_split_tensor)


def _directed(name: str, least: int, axis: int) -> None:
    """hsplit, vsplit, dsplit: tensor_split along a fixed dimension, in equal parts only."""
    def dim_of(self: Any) -> int:
        if self.dim() < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {self.dim()} "
                "dimensions!")
        return 0 if name == "hsplit" and self.dim() == 1 else axis

    def equal(self: Any, sections: int) -> Any:
        d = dim_of(self)
        size = self._shape[d]
        if sections == 0 or size % sections != 0:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {d}, but the size of the dimension {size} is not "
                f"divisible by the split_size {sections}!")
        return _tensor_split(self, sections, d)

    def at(self: Any, indices: Ints) -> Any:
        return _tensor_split_at(self, indices, dim_of(self))

    composite(f"{name}.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", equal)
    composite(f"{name}.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", at)


_directed("hsplit", 1, 1)
_directed("vsplit", 2, 0)
_directed("dsplit", 3, 2)

# -- complex numbers ----------------------------------------------------------------------------------------------
VIEW_AS_REAL: Op = _served_by(
    view("view_as_real(Tensor(a) self) -> Tensor(a)", layout=v.alias_layout, method=False,
         grad=dict(self=lambda g: VIEW_AS_COMPLEX.call((_contiguous(g),)))), v.VIEW_AS_REAL)
VIEW_AS_COMPLEX: Op = _served_by(
    view("view_as_complex(Tensor(a) self) -> Tensor(a)", layout=v.alias_layout, method=False,
         grad=dict(self=lambda g: VIEW_AS_REAL.call((_resolve_conj(_contiguous(g)),)))), v.VIEW_AS_COMPLEX)
CONJ: Op = _served_by(view("_conj(Tensor(a) self) -> Tensor(a)", layout=v.alias_layout, node="ConjBackward0",
                           grad=dict(self=lambda g: conj(g))), lazy.CONJUGATE_VIEW)
NEG_VIEW: Op = _served_by(view("_neg_view(Tensor(a) self) -> Tensor(a)", layout=v.alias_layout,
                               grad=dict(self=lambda g: -g)), lazy.NEGATIVE_VIEW)
composite("conj(Tensor(a) self) -> Tensor(a)", lambda self: CONJ.call((self,)) if self._dtype.is_complex else self)
composite("is_conj(Tensor self) -> bool", is_conj)
composite("is_neg(Tensor self) -> bool", is_neg)
composite("_is_zerotensor(Tensor self) -> bool", lambda self: False)


def _resolve_conj(self: Any) -> Any:
    return copy.CLONE.call((self, None)) if self._keys & CONJUGATE else self


def _resolve_neg(self: Any) -> Any:
    return copy.CLONE.call((self, None)) if self._keys & NEGATIVE else self


composite("resolve_conj(Tensor(a) self) -> Tensor(a)", _resolve_conj)
composite("resolve_neg(Tensor(a) self) -> Tensor(a)", _resolve_neg)


def read_alike(self: Any, other: Any) -> Any:
    """A view that is lazy where `self` or `other` is, but not both."""
    if other._keys & CONJUGATE:
        self = CONJ.call((self,))
    return NEG_VIEW.call((self,)) if other._keys & NEGATIVE else self


def _real(self: Any) -> Any:
    if not self._dtype.is_complex:
        return self
    # Of a conjugate it is the same memory.
    return SELECT.call((VIEW_AS_REAL.call((CONJ.call((self,)) if self._keys & CONJUGATE else self,)), -1, 0))


def _imag(self: Any) -> Any:
    if not self._dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if self._keys & CONJUGATE:
        return SELECT.call((NEG_VIEW.call((VIEW_AS_REAL.call((CONJ.call((self,)),)),)), -1, 1))
    return SELECT.call((VIEW_AS_REAL.call((self,)), -1, 1))


REAL: Op = composite("real(Tensor(a) self) -> Tensor(a)", _real, method=False)
IMAG: Op = composite("imag(Tensor(a) self) -> Tensor(a)", _imag, method=False)

split_method.__name__, split_method.__qualname__ = "split", "Tensor.split"
METHODS: dict[str, Any] = {"split": split_method, "squeeze": squeeze}
# Attributes of a tensor that are views.
PROPERTIES: dict[str, Any] = {
    "T": composed.numpy_T, "H": matrix_H, "mT": composed.mT, "mH": mH, "real": _real, "imag": _imag,
}

ROWS.view, ROWS.unsafe_view, ROWS.clone, ROWS.reshape_alias = VIEW, UNSAFE_VIEW, copy.CLONE, RESHAPE_ALIAS
ROWS.transpose, ROWS.permute, ROWS.slice = TRANSPOSE, PERMUTE, SLICE
