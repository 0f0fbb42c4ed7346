"""Rows of indexing: gather, scatter and their kin, and what `t[...]` is made of."""
from __future__ import annotations

from typing import Any

from .._backends.common import overlap
from .._core_operators import HOOKS
from .._dispatch import registry
from .._dispatch.binding import held
from .._dispatch.op import plain_name, type_name
from .._dtype import bool as bool_
from .._dtype import int64
from .._indexing import positions, record
from .._sizes import numel_of
from .._tensor_base import TensorBase
from .rules import index as rules
from .rules.base import wrap_dim
from .rules.pointwise import broadcast_shapes
from .table import composite, op


def _index_backward(g: Any, shape: Any, indices: Any) -> Any:
    return registry.OPS["index_put"].call((g.new_zeros(shape), indices, g, True))


def _index(t: Any, indices: Any) -> Any:
    return registry.OPS["index"].call((t, indices))


op("index(Tensor self, Tensor?[] indices) -> Tensor", meta=rules.index_rule, function=False, method=False,
   grad=dict(self=lambda g, self_shape, indices: _index_backward(g, self_shape, indices)))

op("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
   meta=rules.index_put_rule, inplace=True, overlap=overlap.APART, function=False, method=False,
   grad=dict(self=lambda g, indices, accumulate: g if accumulate else registry.OPS["index_put"].call(
                 (g, indices, g.new_zeros(()), False)),
             values=lambda g, indices: _index(g, indices)))

op("nonzero(Tensor self) -> Tensor", nondifferentiable=True, function=False, out=True)


def _gather_backward(g: Any, self: Any, dim: int, index: Any, sparse_grad: bool) -> Any:
    if sparse_grad:
        from .._sparse.gradients import of_gather

        return of_gather(g, self._shape, dim, index)
    return g.new_zeros(self.shape).scatter_add(dim, index, g)


op("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", meta=rules.gather_rule,
   out=True, grad=dict(self=_gather_backward))

op("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> "
   "Tensor", meta=rules.scatter_rule, inplace=True, overlap=overlap.DISTINCT, out=True,
   grad=dict(self=lambda g, dim, index: g.scatter(dim, index, 0), src=lambda g, dim, index: g.gather(dim, index)),
   node="ScatterBackward0")
op("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
   meta=rules.scatter_mode_rule, inplace=True, overlap=overlap.DISTINCT, out=True)
op("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", meta=rules.scatter_rule, inplace=True,
   overlap=overlap.DISTINCT,
   out=True, grad=dict(self=lambda g, dim, index: g.scatter(dim, index, 0)), node="ScatterBackward1")
op("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
   meta=rules.scatter_mode_rule, inplace=True, overlap=overlap.DISTINCT, out=True)
op("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", meta=rules.scatter_add_rule, inplace=True,
   overlap=overlap.DISTINCT,
   out=True, grad=dict(self=lambda g: g, src=lambda g, dim, index: g.gather(dim, index)))


def _scatter_reduce_backward(g: Any, self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool,
                             result: Any) -> tuple[Any, Any]:
    """As PyTorch: sums pass through, means are divided by the count, products by the factor, extrema shared by ties."""
    if reduce == "sum":
        grad_self, grad_src = g, g.gather(dim, index)
    elif reduce == "mean":
        count = g.new_ones(g.shape) if include_self else g.new_zeros(g.shape)
        count = count.scatter_add(dim, index, g.new_ones(src.shape))
        count = count.masked_fill(count == 0, 1)
        grad_self, grad_src = g / count, (g / count).gather(dim, index)
    elif reduce == "prod":
        masked_self = self.masked_fill(self == 0, 1)
        masked_self_result = registry.OPS["scatter_reduce"].call((masked_self, dim, index, src, reduce, include_self))
        grad_self = g * masked_self_result / masked_self
        src_zero = src == 0
        zeros = g.new_zeros(g.shape).scatter_add(dim, index, src_zero.to(g.dtype)).gather(dim, index)
        single = src_zero.logical_and(zeros == 1)
        masked_src = src.masked_fill(single, 1)
        masked_result = registry.OPS["scatter_reduce"].call((self, dim, index, masked_src, reduce, include_self))
        grad_one = (g * masked_result).gather(dim, index)
        grad_many = (g * result).gather(dim, index) / src.masked_fill(src_zero, 1)
        grad_src = grad_one.where(single, grad_many)
    else:
        value = result.gather(dim, index)
        self_is = (self == result).to(g.dtype)
        src_is = (src == value).to(g.dtype)
        ties = (self_is if include_self else self_is * 0).scatter_add(dim, index, src_is)
        ties = ties.masked_fill(ties == 0, 1)
        share = g / ties
        grad_self, grad_src = self_is * share, src_is * share.gather(dim, index)
    if not include_self:
        grad_self = grad_self.scatter(dim, index, 0)
    return grad_self, grad_src


op("scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
   meta=rules.scatter_reduce_rule, inplace=True,
   overlap=overlap.DISTINCT, out=True, grad={("self", "src"): _scatter_reduce_backward})

op("index_select(Tensor self, int dim, Tensor index) -> Tensor", meta=rules.index_select_rule, out=True,
   grad=dict(self=lambda g, self_shape, dim, index: g.new_zeros(self_shape).index_add(dim, index, g)
             if self_shape else g))


