"""Copies of views, writing into a place that a view names, and pieces that are no views to autograd.

Invariant: each row is made from the view's own row: its schema, its layout and its errors.
"""
from __future__ import annotations

import math
import re
from typing import Any

from .._autograd.record import Formulas
from .._backends.common.kernels import check_bounds
from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._layout import contiguous_format
from .._sizes import dense_bytes
from .._tensor_base import TensorBase, alias, is_contiguous, numel
from . import copy, shape, view
from .rules.base import KeptRule, wrap_dim
from .rules.layout import preserved_strides
from .table import composite, op

Ints = tuple[int, ...]
_MARK = re.compile(r"\(a[^)]*\)")
_SPLIT_NAME = re.compile(r"(\w+)(.*)", re.DOTALL)


# -- copies -------------------------------------------------------------------------------------------------------
def _copied(result: Any) -> Any:
    if isinstance(result, TensorBase):
        return copy.CLONE.call((result, contiguous_format))
    return tuple(copy.CLONE.call((t, contiguous_format)) for t in result)


def _copy_of(name: str) -> None:
    """`name_copy`, for every overload of the view `name`; its derivative is the view's."""
    for seen in registry.overloads(name):
        base, rest = _SPLIT_NAME.match(_MARK.sub("", seen.schema_text)).groups()  # type: ignore[union-attr]
        kernel = _reshaped if seen is view.VIEW else lambda *args, seen=seen: _copied(seen.call(args))
        node = "".join(part.capitalize() for part in name.split("_")) + "Backward0"
        returns = seen.schema.returns
        grad = None
        if isinstance(seen.derivative, Formulas):
            node = seen.derivative.node_name or node
            grad = dict(self=seen.derivative.formulas[0].fn)
        form = op(f"{base}_copy{rest}", kernel=kernel, method=False, out=not returns[0].is_list,
                  grad=grad, node=node + "_copy", nondifferentiable=grad is None)
        if returns[0].is_list:
            _into_list(form, seen)


# The names PyTorch gives its functions, in the message about a list of another length.
_LIST_FORMS = {"unbind": "unbind_copy_int_out", "split": "split_copy_Tensor_out()",
               "split_with_sizes": "split_with_sizes_copy_out"}


def _into_list(form: Op, seen: Op) -> None:
    """`out=` of a copy that is a list: a list of as many tensors. `split_copy` alone copies into what is there; the
    others resize it as the copy of one view does."""
    def into(*given: Any) -> None:
        *args, out = given
        parts = seen.call(tuple(args))
        if len(out) != len(parts):
            raise RuntimeError(
                f"{_LIST_FORMS[seen.title()]} expected an out= argument of size {len(parts)}, got size {len(out)}"
            )
        for part, target in zip(parts, out):
            if seen.title() == "split":
                target.detach().copy_(part.detach())
            else:
                registry.get("alias_copy").row.out_op.call((part.detach(), target))

    overload = "_".join(part for part in (form.name.partition(".")[2], "out") if part)
    head = form.schema_text.partition("(")[2].rpartition(") ->")[0]
    schema = f"{form.title()}.{overload}({head}, *, Tensor(a!)[] out) -> ()"
    form.row.out_op = composite(schema, into, function=False, method=False)
    form.row.out_op.is_out = True


def _reshaped(self: Any, size: Ints) -> Any:
    """Of a tensor that cannot be viewed too."""
    return copy.CLONE.call((view.RESHAPE.call((self, size)), contiguous_format))


for _name in ("alias", "as_strided", "detach", "expand", "permute", "select", "slice", "split", "split_with_sizes",
              "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view", "view_as_real", "view_as_complex",
              "_conj", "_neg_view"):
    _copy_of(_name)


def _narrow_copy(self: Any, dim: int, start: int, length: int) -> Any:
    if dim >= self.dim() > 0:
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could "
                           "this error message be improved?  If so, please report an enhancement request to PyTorch.)")
    if self.dim() > 0 and length < 0:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({self.size(dim)}).")
    return _copied(view.NARROW.call((self, dim, start, length)))


op("narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor", kernel=_narrow_copy, out=True,
   grad=dict(self=lambda g, self_shape, dim, start, length: view.SLICE_BACKWARD.call(
       (g, self_shape, dim, start, start + length, 1))))


# -- writing where a view lies ------------------------------------------------------------------------------------
def _strides(self: Any) -> Ints:
    """A copy keeps even the gaps of its source, but not what is expanded."""
    if 0 in self._stride and any(s == 0 and n > 1 for s, n in zip(self._stride, self._shape)):
        return preserved_strides(self)
    return tuple(self._stride)


def _written(name: str, seen: Op, out: bool = False) -> None:
    """`name_scatter(self, src, *the view's arguments)`: a copy of self with src where the view lies."""
    arguments = _MARK.sub("", seen.schema_text).split("Tensor self, ", 1)[1].rpartition(")")[0]

    def rule(self: Any, src: Any, *args: Any) -> Spec:
        place = seen.call((self.detach(), *args))._shape
        if place != src._shape:
            raise RuntimeError("expected src to have a size equal to the slice of self. src size = "
                               f"{list(src._shape)}, slice size = {list(place)}")
        return Spec(self._shape, _strides(self), self._dtype, self._dtype, self._device)

    def kernel(self: Any, src: Any, *args: Any) -> Any:
        if is_contiguous(self):
            out = copy.CLONE.call((self, contiguous_format))
        else:
            out = self.new_empty_strided(self._shape, _strides(self))
            out.copy_(self)
        seen.call((out, *args)).copy_(src)
        return out

    names = [a.name for a in seen.schema.args[1:]]
    # The gradient's formulas take the view's arguments by name.
    space: dict[str, Any] = {"_seen": seen, "_get": registry.get}
    given = ", ".join(names)
    exec(f"def back_self(g, src_shape, {given}):\n"
         f"    return _get('{name}_scatter').call((g, g.new_zeros(src_shape), {given}))\n"
         f"def back_src(g, {given}):\n    return _seen.call((g, {given}))\n", space)
    op(f"{name}_scatter(Tensor self, Tensor src, {arguments}) -> Tensor", meta=KeptRule(rule), kernel=kernel, out=out,
       grad=dict(self=space["back_self"], src=space["back_src"]))


