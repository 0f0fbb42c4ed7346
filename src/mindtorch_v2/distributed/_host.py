"""What backends of CPU tensors share: how collectives are checked, and made of the rounds of a transport.

Invariant: nothing is sent before all arguments are checked. An operation runs in the group's one thread, or in the
caller's when the caller waits and nothing is on its way: in the order of calls either way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from .. import _dtype as _t
from .._layout import sparse_coo, strided
from ._memory import Memory, splits
from ._options import OpType, RedOpType, ReduceOp, red_op
from ._process_group import Backend, BackendOptions
from ._sockets import Call
from ._trace import asked
from ._work import Queue, Task, Work

__all__ = ["HostGroup"]

_DTYPES = frozenset((_t.float32, _t.float64, _t.float16, _t.bfloat16, _t.int8, _t.uint8, _t.int32, _t.int64, _t.bool))


def _kind_of(tensor: Any) -> str:
    from .._dtype_names import c_name

    return (
        f"TensorOptions(dtype={c_name(tensor.dtype)}, device={tensor.device}, layout=Strided, requires_grad=false "
        "(default), pinned_memory=false (default), memory_format=(nullopt))"
    )


def _size_of(tensor: Any) -> str:
    return f"({', '.join(map(str, tensor.shape))})"


def _no_tensors(name: str) -> NotImplementedError:
    return NotImplementedError(
        "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no fallback "
        f"function is registered for schema c10d::{name}.  This usually means that this function requires a non-empty "
        "list of Tensors, or that you (the operator writer) forgot to register a fallback function."
    )


class HostGroup(Backend):
    """Collectives of CPU tensors over the rounds of a transport (`_rounds.Rounds` is one)."""

    dtypes = _DTYPES
    # What errors call the backend.
    title = ""

    def __init__(self, rank: int, size: int, options: BackendOptions) -> None:
        super().__init__(rank, size)
        self._options = options
        self._sequence = 0
        self._rounds: Any = None
        self._queue = Queue(f"pt_{self.name()}_runloop")

    @property
    def options(self) -> BackendOptions:
        return self._options

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    # What all operations share.

    def _limit(self, timeout: timedelta) -> timedelta:
        return self._options._timeout if timeout < timedelta(0) else timeout

    def _call(self, name: str, timeout: timedelta) -> Call:
        self._sequence += 1
        return Call(name, self._sequence, self._sequence, self._limit(timeout))

    def _start(self, kind: OpType, opts: Any, run: Callable[[Task], None], outputs: Any, inputs: Any = None) -> Work:
        """Do it now if the caller waits for it anyway, else in the group's thread."""
        with asked(kind):
            task = Task(kind, run, outputs, self.name(), inputs)
            if opts is not None and not opts.asyncOp and self._queue.idle:
                task.do()
            else:
                self._queue.put(task)
        return task

    def _wrong(self, name: str, text: str) -> RuntimeError:
        return RuntimeError(f"ProcessGroup{self.title}::{name}: {text}")

    def _check(self, name: str, tensors: Sequence[Any]) -> None:
        for tensor in tensors:
            if tensor.layout is not strided:
                backend = "SparseCPU" if tensor.layout is sparse_coo else "SparseCsrCPU"
                operator = "send" if name == "send" else f"{name.removesuffix('_anysource')}_"
                raise NotImplementedError(
                    f"Could not run 'c10d::{operator}' with arguments from the '{backend}' backend. "
                    f"ProcessGroup{self.title}::{name}: only supports dense tensors"
                )
            if tensor.device.type != "cpu":
                raise self._wrong(name, f"unsupported device type {tensor.device.type}")
            if tensor.dtype not in self.dtypes:
                raise RuntimeError("Invalid scalar type")

    def _single(self, name: str, tensors: Sequence[Any]) -> Any:
        if len(tensors) != 1:
            raise self._wrong(name, "requires a single-element tensor list")
        self._check(name, tensors)
        return tensors[0]

    def _message_of(self, name: str, tensors: Sequence[Any]) -> Any:
        """A message lies in memory as it is sent."""
        found = self._single(name, tensors)
        if not found.is_contiguous():
            raise RuntimeError("input tensor has to be contiguous")
        return found

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

    def _reduction(self, op: Any, dtype: Any) -> RedOpType:
        kind = red_op(op)
        if kind == ReduceOp.PREMUL_SUM:
            raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with {self.title}")
        if kind in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and dtype.is_floating_point:
            raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")
        return kind

    def _averaged(self, op: Any, flat: Any) -> None:
        if red_op(op) == ReduceOp.AVG:
            flat.div_(self._size)

    # Reductions.

    def allreduce(self, tensors: Sequence[Any], opts: Any) -> Work:
        if not tensors:
            raise self._wrong("allreduce", "requires non-empty tensor list")
        if tensors[0].layout is sparse_coo:
            return self._allreduce_sparse(tensors, opts)
        return self._allreduce("allreduce", OpType.ALLREDUCE, tensors, opts)

    def _allreduce_sparse(self, tensors: Sequence[Any], opts: Any) -> Work:
        """The sum of sparse tensors: all ranks get all entries and add them up, in the same order."""
        if len(tensors) != 1:
            raise self._wrong("allreduce", "requires a single-element tensor list")
        if red_op(opts.reduceOp) != ReduceOp.SUM:
            text = "unsupported reduction operation (allreduce of sparse tensors only works with ReduceOp.SUM)"
            raise self._wrong("allreduce", text)
        from .. import cat, empty, sparse_coo_tensor, tensor
        from .._dtype import int64

        target = tensors[0]
        own = target.detach().coalesce()
        self._check("allreduce", [own.values()])
        call = self._call("allreduce", opts.timeout)

        def gathered(part: Any, counts: Sequence[int]) -> list[Any]:
            """The parts of all ranks: as many rows as each has, in blocks of one size."""
            block = part.new_zeros((max(counts), *part.shape[1:]))
            block[: part.shape[0]] = part
            blocks = [empty(block.shape, dtype=block.dtype) for _ in counts]
            self._rounds.allgather(call, [each.view(-1) for each in blocks], block.view(-1))
            return [each[:count] for each, count in zip(blocks, counts)]

        def run(task: Task) -> None:
            told = [tensor([0]) for _ in range(self._size)]
            self._rounds.allgather(call, told, tensor([own._nnz()], dtype=int64))
            counts = [int(each.item()) for each in told]
            if max(counts) == 0:
                return
            indices = cat(gathered(own.indices().t().contiguous(), counts)).t()
            values = cat(gathered(own.values().contiguous(), counts))
            target.copy_(sparse_coo_tensor(indices, values, own.shape, check_invariants=False).coalesce())

        return self._start(OpType.ALLREDUCE, opts, run, [target])

    def allreduce_coalesced(self, tensors: Sequence[Any], opts: Any) -> Work:
        if not tensors:
            raise _no_tensors("allreduce_coalesced_")
        return self._allreduce("allreduce_coalesced", OpType.ALLREDUCE_COALESCED, tensors, opts)

    def _allreduce(self, name: str, kind: OpType, tensors: Sequence[Any], opts: Any) -> Work:
        self._check(name, tensors)
        kind_of, call = self._reduction(opts.reduceOp, tensors[0].dtype), self._call(name, opts.timeout)

        def run(task: Task) -> None:
            blocks = [Memory(tensor) for tensor in tensors]
            for block in blocks:
                self._rounds.allreduce(call, block.flat, kind_of)
                self._averaged(opts.reduceOp, block.flat)
                block.done()

        return self._start(kind, opts, run, list(tensors))

    def reduce(self, tensors: Sequence[Any], opts: Any) -> Work:
        root, tensor = self._root("reduce", opts.rootRank), self._single("reduce", tensors)
        kind_of, call = self._reduction(opts.reduceOp, tensor.dtype), self._call("reduce", opts.timeout)

        def run(task: Task) -> None:
            block = Memory(tensor)
            self._rounds.reduce(call, block.flat, kind_of, root)
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
        kind_of, call = self._reduction(opts.reduceOp, outputs[0].dtype), self._call(name, opts.timeout)

        def run(task: Task) -> None:
            for output, parts in zip(outputs, inputs):
                block = Memory(output, fill=False)
                self._rounds.reduce_scatter(call, block.flat, [Memory(part).flat for part in parts], kind_of)
                self._averaged(opts.reduceOp, block.flat)
                block.done()

        return self._start(kind, opts, run, list(outputs), [part for parts in inputs for part in parts])

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
            parts.append(list(Memory(input).flat.split([output.numel()] * self._size)))
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
            raise _no_tensors("allgather_coalesced_")
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

        return self._start(kind, opts, run, [list(each) for each in outputs], inputs)

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

        return self._start(OpType._ALLGATHER_BASE, opts, run, list(outputs), inputs)

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

        return self._start(OpType.GATHER, opts, run, list(targets), [tensor])

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

        return self._start(OpType.SCATTER, opts, run, [tensor], parts)

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

        return self._start(OpType.ALLTOALL_BASE, opts, run, [output], [input])

    def alltoall(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
        if not outputs and not inputs:
            raise _no_tensors("alltoall_")
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

        return self._start(OpType.ALLTOALL, opts, run, list(outputs), inputs)

    # Barriers.

    def barrier(self, opts: Any) -> Work:
        call = self._call("barrier", opts.timeout)
        return self._start(OpType.BARRIER, opts, lambda task: self._rounds.barrier(call), [])
