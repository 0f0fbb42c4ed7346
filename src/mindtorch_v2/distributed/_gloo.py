"""The backend `gloo`: collectives of CPU tensors. What is checked and said is what PyTorch's says.

Invariant: nothing is sent before all arguments are checked. An operation runs in the group's one thread, or in the
caller's when the caller waits and nothing is on its way; its messages carry its sequence number, so that both agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from .. import _dtype as _t
from .._layout import strided
from ._memory import Memory, splits
from ._options import OpType, ReduceOp, red_op
from ._process_group import Backend, BackendOptions
from ._rounds import Rounds
from ._sockets import SHARED_TAGS, Call, Mesh
from ._store import Store
from ._work import Done, Queue, Task, Work
from .constants import default_pg_timeout

__all__ = ["ProcessGroupGloo"]

_DTYPES = frozenset((_t.float32, _t.float64, _t.float16, _t.bfloat16, _t.int8, _t.uint8, _t.int32, _t.int64, _t.bool))
# Tags: collectives count from 0; messages from one rank to another have the user's tag above all of them.
_POINT_TO_POINT = SHARED_TAGS * 2
_BARRIER = SHARED_TAGS


def _minimum(total: Any, part: Any) -> None:
    total.copy_(total.minimum(part))


def _maximum(total: Any, part: Any) -> None:
    total.copy_(total.maximum(part))


_COMBINE: dict[Any, Callable[[Any, Any], Any]] = {
    ReduceOp.SUM: lambda total, part: total.add_(part),
    ReduceOp.AVG: lambda total, part: total.add_(part),
    ReduceOp.PRODUCT: lambda total, part: total.mul_(part),
    ReduceOp.MIN: _minimum,
    ReduceOp.MAX: _maximum,
    ReduceOp.BAND: lambda total, part: total.bitwise_and_(part),
    ReduceOp.BOR: lambda total, part: total.bitwise_or_(part),
    ReduceOp.BXOR: lambda total, part: total.bitwise_xor_(part),
}


def _kind_of(tensor: Any) -> str:
    from .._dtype_names import c_name

    return (
        f"TensorOptions(dtype={c_name(tensor.dtype)}, device={tensor.device}, layout=Strided, requires_grad=false "
        "(default), pinned_memory=false (default), memory_format=(nullopt))"
    )


def _size_of(tensor: Any) -> str:
    return f"({', '.join(map(str, tensor.shape))})"


class ProcessGroupGloo(Backend):
    """Collectives of CPU tensors over sockets."""

    __module__ = "torch.distributed"

    class Options(BackendOptions):
        """What the backend is made with."""

        def __init__(self, timeout: timedelta = default_pg_timeout) -> None:
            super().__init__("gloo", timeout)
            self._threads = 2
            self._devices: list[Any] = []

    _Options = Options

    def __init__(self, store: Store, rank: int, size: int, timeout: Any = default_pg_timeout) -> None:
        if not isinstance(store, Store):
            raise TypeError(f"ProcessGroupGloo(): store must be a torch.distributed.Store, got {type(store).__name__}")
        if not 0 <= rank < size:
            raise ValueError(f"ProcessGroupGloo(): rank {rank} is not one of {size}")
        super().__init__(rank, size)
        self._options = timeout if isinstance(timeout, BackendOptions) else self.Options(timeout)
        # Ranks agree on the number of a collective; messages and monitored barriers are not everybody's, and have
        # numbers of their own.
        self._sequence = self._messages = self._barriers = 0
        self._mesh = Mesh(store, rank, size, self._options._timeout)
        self._rounds = Rounds(self._mesh)
        self._queue = Queue("pt_gloo_runloop")

    def name(self) -> str:
        return "gloo"

    @property
    def options(self) -> BackendOptions:
        return self._options

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._options._timeout = timeout
        self._mesh.set_timeout(timeout)

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def shutdown(self) -> None:
        self._queue.close()
        self._mesh.close()

    def abort(self) -> None:
        self._mesh.close(goodbye=False)
        self._queue.close()

    # What all operations share.

    def _limit(self, timeout: timedelta) -> timedelta:
        return self._options._timeout if timeout < timedelta(0) else timeout

    def _call(self, name: str, timeout: timedelta) -> Call:
        self._sequence += 1
        return Call(name, self._sequence, self._sequence, self._limit(timeout))

    def _start(self, kind: OpType, opts: Any, run: Callable[[Task], None], outputs: Any) -> Work:
        """Do it now if the caller waits for it anyway, else in the group's thread."""
        task = Task(kind, run, outputs)
        if opts is not None and not opts.asyncOp and self._queue.idle:
            task.do()
        else:
            self._queue.put(task)
        return task

    @staticmethod
    def _wrong(name: str, text: str) -> RuntimeError:
        return RuntimeError(f"ProcessGroupGloo::{name}: {text}")

    def _check(self, name: str, tensors: Sequence[Any]) -> None:
        for tensor in tensors:
            if tensor.layout is not strided:
                raise self._wrong(name, "only supports dense tensors")
            if tensor.device.type != "cpu":
                raise self._wrong(name, f"unsupported device type {tensor.device.type}")
            if tensor.dtype not in _DTYPES:
                raise RuntimeError("Invalid scalar type")

    def _single(self, name: str, tensors: Sequence[Any]) -> Any:
        if len(tensors) != 1:
            raise self._wrong(name, "requires a single-element tensor list")
        self._check(name, tensors)
        return tensors[0]

    def _root(self, name: str, root: int) -> int:
        if not 0 <= root < self._size:
            raise self._wrong(name, f"invalid root rank: {root}")
        return root

    def _same(self, name: str, first: Any, tensors: Sequence[Any]) -> None:
        for index, tensor in enumerate(tensors):
            if tensor.dtype != first.dtype:
                found, wanted = _kind_of(tensor), _kind_of(first)
                raise self._wrong(name, f"invalid tensor type at index {index} (expected {wanted}, got {found})")
            if tensor.shape != first.shape:
                found, wanted = _size_of(tensor), _size_of(first)
                raise self._wrong(name, f"invalid tensor size at index {index} (expected {wanted}, got {found})")

    def _combine(self, op: Any, dtype: Any) -> Callable[[Any, Any], Any]:
        kind = red_op(op)
        if kind not in _COMBINE:
            raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with Gloo")
        if kind in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and dtype.is_floating_point:
            raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")
        return _COMBINE[kind]

    def _averaged(self, op: Any, flat: Any) -> None:
        if red_op(op) == ReduceOp.AVG:
            flat.div_(self._size)

    # Reductions.

    def allreduce(self, tensors: Sequence[Any], opts: Any) -> Work:
        if not tensors:
            raise self._wrong("allreduce", "requires non-empty tensor list")
        return self._allreduce("allreduce", OpType.ALLREDUCE, tensors, opts)

    def allreduce_coalesced(self, tensors: Sequence[Any], opts: Any) -> Work:
        if not tensors:
            raise self._wrong("allreduce_coalesced", "requires non-empty tensor list")
        return self._allreduce("allreduce_coalesced", OpType.ALLREDUCE_COALESCED, tensors, opts)

    def _allreduce(self, name: str, kind: OpType, tensors: Sequence[Any], opts: Any) -> Work:
        self._check(name, tensors)
        combine, call = self._combine(opts.reduceOp, tensors[0].dtype), self._call(name, opts.timeout)

        def run(task: Task) -> None:
            blocks = [Memory(tensor) for tensor in tensors]
            for block in blocks:
                self._rounds.allreduce(call, block.flat, combine)
                self._averaged(opts.reduceOp, block.flat)
                block.done()

        return self._start(kind, opts, run, list(tensors))

    def reduce(self, tensors: Sequence[Any], opts: Any) -> Work:
        root, tensor = self._root("reduce", opts.rootRank), self._single("reduce", tensors)
        combine, call = self._combine(opts.reduceOp, tensor.dtype), self._call("reduce", opts.timeout)

        def run(task: Task) -> None:
            block = Memory(tensor)
            self._rounds.reduce(call, block.flat, combine, root)
            if self._rank == root:
                self._averaged(opts.reduceOp, block.flat)
                block.done()

        return self._start(OpType.REDUCE, opts, run, [tensor])

    def reduce_scatter(self, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any) -> Work:
        output = self._single("reduce_scatter", outputs)
        if len(inputs) != 1 or len(inputs[0]) != self._size:
            raise RuntimeError("invalid input tensor list size, must be world size")
        self._check("reduce_scatter", inputs[0])
        self._same("reduce_scatter", output, inputs[0])
        return self._scattered("reduce_scatter", OpType.REDUCE_SCATTER, [output], [list(inputs[0])], opts)

    def _scattered(
        self, name: str, kind: OpType, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any
    ) -> Work:
        combine, call = self._combine(opts.reduceOp, outputs[0].dtype), self._call(name, opts.timeout)

        def run(task: Task) -> None:
            for output, parts in zip(outputs, inputs):
                block = Memory(output, fill=False)
                self._rounds.reduce_scatter(call, block.flat, [Memory(part).flat for part in parts], combine)
                self._averaged(opts.reduceOp, block.flat)
                block.done()

        return self._start(kind, opts, run, list(outputs))

    def _reduce_scatter_base(self, output: Any, input: Any, opts: Any) -> Work:
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    def reduce_scatter_tensor_coalesced(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
        name = "reduce_scatter_tensor_coalesced"
        if len(outputs) != len(inputs):
            raise RuntimeError("requires input/output tensor lists to have the same length")
        self._check(name, [*outputs, *inputs])
        parts: list[list[Any]] = []
        for output, input in zip(outputs, inputs):
            if output.dtype != input.dtype:
                raise self._wrong(name, f"invalid tensor type (expected {output.dtype}, got {input.dtype})")
            if output.numel() * self._size != input.numel():
                raise RuntimeError(
                    "Check failed: outputShape[0] * worldSize == inputShape[0] "
                    f"({output.numel() * self._size} vs. {input.numel()}). "
                )
            parts.append(list(Memory(input).flat.split(max(output.numel(), 1))) or [output.flatten()] * self._size)
        return self._scattered(name, OpType._REDUCE_SCATTER_BASE, outputs, parts, opts)

    # Copies.

    def broadcast(self, tensors: Sequence[Any], opts: Any) -> Work:
        root, tensor = self._root("broadcast", opts.rootRank), self._single("broadcast", tensors)
        call = self._call("broadcast", opts.timeout)

        def run(task: Task) -> None:
            block = Memory(tensor)
            self._rounds.broadcast(call, block.flat, root)
            if self._rank != root:
                block.done()

        return self._start(OpType.BROADCAST, opts, run, [tensor])

    def allgather(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any) -> Work:
        return self._gathered("allgather", OpType.ALLGATHER, outputs, inputs, opts)

    def allgather_coalesced(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any) -> Work:
        if not inputs:
            raise self._wrong("allgather_coalesced", "requires non-empty input tensor list")
        if len(outputs) != self._size:
            raise self._wrong("allgather_coalesced", "output lists should be equal to world size")
        turned = [[each[index] for each in outputs] for index in range(len(inputs))]
        return self._gathered("allgather_coalesced", OpType.ALLGATHER_COALESCED, turned, inputs, opts)

    def _gathered(
        self, name: str, kind: OpType, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any
    ) -> Work:
        if not inputs:
            raise self._wrong(name, "requires non-empty input tensor list")
        if len(inputs) != len(outputs):
            raise self._wrong(name, "requires input/output tensor lists to have the same length")
        self._check(name, inputs)
        for index, each in enumerate(outputs):
            if len(each) != self._size:
                text = f"invalid output tensor list at index {index} (expected length {self._size}, got {len(each)})"
                raise self._wrong(name, text)
            self._same(name, inputs[index], each)
        call = self._call(name, opts.timeout)

        def run(task: Task) -> None:
            for targets, tensor in zip(outputs, inputs):
                blocks = [Memory(target, fill=False) for target in targets]
                self._rounds.allgather(call, [block.flat for block in blocks], Memory(tensor).flat)
                for block in blocks:
                    block.done()

        return self._start(kind, opts, run, [list(each) for each in outputs])

    def _allgather_base(self, output: Any, input: Any, opts: Any) -> Work:
        return self.allgather_into_tensor_coalesced([output], [input], opts)

    def allgather_into_tensor_coalesced(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
        """Each output is a row of blocks, whatever its shape."""
        if len(outputs) != len(inputs):
            raise self._wrong("allgather", "requires input/output tensor lists to have the same length")
        self._check("allgather", inputs)
        for output, input in zip(outputs, inputs):
            if output.dtype != input.dtype:
                found, wanted = _kind_of(output), _kind_of(input)
                raise self._wrong("allgather", f"invalid tensor type at index 0 (expected {wanted}, got {found})")
            if output.numel() != input.numel() * self._size:
                raise self._wrong(
                    "allgather",
                    f"invalid tensor size at index 0 (expected {input.numel() * self._size} elements, "
                    f"got {_size_of(output)})",
                )
        call = self._call("allgather", opts.timeout)

        def run(task: Task) -> None:
            for output, input in zip(outputs, inputs):
                block, flat = Memory(output, fill=False), Memory(input).flat
                if flat.numel():
                    self._rounds.allgather(call, block.flat.split(flat.numel()), flat)
                else:
                    self._rounds.barrier(call)
                block.done()

        return self._start(OpType._ALLGATHER_BASE, opts, run, list(outputs))

    def gather(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any) -> Work:
        root, tensor = self._root("gather", opts.rootRank), self._single("gather", inputs)
        targets: Sequence[Any] = []
        if self._rank == root:
            if len(outputs) != 1:
                raise self._wrong(
                    "gather", f"requires a single-element output list containing a list with {self._size} tensors."
                )
            if len(outputs[0]) != self._size:
                raise self._wrong(
                    "gather",
                    f"Incorrect output list size {len(outputs[0])}. Output list size should be {self._size}, same as "
                    "size of the process group.",
                )
            targets = outputs[0]
            self._same("gather", tensor, targets)
        elif outputs:
            raise self._wrong("gather", "requires empty output on non-root")
        call = self._call("gather", opts.timeout)

        def run(task: Task) -> None:
            blocks = [Memory(target, fill=False) for target in targets]
            self._rounds.gather(call, [block.flat for block in blocks], Memory(tensor).flat, root)
            for block in blocks:
                block.done()

        return self._start(OpType.GATHER, opts, run, list(targets))

    def scatter(self, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any) -> Work:
        root, tensor = self._root("scatter", opts.rootRank), self._single("scatter", outputs)
        parts: Sequence[Any] = []
        if self._rank == root:
            if len(inputs) != 1:
                raise self._wrong(
                    "scatter", f"requires a single-element input list containing a list with {self._size} tensors"
                )
            if len(inputs[0]) != self._size:
                raise self._wrong(
                    "scatter",
                    f"Incorrect input list size {len(inputs[0])}. Input list size should be {self._size}, same as size "
                    "of the process group.",
                )
            parts = inputs[0]
            self._same("scatter", tensor, parts)
        elif inputs:
            raise self._wrong("scatter", "requires empty input on non-root")
        call = self._call("scatter", opts.timeout)

        def run(task: Task) -> None:
            block = Memory(tensor, fill=False)
            self._rounds.scatter(call, block.flat, [Memory(part).flat for part in parts], root)
            block.done()

        return self._start(OpType.SCATTER, opts, run, [tensor])

    def alltoall_base(
        self, output: Any, input: Any, output_sizes: Sequence[int], input_sizes: Sequence[int], opts: Any
    ) -> Work:
        self._check("alltoall_base", [output, input])
        if output.dtype != input.dtype:
            raise RuntimeError("output tensor and input tensor must have the same type")
        into, out = splits(output, output_sizes, self._size), splits(input, input_sizes, self._size)
        call = self._call("alltoall_base", opts.timeout)

        def run(task: Task) -> None:
            target = Memory(output, fill=False)
            self._rounds.exchange(call, Memory(input).flat.split(out), target.flat.split(into))
            target.done()

        return self._start(OpType.ALLTOALL_BASE, opts, run, [output])

    def alltoall(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
        for kind, tensors in (("input", inputs), ("output", outputs)):
            if len(tensors) != self._size:
                raise self._wrong(
                    "alltoall", f"{kind} tensor list size {len(tensors)} does not match world size {self._size}"
                )
        self._check("alltoall", [*outputs, *inputs])
        call = self._call("alltoall", opts.timeout)

        def run(task: Task) -> None:
            blocks = [Memory(output, fill=False) for output in outputs]
            self._rounds.exchange(call, [Memory(each).flat for each in inputs], [block.flat for block in blocks])
            for block in blocks:
                block.done()

        return self._start(OpType.ALLTOALL, opts, run, list(outputs))

    # From one rank to another: each has a thread of its own, since they wait for each other in any order.

    def _message(self, name: str, tag: int) -> Call:
        if not 0 <= tag < 1 << 31:
            raise self._wrong(name, f"invalid tag: {tag}")
        self._messages += 1
        return Call(name, self._messages, _POINT_TO_POINT + tag, self._options._timeout)

    def _peer(self, name: str, rank: int) -> int:
        if not 0 <= rank < self._size or rank == self._rank:
            raise self._wrong(name, f"invalid rank: {rank} (this is rank {self._rank} of {self._size})")
        return rank

    def send(self, tensors: Sequence[Any], dst: int, tag: int) -> Work:
        tensor, call = self._single("send", tensors), self._message("send", tag)
        target = self._peer("send", dst)
        self._rounds.send(call, Memory(tensor).flat, target)
        return Done([tensor], OpType.SEND)

    def recv(self, tensors: Sequence[Any], src: int, tag: int) -> Work:
        tensor, call = self._single("recv", tensors), self._message("recv", tag)
        return _Receive(self._mesh, call, Memory(tensor), self._peer("recv", src), tensor)

    def recv_anysource(self, tensors: Sequence[Any], tag: int) -> Work:
        tensor, call = self._single("recv_anysource", tensors), self._message("recv_anysource", tag)
        return _Receive(self._mesh, call, Memory(tensor), None, tensor)

    # Barriers.

    def barrier(self, opts: Any) -> Work:
        call = self._call("barrier", opts.timeout)
        return self._start(OpType.BARRIER, opts, lambda task: self._rounds.barrier(call), [])

    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool = False) -> None:
        limit = self._limit(timeout)
        self._barriers += 1
        call = Call("monitored_barrier", self._barriers, _BARRIER + self._barriers, limit)
        word = memoryview(bytearray(1))
        if self._rank:
            self._report(call, word, limit)
            return
        slots = {rank: self._mesh.post(call, rank, memoryview(bytearray(1)), None) for rank in range(1, self._size)}
        end, missing = time.monotonic() + limit.total_seconds(), []
        for rank, slot in slots.items():
            call.seconds = max(end - time.monotonic(), 0.0)
            try:
                self._mesh.wait(call, slot, rank)
            except RuntimeError as error:
                missing.append(rank)
                if not wait_all_ranks:
                    raise self._absent(missing, limit) from error
        if missing:
            raise self._absent(missing, limit)
        for rank in range(1, self._size):
            self._mesh.send(call, rank, word)

    def _absent(self, missing: list[int], limit: timedelta) -> RuntimeError:
        ranks = ", ".join(map(str, missing))
        return RuntimeError(
            f"[Rank 0]: Ranks {ranks} failed to pass monitoredBarrier in {int(limit.total_seconds() * 1000)} ms"
            if len(missing) > 1
            else f"Rank {ranks} failed to pass monitoredBarrier in {int(limit.total_seconds() * 1000)} ms"
        )

    def _report(self, call: Call, word: memoryview, limit: timedelta) -> None:
        try:
            slot = self._mesh.post(call, 0, word, None)
            self._mesh.send(call, 0, memoryview(b"\1"))
            self._mesh.wait(call, slot, 0)
        except RuntimeError as error:
            raise RuntimeError(
                f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting for "
                f"send/recv from rank 0. Please check rank 0 logs for faulty rank. Original exception: {error}"
            ) from error


class _Receive(Work):
    """A message that is waited for; nobody needs a thread for that."""

    def __init__(self, mesh: Mesh, call: Call, block: Memory, source: int | None, tensor: Any) -> None:
        super().__init__(OpType.RECVANYSOURCE if source is None else OpType.RECV)
        from ._rounds import memory

        self._mesh, self._call, self._block, self._from = mesh, call, block, source
        self._outputs = [tensor]
        view = memory(block.flat)
        posted = mesh.post_any(call, view, block.flat) if source is None else mesh.post(call, source, view, block.flat)
        self._slot = posted

    def is_completed(self) -> bool:
        if not self._finished.is_set() and self._slot.done.is_set():
            self._complete()
        return self._finished.is_set()

    def _complete(self) -> None:
        with self._guard:
            if self._finished.is_set():
                return
            error: RuntimeError | None = None
            try:
                self._source = self._mesh.wait(self._call, self._slot, self._from)
                self._block.done()
            except RuntimeError as found:
                error = found
            self._error = error
            self._finished.set()
            future = self._future
        if future is not None:
            self._settle(future)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        if timeout > timedelta(0):
            self._call.seconds = timeout.total_seconds()
        self._complete()
        self.synchronize()
        return True

    def get_future(self) -> Any:
        future = super().get_future()
        if not self._finished.is_set():
            import threading

            threading.Thread(target=self._complete, name="pt_gloo_recv", daemon=True).start()
        return future