_written("select", view.SELECT)
_written("slice", view.SLICE, True)
_written("diagonal", view.DIAGONAL)


def _as_strided_scatter(self: Any, src: Any, size: Ints, stride: Ints, storage_offset: int | None) -> Any:
    """The place is counted in the storage, so the whole storage is copied."""
    if _strides(self) != self._stride:
        self = self.clone()
    length = self._storage.nbytes // self._dtype.itemsize
    whole = view.AS_STRIDED.call((self.detach(), (length,), (1,), 0)).clone()
    at = self._offset if storage_offset is None else storage_offset
    view.AS_STRIDED.call((whole, size, stride, at)).copy_(src)
    return view.AS_STRIDED.call((whole, self._shape, _strides(self), self._offset)).detach()


def _as_strided_rule(self: Any, src: Any, size: Ints, stride: Ints, storage_offset: int | None) -> Spec:
    if src._shape != size:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src._shape)}, "
                           f"slice size = {list(size)}")
    # What has gaps or repeats itself is copied first, into memory of its own.
    copied = _strides(self) != self._stride
    at = storage_offset if storage_offset is not None else 0 if copied else self._offset
    if at < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {at}")
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    itemsize = self._dtype.itemsize
    check_bounds(size, stride, at, itemsize, dense_bytes(self._shape, itemsize) if copied else self._storage.nbytes)
    return Spec(self._shape, _strides(self), self._dtype, self._dtype, self._device)


op("as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
   meta=_as_strided_rule, kernel=_as_strided_scatter,
   grad=dict(self=lambda g, src_shape, size, stride, storage_offset: registry.get("as_strided_scatter").call(
                 (g.contiguous(), g.new_zeros(src_shape), size, stride, storage_offset)),
             src=lambda g, size, stride, storage_offset: view.AS_STRIDED.call(
                 (g.contiguous(), size, stride, storage_offset))))


# -- pieces -------------------------------------------------------------------------------------------------------
def _chunk(self: Any, chunks: int, dim: int) -> Any:
    if self.dim() == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = self._shape[wrap_dim(dim, self.dim())]
    each = (size + chunks - 1) // chunks
    if each == 0:
        return _SIZES.call((self, (0,) * chunks, dim))
    return _SPLIT.call((self, each, dim))


def _alone(t: Any) -> Any:
    made = alias(t, t._shape, t._stride, t._offset)
    made._vc = None
    return made


def _pieces(schema: str, seen: Op) -> Op:
    """As `split`, but the pieces are new tensors to autograd, though they share memory: writing into one is not seen
    by the others' histories, nor by their versions."""
    return op(schema, kernel=lambda *args: tuple(_alone(t) for t in seen.call((args[0].detach(), *args[1:]))),
              grad=dict(self=lambda grads, dim: shape.CAT.call((grads, dim))))


_SPLIT: Op = _pieces("unsafe_split(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", view.SPLIT)
_SIZES: Op = _pieces("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
                     view.SPLIT_SIZES)
composite("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", _chunk)


def _sum_to_size(self: Any, size: Ints) -> Any:
    shape_, n = self._shape, len(self._shape)
    lead = n - len(size)
    if lead < 0 or any(s != 1 and s != shape_[lead + i] for i, s in enumerate(size)):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape_)}}}.")
    if not size:
        return self.sum()
    dims = tuple(range(lead)) + tuple(lead + i for i, s in enumerate(size) if s == 1 and shape_[lead + i] != 1)
    out = self.sum(dims, True) if dims else self
    return out.view(size) if lead else out


composite("sum_to_size(Tensor self, SymInt[] size) -> Tensor", _sum_to_size, function=False)
composite("diagflat(Tensor self, int offset=0) -> Tensor",
          lambda self, offset: shape.DIAG.call((view._contiguous(self).view((-1,)), offset)))


# -- tensors in equal parts -------------------------------------------------------------------------------------------
def _chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Any:
    """Each tensor in `num_chunks` parts, the last ones filled with zeros; equal parts are joined."""
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if dim < 0 and any(t.dim() != tensors[0].dim() for t in tensors):
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    at = wrap_dim(dim, tensors[0].dim())
    parts = []
    for t in tensors:
        if not numel(t):
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if t._dtype is not tensors[0]._dtype:
            raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
        if at >= t.dim():
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if t._shape[:at] != tensors[0]._shape[:at]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
        lead, size = tuple(t._shape[:at]), t._shape[at]
        each = -(-size // num_chunks)
        if each * num_chunks != size:
            filling = t.new_zeros((*lead, each * num_chunks - size, *t._shape[at + 1:]))
            t = registry.get("cat").call(((t, filling), at))
        parts.append(t.reshape((*lead, num_chunks, numel(t) // max(math.prod(lead) * num_chunks, 1))))
    return registry.get("cat").call((tuple(parts), at + 1))


composite("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
          lambda tensors, dim, num_chunks: _chunk_cat(tuple(t.detach() for t in tensors), dim, num_chunks), out=True)
