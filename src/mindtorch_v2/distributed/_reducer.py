"""The reducer of `DistributedDataParallel`: gradients in buckets, reduced while backward still runs.

Invariant: buckets are sent in their order on every rank, whatever the order in which gradients come; after
backward every parameter that any rank has used holds the mean of all ranks' gradients.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any, cast

from .. import _dtype as _t
from .. import mul
from ..autograd.grad_mode import no_grad
from . import distributed_c10d as dist

__all__ = [
    "GradBucket",
    "Reducer",
    "_DEFAULT_FIRST_BUCKET_BYTES",
    "_broadcast_coalesced",
    "_compute_bucket_assignment_by_size",
    "_verify_params_across_processes",
]

_DEFAULT_FIRST_BUCKET_BYTES = 1024 * 1024

_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
    "your module has parameters that were not used in producing loss. "
)
_ENABLE = (
    "You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` to "
    "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs participate in "
    "calculating loss. "
)
_LOCATE = (
    "\nIf you already have done the above, then the distributed data parallel module wasn't able to locate the output "
    "tensors in the return value of your module's `forward` function. Please include the loss function and the "
    "structure of the return value of `forward` of your module when reporting this issue (e.g. list, dict, iterable)."
)


class GradBucket:
    """Gradients that are reduced in one step, as a communication hook sees them."""

    __module__ = "torch.distributed"

    def __init__(self, index: int, flat: Any, gradients: list[Any], parameters: list[Any], last: bool) -> None:
        self._index, self._flat, self._gradients, self._parameters = index, flat, gradients, parameters
        self._last = last

    def index(self) -> int:
        """The place of the bucket; the first ones are reduced first."""
        return self._index

    def buffer(self) -> Any:
        """All gradients, one after the other."""
        return self._flat

    def gradients(self) -> list[Any]:
        """The gradients, each in its shape; they share the buffer's memory."""
        return list(self._gradients)

    def parameters(self) -> list[Any]:
        """The parameters whose gradients these are."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether no bucket comes after this one."""
        return self._last

    def set_buffer(self, tensor: Any) -> None:
        """Let another tensor be what the bucket holds."""
        self._flat = tensor


def _compute_bucket_assignment_by_size(
    tensors: Sequence[Any],
    bucket_size_limits: Sequence[int],
    expect_sparse_gradient: Sequence[bool] = (),
    tensor_indices: Sequence[int] = (),
    logger: Any = None,
) -> tuple[list[list[int]], list[int]]:
    """Tensors in buckets of one dtype and device: each is full when it has reached its limit."""
    if not tensors:
        raise RuntimeError("Expected to have at least one tensor")
    open_buckets: dict[Any, list[int]] = {}
    sizes: dict[Any, int] = {}
    limit_at: dict[Any, int] = {}
    done: list[tuple[list[int], int]] = []
    for place, tensor in enumerate(tensors):
        index = tensor_indices[place] if tensor_indices else place
        if expect_sparse_gradient and expect_sparse_gradient[index]:
            done.append(([index], 0))  # its size is not known before it is there
            continue
        key = (tensor.dtype, tensor.device)
        open_buckets.setdefault(key, []).append(index)
        sizes[key] = sizes.get(key, 0) + tensor.numel() * tensor.element_size()
        limit = bucket_size_limits[limit_at.setdefault(key, 0)]
        if sizes[key] >= limit:
            done.append((open_buckets.pop(key), limit))
            sizes[key] = 0
            limit_at[key] = min(limit_at[key] + 1, len(bucket_size_limits) - 1)
    done += [(left, bucket_size_limits[limit_at[key]]) for key, left in open_buckets.items()]
    if not tensor_indices:
        done.sort(key=lambda found: min(found[0]))
    return [found for found, _ in done], [limit for _, limit in done]


def _verify_params_across_processes(process_group: Any, params: Sequence[Any], logger: Any = None) -> None:
    """Refuse models that are not the same on all ranks."""
    pg = dist._group_or_default_group(process_group)
    shapes = [tuple(each.shape) for each in params]
    known: list[Any] = [None] * pg.size()
    dist.all_gather_object(known, shapes, group=pg)
    for rank, theirs in enumerate(known):
        if len(theirs) != len(shapes):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {pg.rank()} has {len(shapes)} params, while rank "
                f"{rank} has inconsistent {len(theirs)} params."
            )
    for index, (mine, first) in enumerate(zip(shapes, known[0])):
        if mine != first:
            sizes = ", ".join(map(str, mine))
            raise RuntimeError(
                f"[{pg.rank()}]: params[{index}] in this process with sizes [{sizes}] appears not to match sizes of "
                "the same param in process 0."
            )


