"""Collectives and messages: what is checked before a group is asked, and how calls are made of it.

Invariant: a process that is not in the group is warned and does nothing; a call without `async_op` returns when its
result is there.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from .. import _dtype as _t
from .._device import device as _device
from .._overridable import DISTRIBUTED
from .._overrides import overridable
from .._tensor import Tensor
from ._backend_name import Backend
from ._options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    red_op,
)
from ._process_group import ProcessGroup
from ._work import Work
from ._world import (
    GroupMember,
    _canonicalize_group_rank,
    _check_group,
    _check_valid_timeout,
    _device_capability,
    _get_default_group,
    _get_default_timeout,
    _get_object_coll_device,
    _world,
    get_backend,
    get_global_rank,
    get_rank,
)
from ._world import _group_or_default_group as _or_default
from ._world import _rank_not_in_group as _not_in_group

__all__ = [
    "P2POp",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "gather",
    "irecv",
    "isend",
    "monitored_barrier",
    "record_comm",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "send",
    "supports_complex",
]


def _rank_not_in_group(group: Any) -> bool:
    _check_group(group)
    return _not_in_group(group)


def _group_or_default_group(group: Any = None) -> Any:
    _check_group(group)
    return _or_default(group)


F = TypeVar("F", bound=Callable[..., Any])


def _deprecated(text: str) -> Callable[[F], F]:
    def around(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(text, FutureWarning, stacklevel=2)
            return function(*args, **kwargs)

        wrapped: Any = call
        found: F = wrapped
        return found

    return around


def supports_complex(reduceOp: Any) -> bool:
    """Whether a reduction of complex numbers is one of their parts."""
    return red_op(reduceOp) not in (
        *(ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR),
    )


def _warn_not_in_group(name: str) -> None:
    rank = -1 if GroupMember.WORLD is None else GroupMember.WORLD.rank()
    warnings.warn(f"Running {name} on global rank {rank} which does not belong to the given group.", stacklevel=3)


def _check_single_tensor(param: Any, name: str) -> None:
    if not isinstance(param, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(param)} instead."
        )


def _check_tensor_list(param: Any, name: str) -> None:
    start = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got "
    if not isinstance(param, list):
        raise TypeError(f"{start}{type(param)} instead.")
    if not all(isinstance(each, Tensor) for each in param):
        raise TypeError(f"{start}{type(param)} with elements of type {[type(each) for each in param]}.")


def _ensure_all_tensors_same_dtype(*tensors: Any) -> None:
    last: Any = None
    for tensor in itertools.chain.from_iterable(each if isinstance(each, list) else [each] for each in tensors):
        dtype = tensor.dtype
        if dtype.is_complex:  # mixing complex numbers and their parts is allowed
            dtype = _t.float32 if dtype == _t.complex64 else _t.complex128
        if last is not None and last != dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {last} and  {tensor.dtype}")
        last = dtype


def _check_not_self_rank(group: Any, rank: int, kind: str) -> None:
    if group.rank() == rank:
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")


def _real(tensor: Any) -> Any:
    """Complex numbers as pairs."""
    if not tensor.is_complex():
        return tensor
    torch: Any = sys.modules[__name__.partition(".")[0]]
    return torch.view_as_real(tensor)


def _reducible(name: str, tensor: Any, op: Any) -> Any:
    """What stands for a tensor in a reduction: of complex numbers the parts, where they can be reduced apart."""
    if tensor.is_complex() and not supports_complex(op):
        raise RuntimeError(f"{name} does not support {op} on complex tensors")
    return _real(tensor)


def _finish(work: Any, async_op: bool) -> Any:
    if async_op:
        return work
    if work is not None:
        work.wait()
    return None


# From one process to another.


def isend(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Begin to send."""
    pg = _group_or_default_group(group)
    target = _canonicalize_group_rank(pg, dst, group_dst)
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(pg):
        _warn_not_in_group("isend")
        return None
    work: Work = pg.send([_real(tensor)], target, tag)
    return work


def irecv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Begin to receive; without a source from whoever sends first."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        _warn_not_in_group("irecv")
        return None
    pg = _group_or_default_group(group)
    work: Work
    if src is None and group_src is None:
        work = pg.recv_anysource([_real(tensor)], tag)
    else:
        work = pg.recv([_real(tensor)], _canonicalize_group_rank(pg, src, group_src), tag)
    return work


