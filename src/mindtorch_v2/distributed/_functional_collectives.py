"""Functional collectives: a new tensor each, and gradients where the name says so.

Invariant: what is returned is there: this package waits inside the call, where PyTorch waits at the first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._operators import ops
from .._tensor import Tensor
from ..autograd import Function
from . import _c10d_ops
from ._collectives import _coalescing_manager
from ._collectives import all_gather_single as _all_gather
from ._collectives import all_reduce as _all_reduce
from ._collectives import all_to_all_single as _all_to_all
from ._collectives import broadcast as _broadcast
from ._collectives import reduce_scatter_single as _reduce_scatter
from ._groups import _new_group_with_tag
from ._options import ReduceOp, red_op
from ._world import _find_pg_by_ranks_and_tag, _get_default_group, _resolve_process_group, get_rank

__all__ = [
    "AsyncCollectiveTensor",
    "all_gather_into_tensor_coalesced",
    "all_gather_single",
    "all_gather_single_autograd",
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "permute_tensor",
    "reduce_scatter_single",
    "reduce_scatter_single_autograd",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "reduce_scatter_tensor_coalesced",
    "wait_tensor",
]


class AsyncCollectiveTensor(Tensor):
    """A tensor that is still on its way; here none is, since calls wait."""

    def __new__(cls, *args: Any, **kwargs: Any) -> AsyncCollectiveTensor:
        raise NotImplementedError("AsyncCollectiveTensor: functional collectives return tensors that are there")


def _expand_group(group: Any, tag: str = "") -> Any:
    """The group that is meant: itself, its name, its ranks, or a dimension of a mesh."""
    if group is None:
        return _get_default_group()
    if isinstance(group, str):
        return _resolve_process_group(group)
    if isinstance(group, tuple) and len(group) == 2 and hasattr(group[0], "get_group"):
        return group[0].get_group(group[1])
    if hasattr(group, "get_group"):
        if group.ndim != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return group.get_group()
    if isinstance(group, (list, tuple)):
        lists = group if group and isinstance(group[0], (list, tuple)) else [group]
        mine: Any = None
        for ranks in lists:
            found = _find_pg_by_ranks_and_tag(tag, list(ranks))
            found = _new_group_with_tag(list(ranks), pg_tag=tag) if found is None else found
            if get_rank() in ranks:
                mine = found
        if mine is None:
            raise ValueError(f"rank {get_rank()} is in none of the groups {group}")
        return mine
    if isinstance(group, (bool, int, float)):
        raise ValueError(f"Unsupported group type: {type(group)}, {group}")
    return group


_resolve_group = _resolve_group_name = _expand_group


def _reduction(name: Any) -> Any:
    if isinstance(name, ReduceOp):
        return red_op(name)
    found = ReduceOp.RedOpType.__members__.get(str(name).upper())
    if found is None:
        raise RuntimeError(f"Unrecognized reduce_op: {name}")
    return found


# -- what the operators of `torch.ops._c10d_functional` do -----------------------------------------------------------
def _all_reduced(input: Any, reduce_op: str, group_name: Any) -> Any:
    out = input.clone()
    _all_reduce(out, _reduction(reduce_op), _expand_group(group_name))
    return out


def _all_reduced_in_place(input: Any, reduce_op: str, group_name: Any) -> Any:
    _all_reduce(input, _reduction(reduce_op), _expand_group(group_name))
    return input


def _all_reduced_together(inputs: Any, reduce_op: str, group_name: Any) -> list[Any]:
    pg = _expand_group(group_name)
    outs = [each.clone() for each in inputs]
    with _coalescing_manager(pg):
        for each in outs:
            _all_reduce(each, _reduction(reduce_op), pg)
    return outs


def _all_gathered(input: Any, group_size: int, group_name: Any) -> Any:
    source = input.contiguous()
    rows, *rest = source.shape if source.dim() else (1,)
    out = source.new_empty((rows * group_size, *rest))
    _all_gather(out, source, _expand_group(group_name))
    return out


def _reduce_scattered(input: Any, reduce_op: str, group_size: int, group_name: Any) -> Any:
    source = input.contiguous()
    out = source.new_empty((source.shape[0] // group_size, *source.shape[1:]))
    _reduce_scatter(out, source, _reduction(reduce_op), _expand_group(group_name))
    return out


def _exchanged(input: Any, output_split_sizes: Any, input_split_sizes: Any, group_name: Any) -> Any:
    source = input.contiguous()
    out = source.new_empty((sum(output_split_sizes), *source.shape[1:]))
    _all_to_all(out, source, list(output_split_sizes), list(input_split_sizes), _expand_group(group_name))
    return out


def _given(input: Any, src: int, group_name: Any) -> Any:
    out = input.clone()
    _broadcast(out, src, _expand_group(group_name))
    return out


def _given_in_place(input: Any, src: int, group_name: Any) -> Any:
    _broadcast(input, src, _expand_group(group_name))
    return input


_c10d_ops.functional(
    {
        "all_reduce": _all_reduced,
        "all_reduce_": _all_reduced_in_place,
        "all_reduce_coalesced": _all_reduced_together,
        "all_gather_into_tensor": _all_gathered,
        "all_gather_into_tensor_coalesced": lambda inputs, size, name: [_all_gathered(x, size, name) for x in inputs],
        "reduce_scatter_tensor": _reduce_scattered,
        "reduce_scatter_tensor_coalesced": (
            lambda inputs, op, size, name: [_reduce_scattered(x, op, size, name) for x in inputs]
        ),
        "all_to_all_single": _exchanged,
        "broadcast": _given,
        "broadcast_": _given_in_place,
        "wait_tensor": lambda tensor: tensor,
    }
)
NATIVE = ops._c10d_functional


# -- functions ---------------------------------------------------------------------------------------------------------
def _op_name(reduceOp: Any) -> str:
    return str(_reduction(reduceOp).name).lower()


def wait_tensor(tensor: Any) -> Any:
    """The tensor, which is there."""
    return tensor


def all_reduce(self: Any, reduceOp: Any, group: Any, tag: str = "") -> Any:
    """The reduction of the tensors of all."""
    return NATIVE.all_reduce(self.detach(), _op_name(reduceOp), _expand_group(group, tag))


def broadcast(self: Any, src: int, group: Any, tag: str = "") -> Any:
    """The source's tensor."""
    return NATIVE.broadcast(self.detach(), src, _expand_group(group, tag))


