"""`torch.distributed.nn.functional`: collectives that autograd can go back through.

Invariant: going back is the collective that sends each gradient to where its value came from; every rank must go back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd import Function
from .. import distributed_c10d as dist
from .._options import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """The source's tensor."""
    return _Broadcast.apply(src, _group(group), tensor)


def gather(tensor: Any, dst: int = 0, group: Any = None) -> Any:
    """The tensors of all, on one rank; zeros on others."""
    return _Gather.apply(dst, _group(group), tensor)


def scatter(tensors: Sequence[Any], src: int = 0, group: Any = None) -> Any:
    """This rank's tensor of the source's list."""
    return _Scatter.apply(src, _group(group), *tensors)


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The reduction of the tensors of all, on one rank."""
    return _Reduce.apply(dst, op, _group(group), tensor)


def reduce_scatter(output: Any, input_list: Sequence[Any], op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """This rank's entry of the reduction of the lists of all."""
    return _ReduceScatter.apply(op, _group(group), output, *input_list)


def all_gather(tensor: Any, group: Any = None) -> Any:
    """The tensors of all."""
    return _AllGather.apply(_group(group), tensor)


def _all_gather_base(output_tensor: Any, input_tensor: Any, group: Any = None) -> Any:
    return _AllGatherBase.apply(output_tensor, input_tensor, _group(group))


def all_to_all(output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], group: Any = None) -> Any:
    """Every rank's tensor for this one."""
    return _AlltoAll.apply(_group(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None
) -> Any:
    """Every rank's part for this one."""
    return _AlltoAllSingle.apply(_group(group), output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The reduction of the tensors of all."""
    return _AllReduce.apply(op, _group(group), tensor)


def _group(group: Any) -> Any:
    return dist._group_or_default_group(group)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Any) -> Any:
        ctx.src, ctx.group, ctx.rank = src, group, dist.get_rank()
        tensor = tensor.clone()
        dist.broadcast(tensor, src, group=group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        found = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        return None, None, found if ctx.src == ctx.rank else found.zero_()


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        outs = [tensor.new_zeros(tensor.shape) for _ in range(dist.get_world_size(group))]
        tensor = tensor.contiguous()
        mine = dist.get_rank(group) == dist.get_group_rank(group, dst)
        dist.gather(tensor, outs if mine else None, dst, group=group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Any) -> Any:
        if any(each.shape != tensors[0].shape for each in tensors):
            raise AssertionError("All tensors must have the same size")
        ctx.src, ctx.group = src, group
        out = tensors[0].new_zeros(tensors[0].shape)
        mine = dist.get_rank(group) == dist.get_group_rank(group, src)
        dist.scatter(out, [each.contiguous() for each in tensors] if mine else None, src, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return (None, None, *_Gather.apply(ctx.src, ctx.group, grad))


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Any) -> Any:
        ctx.dst, ctx.group = dst, group
        tensor = tensor.clone()
        dist.reduce(tensor, dst, op=op, group=group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Any, *inputs: Any) -> Any:
        ctx.group = group
        ctx.mark_dirty(output)
        dist.reduce_scatter(output, [each.contiguous() for each in inputs], op=op, group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return (None, None, None, *_AllGather.apply(ctx.group, grad))


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Any) -> Any:
        ctx.group = group
        tensor = tensor.contiguous()
        outs = [tensor.new_empty(tensor.shape) for _ in range(dist.get_world_size(group))]
        dist.all_gather(outs, tensor, group=group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        out = grads[dist.get_rank(ctx.group)].new_empty(grads[0].shape)
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, out, *grads)


class _AllGatherBase(Function):
    @staticmethod
    def forward(ctx: Any, output: Any, input: Any, group: Any) -> Any:
        ctx.group, ctx.shape = group, input.shape
        ctx.mark_dirty(output)
        dist.all_gather_single(output, input.contiguous(), group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        out = grad.new_empty(ctx.shape)
        dist.reduce_scatter_single(out, grad.contiguous(), ReduceOp.SUM, ctx.group)
        return None, out, None


class _AlltoAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: Sequence[Any], *inputs: Any) -> Any:
        ctx.group, ctx.shapes = group, [each.shape for each in inputs]
        dist.all_to_all(list(outputs), [each.contiguous() for each in inputs], group=group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        outs = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return (None, None, *_AlltoAll.apply(ctx.group, outs, *grads))


class _AlltoAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Any, into: Any, out: Any, input: Any) -> Any:
        ctx.group, ctx.shape, ctx.into, ctx.out = group, input.shape, into, out
        dist.all_to_all_single(output, input.contiguous(), into, out, group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        found = grad.new_empty(ctx.shape)
        return None, None, None, None, _AlltoAllSingle.apply(ctx.group, found, ctx.out, ctx.into, grad)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Any) -> Any:
        ctx.group, ctx.op = group, op
        tensor = tensor.clone()
        dist.all_reduce(tensor, op=op, group=group)
        return tensor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)