def _picked(g: Any, dim: int, index: Any, source: Any) -> Any:
    """What arrives at `source`, which is saved as in PyTorch: it must not be written to before."""
    return g.index_select(dim, index).reshape(source._shape)


op("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
   meta=rules.index_add_rule, inplace=True, overlap=overlap.DISTINCT, out=True,
   grad=dict(self=lambda g: g,
             source=lambda g, dim, index, source, alpha: _picked(g, dim, index, source) * alpha))
op("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", meta=rules.index_copy_rule, inplace=True,
   overlap=overlap.DISTINCT,
   out=True,
   grad=dict(self=lambda g, dim, index: g.index_fill(dim, index, 0),
             source=_picked))


def _filled(g: Any, dim: int, index: Any) -> Any:
    """The gradient of the value: what reached the filled places, each counted once."""
    mask = g.new_zeros(g.shape, dtype=bool_).index_fill(dim, index, True)
    return g.masked_fill(mask.logical_not(), 0).sum()


op("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", meta=rules.index_fill_rule,
   inplace=True, overlap=overlap.MARKS, node="IndexFillBackward1",
   grad=dict(self=lambda g, dim, index: g.index_fill(dim, index, 0), value=_filled))
op("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", meta=rules.index_fill_rule,
   inplace=True, overlap=overlap.MARKS, grad=dict(self=lambda g, dim, index: g.index_fill(dim, index, 0)),
   node="IndexFillBackward0")

op("take(Tensor self, Tensor index) -> Tensor", meta=rules.take_rule, out=True,
   grad=dict(self=lambda g, self_shape, index: _index_backward(
       g.reshape(-1), (numel_of(self_shape),), (index.reshape(-1),)).reshape(self_shape)))


def _check_values(name: str, values: Any, accumulate: Any) -> None:
    if not isinstance(values, TensorBase):
        raise TypeError(f"{name}(): argument 'values' (position 2) must be Tensor, not {type_name(values)}")
    if type(accumulate) is not bool:
        raise TypeError(f"{name}(): argument 'accumulate' must be bool, not {type_name(accumulate)}")


def _public_index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    _check_values("index_put", values, accumulate)
    return registry.OPS["index_put"].call((self, positions(self, _spread(indices), values), values, accumulate))


def _public_index_put_(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    _check_values("index_put_", values, accumulate)
    return registry.OPS["index_put_"].call((self, positions(self, _spread(indices), values), values, accumulate))


def _spread(indices: Any) -> list[Any]:
    if not isinstance(indices, (list, tuple)):
        raise TypeError(f"index_put(): argument 'indices' (position 2) must be tuple of Tensors, not "
                        f"{plain_name(indices)}")
    out: list[Any] | None = None
    for x in held(indices):
        if x is None:
            out = [*(out or []), None]
        else:
            out = record(out, len(out or []), x)
    return out or []


def _masked_select_backward(g: Any, shape: Any, mask: Any) -> Any:
    whole = broadcast_shapes(shape, mask.shape)
    return g.new_zeros(whole).masked_scatter(mask, g)


op("masked_select(Tensor self, Tensor mask) -> Tensor", out=True,
   grad=dict(self=lambda g, self_shape, mask: _masked_select_backward(g, self_shape, mask)))


def _argwhere(self: Any) -> Any:
    return self.nonzero()


composite("argwhere(Tensor self) -> Tensor", _argwhere)


def _take_along_dim(self: Any, indices: Any, dim: int | None = None) -> Any:
    if dim is None:
        return self.reshape(-1).gather(0, indices.reshape(-1))
    if len(self._shape) != len(indices._shape):
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number of dimensions, but "
                           f"got {self.ndim} dimensions for input, and {indices.ndim} dimensions for indices")
    own, other = self._shape, indices._shape
    d = wrap_dim(dim, len(own))
    if not own:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if indices._dtype is not int64:
        raise RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got "
                           f"{indices._dtype.scalar_name}")
    shape = broadcast_shapes(own[:d] + (1,) + own[d + 1:], other[:d] + (1,) + other[d + 1:])
    mine, theirs = list(shape), list(shape)
    mine[d], theirs[d] = own[d], other[d]
    # PyTorch wraps indices of any size when a dimension is named.
    return self.expand(mine).gather(d, indices.remainder(own[d]).expand(theirs))


composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", _take_along_dim, out=True)


def _masked_scatter_source(g: Any, mask: Any, shape: Any) -> Any:
    """What was taken from the source; nothing came from its remaining elements."""
    taken = g.masked_select(mask)
    padding = numel_of(shape) - taken.shape[0]
    if padding > 0:
        taken = registry.OPS["cat"].call(((taken, g.new_zeros((padding,))), 0))
    return taken.reshape(shape)


op("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", meta=rules.masked_scatter_rule, inplace=True,
   overlap=overlap.ALONE,
   function=True,
   grad=dict(self=lambda g, mask: g.masked_fill(mask, 0),
             source=lambda g, mask, source_shape: _masked_scatter_source(g, mask, source_shape)))
HOOKS.public_index_put = _public_index_put
HOOKS.public_index_put_ = _public_index_put_