def all_gather_single(self: Any, group: Any, tag: str = "") -> Any:
    """The tensors of all, one after the other along the first dimension."""
    pg = _expand_group(group, tag)
    return NATIVE.all_gather_into_tensor(self.detach(), pg.size(), pg)


def all_gather_tensor(self: Any, gather_dim: int, group: Any, tag: str = "") -> Any:
    """The tensors of all, one after the other along a dimension."""
    from .. import cat

    pg = _expand_group(group, tag)
    out = all_gather_single(self, pg)
    return out if gather_dim == 0 else cat(out.chunk(pg.size(), 0), gather_dim)


def reduce_scatter_single(self: Any, reduceOp: Any, group: Any, tag: str = "") -> Any:
    """This rank's part, along the first dimension, of the reduction of the tensors of all."""
    pg = _expand_group(group, tag)
    if self.shape[0] % pg.size() != 0:
        raise AssertionError(f"input dimension 0 ({self.shape[0]} must be a multiple of group_size {pg.size()})")
    return NATIVE.reduce_scatter_tensor(self.detach(), _op_name(reduceOp), pg.size(), pg)


def reduce_scatter_tensor(self: Any, reduceOp: Any, scatter_dim: int, group: Any, tag: str = "") -> Any:
    """This rank's part, along a dimension, of the reduction of the tensors of all."""
    from .. import cat

    pg = _expand_group(group, tag)
    if self.size(scatter_dim) % pg.size() != 0:
        raise AssertionError(
            f"input dimension {scatter_dim} ({self.size(scatter_dim)} must be a multiple of group_size {pg.size()})"
        )
    if scatter_dim != 0:
        self = cat(self.detach().chunk(pg.size(), scatter_dim))
    return reduce_scatter_single(self, reduceOp, pg)