def _broadcast_coalesced(process_group: Any, tensors: Sequence[Any], buffer_size: int, src: int = 0) -> None:
    """Give one rank's tensors to all, many in one message."""
    from .. import cat

    if not tensors:
        return
    pg = dist._group_or_default_group(process_group)
    buckets, _ = _compute_bucket_assignment_by_size(tensors, [buffer_size])
    with no_grad():
        for bucket in buckets:
            parts = [tensors[index].detach() for index in bucket]
            flat = cat([part.reshape(-1) for part in parts])
            dist.broadcast(flat, group_src=src, group=pg)
            if pg.rank() == src:
                continue
            for part, came in zip(parts, flat.split([part.numel() for part in parts])):
                part.copy_(came.view(part.shape))


class BuiltinCommHookType(enum.IntEnum):
    """Hooks that PyTorch has in C++."""

    ALLREDUCE = 1
    FP16_COMPRESS = 2


def _register_comm_hook(reducer: Reducer, state: Any, comm_hook: Any) -> None:
    """Let a hook reduce buckets."""
    if reducer.hook is not None:
        raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
    reducer.hook, reducer.hook_state = comm_hook, state


def _register_builtin_comm_hook(reducer: Reducer, comm_hook_type: BuiltinCommHookType) -> None:
    """Let one of PyTorch's own hooks reduce buckets."""
    from .algorithms.ddp_comm_hooks import default_hooks

    kind = BuiltinCommHookType(comm_hook_type)
    hook = default_hooks.allreduce_hook if kind == BuiltinCommHookType.ALLREDUCE else default_hooks.fp16_compress_hook
    _register_comm_hook(reducer, reducer.group, hook)


class _Bucket:
    """Parameters whose gradients are reduced together, and the memory for that; a sparse gradient is alone."""

    def __init__(self, indices: list[int], params: list[Any], sparse: bool) -> None:
        self.indices, self.sparse = indices, sparse
        first = params[0]
        self.size = sum(each.numel() * each.element_size() for each in params)
        self.flat = first.detach().new_zeros(0 if sparse else sum(each.numel() for each in params))
        pieces = () if sparse else self.flat.split([each.numel() for each in params])
        self.views = [piece.view(each.shape) for piece, each in zip(pieces, params)]
        self.pending = len(indices)
        self.future: Any = None
        self.work: Any = None