def send(tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send."""
    pg = _group_or_default_group(group)
    target = _canonicalize_group_rank(pg, dst, group_dst)
    _check_not_self_rank(pg, target, "destination")
    work = isend(tensor, group=pg, tag=tag, group_dst=target)
    if work is not None:
        work.wait()


def recv(tensor: Any, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive; the global rank of the sender."""
    work = irecv(tensor, src=src, group=group, tag=tag, group_src=group_src)
    if work is None:
        return -1
    work.wait()
    if src is None:
        pg = _group_or_default_group(group)
        source = work._source_rank() if group_src is None else group_src
        _check_not_self_rank(pg, source, "source")
        src = get_global_rank(pg, source)
    return src


class P2POp:
    """One message of `batch_isend_irecv`."""

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Any,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        _check_op(op)
        _check_single_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = _group_or_default_group(group)
        self.peer = _canonicalize_group_rank(self.group, peer, group_peer, return_global=True)
        self.group_peer = _canonicalize_group_rank(self.group, peer, group_peer)

    def __repr__(self) -> str:
        me, name = get_rank(self.group), self.op.__name__
        source, target = (me, self.group_peer) if self.op is isend else (self.group_peer, me)
        return (
            f"P2POp({name} pg={self.group.group_name}, group_src={source}, group_dst={target},  {self.tensor.shape}, "
            f"{self.tensor.dtype})"
        )


def _check_op(op: Any) -> None:
    if op not in (isend, irecv):
        raise ValueError(
            "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
        )


def _check_p2p_op_list(p2p_op_list: Any) -> None:
    if not isinstance(p2p_op_list, list) or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if not all(each.group == p2p_op_list[0].group for each in p2p_op_list):
        raise ValueError("All ops need to use the same group.")


def _begin(message: P2POp) -> Any:
    peer = {"group_dst" if message.op is isend else "group_src": message.group_peer}
    return message.op(message.tensor, group=message.group, tag=message.tag, **peer)


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin several messages."""
    _check_p2p_op_list(p2p_op_list)
    group = p2p_op_list[0].group
    works: list[Work] = []
    device = p2p_op_list[0].tensor.device
    if type(group) is ProcessGroup and not p2p_op_list[0].tensor.is_meta:
        if group._get_backend(device).supports_coalescing:
            with _coalescing_manager(group, device, async_ops=True) as manager:
                for each in p2p_op_list:
                    _begin(each)
            return manager.works
    # Who waits for a message is ready for it before anybody is asked to send.
    for each in p2p_op_list:
        work = _begin(each)
        if work:
            works.append(work)
    return works


# Collectives.


def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Any:
    """Give the source's tensor to all."""
    pg = _group_or_default_group(group)
    root = _canonicalize_group_rank(pg, src, group_src)
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(pg):
        return _warn_not_in_group("broadcast")
    opts = BroadcastOptions()
    opts.rootRank, opts.asyncOp = root, async_op
    return _finish(pg.broadcast([_real(tensor)], opts), async_op)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """Reduce the tensors of all, for all."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce")
    if tensor.is_complex() and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    opts = AllreduceOptions()
    opts.reduceOp, opts.asyncOp = op, async_op
    pg = group if group is not None else _get_default_group()
    if pg in _world.pg_coalesce_state:
        return _remember(pg, all_reduce, _real(tensor), None, op, async_op)
    return _finish(pg.allreduce([_real(tensor)], opts), async_op)


@_deprecated(
    "`torch.distributed.all_reduce_coalesced` will be deprecated. If you must use it, please revisit our documentation "
    "later at https://pytorch.org/docs/main/distributed.html#collective-functions"
)
def all_reduce_coalesced(tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """`all_reduce` of several tensors in one step."""
    if isinstance(tensors, Tensor):
        tensors = [tensors]
    _check_tensor_list(tensors, "tensor")
    _ensure_all_tensors_same_dtype(tensors)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_reduce_coalesced")
    if any(each.is_complex() for each in tensors) and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    opts = AllreduceCoalescedOptions()
    opts.reduceOp, opts.asyncOp = op, async_op
    work = (group or _get_default_group()).allreduce_coalesced([_real(each) for each in tensors], opts)
    return work.get_future() if async_op else _finish(work, False)


def reduce(
    tensor: Any,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Reduce the tensors of all, for one."""
    pg = _group_or_default_group(group)
    root = _canonicalize_group_rank(pg, dst, group_dst)
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(pg):
        return _warn_not_in_group("reduce")
    opts = ReduceOptions()
    opts.reduceOp, opts.rootRank, opts.asyncOp = op, root, async_op
    return _finish(pg.reduce([_reducible("reduce", tensor, op)], opts), async_op)


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    """Give everybody the tensors of all, in a list."""
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _ensure_all_tensors_same_dtype(tensor_list, tensor)
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather")
    opts = AllgatherOptions()
    opts.asyncOp = async_op
    pg = group or _get_default_group()
    return _finish(pg.allgather([[_real(each) for each in tensor_list]], [_real(tensor)], opts), async_op)


def all_gather_single(output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    """Give everybody the tensors of all, one after the other in one tensor."""
    _check_single_tensor(input_tensor, "input_tensor")
    _check_single_tensor(output_tensor, "output_tensor")
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_single")
    opts = AllgatherOptions()
    opts.asyncOp = async_op
    output, input = _real(output_tensor), _real(input_tensor)
    pg = group or _get_default_group()
    if pg in _world.pg_coalesce_state:
        return _remember(pg, all_gather_single, input, output, None, async_op)
    return _finish(pg.all_gather_single(output, input, opts), async_op)


@_deprecated(
    "`torch.distributed.all_gather_into_tensor` is deprecated. Please use `torch.distributed.all_gather_single` "
    "instead."
)
def all_gather_into_tensor(output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    """The former name of `all_gather_single`."""
    return all_gather_single(output_tensor, input_tensor, group, async_op)


@_deprecated(
    "`torch.distributed._all_gather_base` is a private function and will be deprecated. Please use "
    "`torch.distributed.all_gather_single` instead."
)
def _all_gather_base(output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False) -> Any:
    return all_gather_single(output_tensor, input_tensor, group, async_op)


@_deprecated(
    "`torch.distributed.all_gather_coalesced` will be deprecated. If you must use it, please revisit our documentation "
    "later at https://pytorch.org/docs/main/distributed.html#collective-functions"
)
def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Any:
    """`all_gather` of several tensors in one step."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_coalesced")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_all_tensors_same_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for each in output_tensor_lists:
        _check_tensor_list(each, "output_tensor_lists")
        _ensure_all_tensors_same_dtype(each)
    outputs = [[_real(tensor) for tensor in each] for each in output_tensor_lists]
    opts = AllgatherOptions()
    opts.asyncOp = async_op
    pg = group or _get_default_group()
    work = pg.allgather_coalesced(outputs, [_real(each) for each in input_tensor_list], opts)
    return work.get_future() if async_op else _finish(work, False)


def _validate_output_list_for_rank(my_rank: int, dst: int, gather_list: Any) -> None:
    if dst == my_rank:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")


def _one_of(pg: Any, global_rank: int | None, group_rank: int | None) -> int:
    """A rank in the group; the first if none is given."""
    if global_rank is None and group_rank is None:
        global_rank = 0
    return _canonicalize_group_rank(pg, global_rank, group_rank)


def gather(
    tensor: Any,
    gather_list: Any = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Give one process the tensors of all."""
    _check_single_tensor(tensor, "tensor")
    if gather_list:
        _check_tensor_list(gather_list, "gather_list")
    outputs = gather_list or []
    _ensure_all_tensors_same_dtype(tensor, outputs)
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        return _warn_not_in_group("gather")
    root = _one_of(pg, dst, group_dst)
    _validate_output_list_for_rank(pg.rank(), root, outputs)
    opts = GatherOptions()
    opts.rootRank, opts.asyncOp = root, async_op
    lists = [[_real(each) for each in outputs]] if root == pg.rank() else []
    return _finish(pg.gather(lists, [_real(tensor)], opts), async_op)


def scatter(
    tensor: Any,
    scatter_list: Any = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Give everybody one tensor of the source's list."""
    _check_single_tensor(tensor, "tensor")
    if scatter_list:
        _check_tensor_list(scatter_list, "scatter_list")
    parts = scatter_list or []
    _ensure_all_tensors_same_dtype(tensor, parts)
    pg = _group_or_default_group(group)
    root = _one_of(pg, src, group_src)
    if _rank_not_in_group(pg):
        return _warn_not_in_group("scatter")
    if root == pg.rank():
        if not parts:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    elif parts:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    opts = ScatterOptions()
    opts.rootRank, opts.asyncOp = root, async_op
    lists = [[_real(each) for each in parts]] if root == pg.rank() else []
    return _finish(pg.scatter([_real(tensor)], lists, opts), async_op)


def reduce_scatter(
    output: Any, input_list: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Reduce the lists of all, and give everybody one entry."""
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _ensure_all_tensors_same_dtype(output, input_list)
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter")
    opts = ReduceScatterOptions()
    opts.reduceOp, opts.asyncOp = op, async_op
    pg = group or _get_default_group()
    into, given = _reducible("all_reduce", output, op), [_reducible("all_reduce", each, op) for each in input_list]
    return _finish(pg.reduce_scatter([into], [given], opts), async_op)


def reduce_scatter_single(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Reduce the tensors of all, and give everybody one part."""
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    if _rank_not_in_group(group):
        return _warn_not_in_group("reduce_scatter_single")
    opts = ReduceScatterOptions()
    opts.reduceOp, opts.asyncOp = op, async_op
    pg = group or _get_default_group()
    output, input = _reducible("all_reduce", output, op), _reducible("all_reduce", input, op)
    if pg in _world.pg_coalesce_state:
        return _remember(pg, reduce_scatter_single, input, output, op, async_op)
    return _finish(pg.reduce_scatter_single(output, input, opts), async_op)


@_deprecated(
    "`torch.distributed.reduce_scatter_tensor` is deprecated. Please use `torch.distributed.reduce_scatter_single` "
    "instead."
)
def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """The former name of `reduce_scatter_single`."""
    return reduce_scatter_single(output, input, op, group, async_op)


@_deprecated(
    "`torch.distributed._reduce_scatter_base` is a private function and will be deprecated. Please use "
    "`torch.distributed.reduce_scatter_single` instead."
)
def _reduce_scatter_base(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    return reduce_scatter_single(output, input, op, group, async_op)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Give every rank its part of one tensor."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all_single")
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _ensure_all_tensors_same_dtype(output, input)
    if not (output.is_contiguous() and input.is_contiguous()):
        raise ValueError("Tensors must be contiguous")
    opts = AllToAllOptions()
    opts.asyncOp = async_op
    pg = group or _get_default_group()
    into, out = output_split_sizes or [], input_split_sizes or []
    return _finish(pg.all_to_all_single(_real(output), _real(input), into, out, opts), async_op)


def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False) -> Any:
    """Give every rank one tensor of a list."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_to_all")
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_all_tensors_same_dtype(output_tensor_list, input_tensor_list)
    opts = AllToAllOptions()
    opts.asyncOp = async_op
    pg = group or _get_default_group()
    outputs, inputs = [_real(each) for each in output_tensor_list], [_real(each) for each in input_tensor_list]
    return _finish(pg.alltoall(outputs, inputs, opts), async_op)


def barrier(
    group: Any = None, async_op: bool = False, device_ids: list[int] | None = None, timeout: timedelta | None = None
) -> Any:
    """Wait until all are here."""
    pg = group or _get_default_group()
    if _rank_not_in_group(pg):
        return _warn_not_in_group("barrier")
    opts = BarrierOptions()
    opts.asyncOp = async_op
    if timeout is not None:
        opts.timeout = timeout
    opts.device = _device_of_barrier(pg, device_ids)
    opts.device_ids = device_ids or []
    return _finish(pg.barrier(opts), async_op)


def _device_of_barrier(pg: Any, device_ids: list[int] | None) -> Any:
    from ..accelerator import current_accelerator

    here = current_accelerator()
    if here is not None and here.type not in _device_capability(pg):
        here = None  # a group of CPUs on a machine that has more than these
    if isinstance(device_ids, list):
        return _device("cpu" if here is None else here.type, device_ids[0])
    bound = getattr(pg, "bound_device_id", None)
    if bound is not None:
        return bound
    return _device("cpu") if here is None or _get_object_coll_device(pg) == "cpu" else here


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait until all are here; the error names who is not."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("monitored_barrier")
    if get_backend(group) != Backend.GLOO:
        raise ValueError("monitored_barrier is only implemented for GLOO backend.")
    if timeout is None:
        timeout = _get_default_timeout(get_backend(group))
    elif isinstance(timeout, float):
        warnings.warn(
            f"Please specify timeout arg as a timedelta. Converting current value of {timeout} assuming it represents "
            "seconds",
            stacklevel=2,
        )
        timeout = timedelta(seconds=timeout)
    _check_valid_timeout(timeout)
    _group_or_default_group(group).monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)
    return None


# Several collectives in one step.


class _CollOp:
    """A collective that waits for the end of its `_coalescing_manager`."""

    def __init__(
        self, op: Any, tensor: Any, dst_tensor: Any = None, redop: Any = None, root: int | None = None
    ) -> None:
        self.op, self.tensor, self.dst_tensor, self.redop, self.root = op, tensor, dst_tensor, redop, root


class _IllegalWork(Work):
    """The work of a collective that has not begun."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("is_success", "exception", "wait", "source_rank", "_source_rank", "result", "synchronize"):
            raise ValueError(f"Illegal to call {name} on IllegalWork object")
        return object.__getattribute__(self, name)


def _remember(pg: Any, op: Any, tensor: Any, output: Any, redop: Any, async_op: bool) -> Any:
    _world.pg_coalesce_state[pg].append(_CollOp(op, tensor, output, redop))
    return _IllegalWork() if async_op else None


class _CoalescingManager:
    """The works of collectives that were begun together."""

    def __init__(self) -> None:
        self.works: list[Any] = []

    def append(self, work: Any = None) -> None:
        if work:
            self.works.append(work)

    def wait(self) -> None:
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[_CoalescingManager]:
    """Collectives of one kind inside are one step at the end."""
    pg = group or _get_default_group()
    if _world.pg_coalesce_state.setdefault(pg, []):
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    if device and pg._get_backend(device).supports_coalescing:
        pg._start_coalescing(device)
    manager = _CoalescingManager()
    try:
        yield manager
    except BaseException:
        if device:
            pg._get_backend(device)._drop_coalescing()
        raise
    finally:
        ops = _world.pg_coalesce_state.pop(pg)
    work = _together(pg, ops, async_ops) if ops else None
    if device and pg._get_backend(device).supports_coalescing:
        work = pg._end_coalescing(device)
    if async_ops:
        manager.append(work)
    elif work is not None:
        work.wait()


def _together(pg: Any, ops: list[_CollOp], async_ops: bool) -> Any:
    first = ops[0].op
    if any(each.op is not first for each in ops):
        raise RuntimeError(
            "Coalescing manager requires all collectives to be the same type, but got mixed types: "
            f"{ {each.op.__name__ for each in ops} }"
        )
    tensors = [each.tensor for each in ops]
    opts: Any
    if first is all_reduce:
        opts = AllreduceCoalescedOptions()
        opts.reduceOp, opts.asyncOp = ops[0].redop, async_ops
        return pg.allreduce_coalesced(tensors, opts)
    outputs = [each.dst_tensor for each in ops]
    if first is all_gather_single:
        opts = AllgatherOptions()
        opts.asyncOp = async_ops
        return pg.all_gather_single_coalesced(outputs, tensors, opts)
    opts = ReduceScatterOptions()
    opts.reduceOp, opts.asyncOp = ops[0].redop, async_ops
    return pg.reduce_scatter_single_coalesced(outputs, tensors, opts)


# Handlers see a collective before anybody looks whether there is a group.
for _name in DISTRIBUTED:
    globals()[_name] = overridable(globals()[_name])


@contextlib.contextmanager
def record_comm(name: str) -> Iterator[None]:
    """A name in a profile for the communication inside."""
    from ..profiler import record_function

    with record_function(name):
        yield