def all_to_all_single(
    self: Any,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Any:
    """Every rank's part for this one."""
    pg = _expand_group(group, tag)
    if output_split_sizes is None or input_split_sizes is None:
        if not (output_split_sizes is None and input_split_sizes is None):
            raise AssertionError(
                "output_split_sizes and input_split_sizes must either be specified together or both set to None"
            )
        output_split_sizes = input_split_sizes = [self.shape[0] // pg.size()] * pg.size()
    return NATIVE.all_to_all_single(self.detach(), list(output_split_sizes), list(input_split_sizes), pg)


def permute_tensor(self: Any, src_dst: Sequence[int], group: Any, tag: str = "") -> Any:
    """The tensor of the rank that sends to this one; `src_dst[r]` is where rank r sends."""
    pg = _expand_group(group, tag)
    rows = self.numel()
    into, out = [0] * pg.size(), [0] * pg.size()
    for source, target in enumerate(src_dst):
        if source == pg.rank():
            out[target] = rows
        if target == pg.rank():
            into[source] = rows
    return all_to_all_single(self.reshape(-1), into, out, pg).view(self.shape)


def all_reduce_coalesced(self: Sequence[Any], reduceOp: Any, group: Any, tag: str = "") -> list[Any]:
    """`all_reduce` of several tensors in one step."""
    pg = _expand_group(group, tag)
    return list(NATIVE.all_reduce_coalesced([each.detach() for each in self], _op_name(reduceOp), pg))


def all_gather_into_tensor_coalesced(self: Sequence[Any], group: Any, tag: str = "") -> list[Any]:
    """`all_gather_single` of several tensors."""
    pg = _expand_group(group, tag)
    return list(NATIVE.all_gather_into_tensor_coalesced([each.detach() for each in self], pg.size(), pg))


def reduce_scatter_tensor_coalesced(
    inputs: Sequence[Any], reduceOp: Any, scatter_dim: Sequence[int], group: Any, tag: str = ""
) -> list[Any]:
    """`reduce_scatter_tensor` of several tensors."""
    from .. import cat

    pg = _expand_group(group, tag)
    size = pg.size()
    rows: list[Any] = []
    for each, dim in zip(inputs, scatter_dim):
        if each.size(dim) % size != 0:
            raise AssertionError(
                f"input dimension {dim} ({each.size(dim)} must be a multiple of group_size {size} for tensor at index "
                f"{len(rows)}"
            )
        rows.append(each.detach() if dim == 0 else cat(each.detach().chunk(size, dim)))
    return list(NATIVE.reduce_scatter_tensor_coalesced(rows, _op_name(reduceOp), size, pg))


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, source: Any, into: Any, out: Any, group: Any) -> Any:
        ctx.into, ctx.out, ctx.group = into, out, group
        return all_to_all_single(source, into, out, group)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return all_to_all_single(grad, ctx.out, ctx.into, ctx.group), None, None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, source: Any, dim: int, group: Any) -> Any:
        ctx.dim, ctx.group = dim, group
        return all_gather_tensor(source, dim, group)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return reduce_scatter_tensor(grad, "sum", ctx.dim, ctx.group), None, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, source: Any, op: Any, dim: int, group: Any) -> Any:
        ctx.dim, ctx.group = dim, group
        return reduce_scatter_tensor(source, op, dim, group)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return all_gather_tensor(grad, ctx.dim, ctx.group), None, None, None


def _sum_only(name: str, reduceOp: Any) -> None:
    if _reduction(reduceOp) != ReduceOp.SUM:
        raise NotImplementedError(f"{name}: the gradient of a reduction by {reduceOp} is not known; only of sum")


def all_to_all_single_autograd(
    self: Any,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Any:
    """`all_to_all_single` with a gradient."""
    return _AllToAll.apply(self, output_split_sizes, input_split_sizes, _expand_group(group, tag))


def all_gather_tensor_autograd(self: Any, gather_dim: int, group: Any, tag: str = "") -> Any:
    """`all_gather_tensor` with a gradient."""
    return _AllGather.apply(self, gather_dim, _expand_group(group, tag))


def all_gather_single_autograd(self: Any, group: Any, tag: str = "") -> Any:
    """`all_gather_single` with a gradient."""
    return _AllGather.apply(self, 0, _expand_group(group, tag))


def reduce_scatter_tensor_autograd(self: Any, reduceOp: Any, scatter_dim: int, group: Any, tag: str = "") -> Any:
    """`reduce_scatter_tensor` with a gradient."""
    _sum_only("reduce_scatter_tensor_autograd", reduceOp)
    return _ReduceScatter.apply(self, reduceOp, scatter_dim, _expand_group(group, tag))


def reduce_scatter_single_autograd(self: Any, reduceOp: Any, group: Any, tag: str = "") -> Any:
    """`reduce_scatter_single` with a gradient."""
    return reduce_scatter_tensor_autograd(self, reduceOp, 0, group, tag)