class Reducer:
    """Gradients of a module's parameters, reduced over a group."""

    def __init__(
        self,
        params: list[Any],
        bucket_indices: list[list[int]],
        process_group: Any,
        find_unused_parameters: bool,
        gradient_as_bucket_view: bool,
        names: dict[int, str],
        expect_sparse: Sequence[bool] = (),
    ) -> None:
        self.params, self.group, self.names = params, process_group, names
        self.find_unused, self.as_view = find_unused_parameters, gradient_as_bucket_view
        self._make_buckets(bucket_indices, expect_sparse)
        self.hook: Callable[[Any, GradBucket], Any] | None = None
        self.hook_state: Any = None
        self.static_graph = False
        self.expecting = False  # a backward that reduces is to come, or under way
        self.finished = True
        self.static_counts: dict[int, int] | None = None
        self.iterations = 0
        self.cap, self.logger = 0, cast(Any, None)
        # The limits by which buckets are made anew when it is known in which order gradients come.
        self.limits: list[int] = []
        self.rebuilt = False
        self.arrival: list[int] | None = None  # that order, once it is known
        self.expect_sparse = list(expect_sparse)
        self.skip_unused = self.copy_together = False
        self.times: list[int] = []  # of forward, backward, the first bucket, the last gradient, the end
        self.join_work: Any = None
        self.join_divides_by_all = True
        self.divisor = process_group.size()
        self.ready: set[int] = set()
        self.unused: list[int] = []
        self.next_bucket = 0
        self.order: list[int] = []  # in which gradients came, in the last backward
        self.begun = False
        self.touched: set[int] = set()  # whose gradients have come since the last reduction, inside `no_sync` too
        self.used: Any = None
        self.used_work: Any = None
        self.counts: dict[int, int] = {}
        self.handles = [
            each.register_post_accumulate_grad_hook(self._hook_for(index)) for index, each in enumerate(params)
        ]

    def _make_buckets(self, bucket_indices: list[list[int]], expect_sparse: Sequence[bool]) -> None:
        self.buckets = [
            _Bucket(
                indices, [self.params[index] for index in indices], bool(expect_sparse and expect_sparse[indices[0]])
            )
            for indices in bucket_indices
        ]
        self.place = {index: (bucket, slot) for bucket in self.buckets for slot, index in enumerate(bucket.indices)}

    def _rebuild_buckets(self) -> bool:
        """Make buckets anew, once, by the order in which gradients have come to the first rank."""
        from .. import tensor

        if self.rebuilt or self.arrival is None or (self.find_unused and not self.static_graph):
            return False
        ordered = [self.params[index] for index in self.arrival]
        buckets, _ = _compute_bucket_assignment_by_size(ordered, self.limits, self.expect_sparse, self.arrival)
        places = [(index, at) for at, bucket in enumerate(buckets) for index in bucket]
        told = tensor(places, dtype=_t.int64, device=self.params[0].device)
        dist.broadcast(told, group_src=0, group=self.group)
        chosen: dict[int, list[int]] = {}
        for index, at in told.tolist():
            chosen.setdefault(at, []).append(index)
        self._make_buckets([chosen[at] for at in sorted(chosen)], self.expect_sparse)
        self.rebuilt = True
        return True

    def _hook_for(self, index: int) -> Callable[[Any], None]:
        def arrived(param: Any) -> None:
            if self.find_unused:
                self.touched.add(index)
            if self.expecting:
                with no_grad():
                    self._arrived(index)

        return arrived

    def bucket_sizes(self) -> list[int]:
        """Bytes of each bucket."""
        return [each.size for each in self.buckets]

    def remove(self) -> None:
        """Take the hooks from the parameters."""
        for handle in self.handles:
            handle.remove()

    # Before backward.

    def prepare_for_forward(self) -> None:
        """A new iteration begins: the one before must have been reduced."""
        if self.expecting and not self.finished and self.begun:
            self._refuse_unfinished()
        if self.logger is not None:
            self.logger.look()
        self.times = [perf_counter_ns()]

    def prepare_for_backward(self, outputs: list[Any]) -> None:
        """What a backward from these outputs will reduce."""
        if self.expecting and self.begun and not self.finished:
            self._refuse_unfinished()
        self.expecting, self.finished, self.begun = True, False, False
        self.ready, self.order, self.next_bucket = set(), [], 0
        for bucket in self.buckets:
            bucket.pending, bucket.future, bucket.work = len(bucket.indices), None, None
        self.unused = []
        if self.static_graph and self.static_counts is not None:
            self.counts = dict(self.static_counts)
            self.unused = [index for index in range(len(self.params)) if index not in self.static_counts]
        elif self.find_unused and not self.static_graph:
            self.unused = self._unreached(outputs)
        self.times.append(perf_counter_ns())

    def _unreached(self, outputs: list[Any]) -> list[int]:
        """Parameters that no gradient of the outputs can come to."""
        nodes: deque[Any] = deque(each.grad_fn for each in outputs if each.grad_fn is not None)
        seen: set[int] = set()
        reached = {id(each) for each in outputs if each.grad_fn is None}
        keep: list[Any] = []  # nodes are made when asked for: while they live, their ids are theirs
        while nodes:
            node = nodes.popleft()
            if id(node) in seen:
                continue
            seen.add(id(node))
            keep.append(node)
            variable = getattr(node, "variable", None)
            if variable is not None:
                reached.add(id(variable))
            nodes.extend(found for found, _ in node.next_functions if found is not None)
        return [index for index, each in enumerate(self.params) if id(each) not in reached]

    def _refuse_unfinished(self) -> None:
        missing = [index for index in range(len(self.params)) if index not in self.ready]
        text = _UNFINISHED + ("" if self.find_unused else _ENABLE) + _LOCATE
        if self.find_unused:
            text += (
                "Since `find_unused_parameters=True` is enabled, this likely  means that not all `forward` outputs "
                "participate in computing loss. You can fix this by making sure all `forward` function outputs "
                "participate in calculating loss. "
            )
        if missing:
            rank, told = self.group.rank(), dist.get_debug_level() != dist.DebugLevel.OFF
            if told:
                names = ", ".join(self.names.get(index, str(index)) for index in reversed(missing))
                text += f"\nParameters which did not receive grad for rank {rank}: {names}"
            text += f"\nParameter indices which did not receive grad for rank {rank}: {' '.join(map(str, missing))}"
            if not told:
                text += (
                    "\n In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or "
                    "DETAIL to print out information about which particular parameters did not receive gradient on "
                    "this rank as part of this error"
                )
        self.expecting = False
        if self.logger is not None:
            self.logger.set_error_and_log(text)
        raise RuntimeError(text)

    # While backward runs.

    def _arrived(self, index: int) -> None:
        from ..autograd import Variable

        if not self.begun:
            self.begun = True
            self.divisor = self._divide()
            if self.static_graph:
                Variable._execution_engine.queue_callback(self._end_static)
            for each in self.unused:
                self._mark(each)
        if self.static_graph:
            if self.static_counts is None:
                self.counts[index] = self.counts.get(index, 0) + 1
                return
            self.counts[index] -= 1
            if self.counts[index]:
                return
        if index in self.ready:
            name = self.names.get(index)
            extra = f"Parameter at index {index}{f' with name {name}' if name else ''} has been marked as ready twice."
            raise RuntimeError(
                "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) "
                "Use of a module parameter outside the `forward` function. Please make sure model parameters are not "
                "shared across multiple concurrent forward-backward passes. or try to use _set_static_graph() as a "
                "workaround if this module graph does not change during training loop.2) Reused parameters in multiple "
                "reentrant backward passes. For example, if you use multiple `checkpoint` functions to wrap the same "
                "part of your model, it would result in the same set of parameters been used by different reentrant "
                "backward passes multiple times, and hence marking a variable ready multiple times. DDP does not "
                "support such use cases in default. You can try to use _set_static_graph() as a workaround if your "
                f"module graph does not change over iterations.\n{extra}"
            )
        self.order.append(index)
        self._mark(index)

    def _mark(self, index: int) -> None:
        from ..autograd import Variable

        if index in self.ready:
            return
        self.ready.add(index)
        bucket, _ = self.place[index]
        if not self.copy_together or bucket.sparse:
            self._fill(index)
        bucket.pending -= 1
        while self.next_bucket < len(self.buckets) and self.buckets[self.next_bucket].pending == 0:
            self._send(self.next_bucket)
            self.next_bucket += 1
        if self.next_bucket == len(self.buckets) and not self.static_graph:
            Variable._execution_engine.queue_callback(self._finish)

    def _fill(self, index: int) -> None:
        """Put a parameter's gradient into its bucket."""
        bucket, slot = self.place[index]
        if bucket.sparse:
            self._fill_sparse(bucket, self.params[index])
            return
        view, grad = bucket.views[slot], self.params[index].grad
        if grad is None:
            view.zero_()
        elif grad.data_ptr() == view.data_ptr():
            if self.hook is None:
                view.mul_(1.0 / self.divisor)
        else:
            # The mean is a sum of parts, each divided on its way into the bucket; hooks get gradients as they are.
            if self.hook is None and grad.dtype == view.dtype:
                mul(grad.detach(), 1.0 / self.divisor, out=view)
            else:
                view.copy_(grad.detach())
                if self.hook is None:
                    view.mul_(1.0 / self.divisor)
            if self.as_view:
                self.params[index].grad = view

    def _fill_together(self, bucket: _Bucket) -> None:
        """Put all gradients of a bucket into it at once."""
        from .. import _foreach_copy_

        grads = [self.params[index].grad for index in bucket.indices]
        apart = [(view, grad) for view, grad in zip(bucket.views, grads) if grad is not None]
        apart = [(view, grad.detach()) for view, grad in apart if grad.data_ptr() != view.data_ptr()]
        if len(apart) == len(grads):
            _foreach_copy_([view for view, _ in apart], [grad for _, grad in apart])
            if self.hook is None:
                bucket.flat.mul_(1.0 / self.divisor)
            for index, view in zip(bucket.indices, bucket.views) if self.as_view else ():
                self.params[index].grad = view
            return
        for index in bucket.indices:
            self._fill(index)

    def _fill_sparse(self, bucket: _Bucket, param: Any) -> None:
        from .. import sparse_coo, sparse_coo_tensor

        grad = param.grad
        if grad is None:
            bucket.flat = sparse_coo_tensor(size=param.shape, dtype=param.dtype, device=param.device)
        elif grad.layout is not sparse_coo:
            raise RuntimeError("Expected variable to have sparse gradient.")
        else:
            bucket.flat = grad.detach().clone() if self.hook is not None else grad.detach() / self.divisor

    def _divide(self) -> int:
        if self.join_work is not None:
            self.join_work.wait()
            if not self.join_divides_by_all:
                return int(self.join_work.result()[0].item())
        return int(self.group.size())

    def _send(self, place: int) -> None:
        bucket = self.buckets[place]
        if place == 0:
            self.times.append(perf_counter_ns())
        if self.copy_together and not bucket.sparse:
            self._fill_together(bucket)
        if self.skip_unused and all(index in self.unused for index in bucket.indices):
            return
        if self.hook is None:
            bucket.work = dist.all_reduce(bucket.flat, group=self.group, async_op=True)
        else:
            seen = GradBucket(
                place,
                bucket.flat,
                bucket.views,
                [self.params[index] for index in bucket.indices],
                place == len(self.buckets) - 1,
            )
            bucket.future = self.hook(self.hook_state, seen)
        if place == len(self.buckets) - 1 and self.find_unused and not self.static_graph:
            from .. import tensor

            used = [int(index in self.touched) for index in range(len(self.params))]
            self.used = tensor(used, dtype=_t.int32, device=self.params[0].device)
            self.used_work = dist.all_reduce(self.used, group=self.group, async_op=True)

    def _end_static(self) -> None:
        """The end of a backward of a static graph: what has not come by now never will."""
        with no_grad():
            first = self.static_counts is None
            if first:
                self.static_counts = dict(self.counts)
                self.unused = [index for index in range(len(self.params)) if index not in self.counts]
            for index in range(len(self.params)):
                self._mark(index)
        if not first:
            self.arrival = [*self.order, *self.unused]
        self._finish()

    def _finish(self) -> None:
        """Wait for all buckets, and give every parameter its mean."""
        if self.finished:
            return
        self.times.append(perf_counter_ns())
        with no_grad():
            for bucket in self.buckets:
                self._take(bucket)
            self.used_work = None
        self.finished, self.expecting, self.join_work = True, False, None
        if not self.static_graph and not self.find_unused and self.arrival is None:
            self.arrival = list(self.order)
        self.touched.clear()
        self.times.append(perf_counter_ns())
        self.iterations += 1

    def _take(self, bucket: _Bucket) -> None:
        if bucket.work is not None:
            bucket.work.wait()
        elif bucket.future is None:  # nobody has used any of it
            return
        else:
            result = bucket.future.wait()
            result = result[0] if isinstance(result, (list, tuple)) else result
            if bucket.sparse:
                bucket.flat = result
            elif result.data_ptr() != bucket.flat.data_ptr():
                bucket.flat.copy_(result.view(-1))
        everywhere = None
        if self.used_work is not None:
            self.used_work.wait()
            everywhere = self.used.tolist()
        unused = set(self.unused)
        for index, view in zip(bucket.indices, [bucket.flat] if bucket.sparse else bucket.views):
            param = self.params[index]
            if everywhere is not None and not everywhere[index]:
                continue  # no rank has used it: its gradient is nobody's business
            if everywhere is None and index in unused and param.grad is None:
                continue
            if self.as_view or bucket.sparse:
                param.grad = view
            elif param.grad is None:
                param.grad = view.clone()
            else:
                param.grad.copy_(view)

    # For ranks that have joined: what the others reduce, with nothing of one's own.

    def shadow(self) -> None:
        """Take part in the reduction of all buckets with zeros."""
        with no_grad():
            for place, bucket in enumerate(self.buckets):
                if bucket.sparse:
                    self._fill_sparse(bucket, self.params[bucket.indices[0]].detach())
                else:
                    bucket.flat.zero_()
                self.join_work = None
                self._send(place)
                if bucket.work is not None:
                    bucket.work.wait()
                elif bucket.future is not None:
                    bucket.future.wait()
                bucket.work = bucket.future = None
            if self.used_work is not None:
                self.used_work.wait()
                self.used_work = None
        if self.arrival is None and not self.static_graph:
            self.arrival = list(reversed(range(len(self.params))))
