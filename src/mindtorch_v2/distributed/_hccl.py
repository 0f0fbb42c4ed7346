"""The backend `hccl`: collectives of NPU tensors by the vendor's library, on streams of their own.

Invariant: a collective begins after what the caller's stream has been given, and whoever waits for it has their stream
wait, not the host. All arguments are checked before anything is queued, so that a refused call leaves other ranks free.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from .. import _dtype as _t
from .._backends.npu import hccl, runtime
from .._backends.npu.streams import Event, StreamContext, current_stream
from .._layout import strided
from ._errors import DistBackendError
from ._hccl_work import Begun, Channel, DeviceWork, Together, Watch
from ._memory import Memory, splits
from ._options import OpType, ReduceOp, red_op
from ._process_group import Backend, BackendOptions
from ._store import Store
from ._trace import asked
from ._work import Queue, Work
from .constants import default_pg_timeout

__all__ = ["ProcessGroupHCCL"]

_SEND, _RECEIVE = 0, 1
Body = Callable[[Channel, Callable[..., None]], None]


def _places(sizes: Sequence[int]) -> list[int]:
    """Where parts of these sizes begin."""
    return [sum(sizes[:index]) for index in range(len(sizes))]


class ProcessGroupHCCL(Backend):
    """Collectives of NPU tensors."""

    __module__ = "torch.distributed"

    supports_coalescing = True

    class Options(BackendOptions):
        """What the backend is made with."""

        def __init__(self, timeout: timedelta = default_pg_timeout) -> None:
            super().__init__("hccl", timeout)

    _Options = Options

    def __init__(self, store: Store, rank: int, size: int, timeout: Any = default_pg_timeout) -> None:
        if not 0 <= rank < size:
            raise ValueError(f"ProcessGroupHCCL(): rank {rank} is not one of {size}")
        super().__init__(rank, size)
        self._options = timeout if isinstance(timeout, BackendOptions) else self.Options(timeout)
        self._store = store
        self._watch = Watch(store, rank, size, self._options._timeout.total_seconds())
        self._channels: dict[str, Channel] = {}
        # What is sent before a pair is connected waits here: two ranks may begin to connect to others than each other.
        self._lines: dict[tuple[int, int, int], Queue] = {}
        # Messages that wait for the end of a batch: (kind, tensor, peer, tag).
        self._batch: list[tuple[int, Any, int, int]] | None = None
        hccl.limit(self._options._timeout)
        if not _Live.hooked:
            _Live.hooked = True
            runtime.on_shutdown(5, _leave_all)
        _Live.groups.add(self)

    def name(self) -> str:
        return "hccl"

    @property
    def options(self) -> BackendOptions:
        return self._options

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._options._timeout = timeout
        self._watch.seconds = timeout.total_seconds()

    def _get_sequence_number_for_group(self) -> int:
        return self._watch.sequence

    def shutdown(self) -> None:
        """Wait for what is on its way, unless the group has failed, and leave."""
        for channel in self._channels.values():
            if self._watch.failure is None and runtime.alive():
                channel.text()
        self.abort()

    def abort(self) -> None:
        self._watch.end()
        for line in self._lines.values():
            line.close()
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.communicator.destroy()

    # Communicators: one for the whole group on each device, one for each pair of ranks that sends messages.

    def _channel(self, device: int) -> Channel:
        """The communicator of the whole group for a device of this rank."""
        key = f"npu:{device}"
        found = self._channels.get(key)
        if found is None:
            # Ranks number their devices for themselves: what they share is which of them is the first, the second.
            place = sum(each.startswith("npu:") for each in self._channels)
            found = Channel(self._joined(device, list(range(self._size)), f"all/{place}"))
            self._channels[key] = found
        return found

    def _between(self, device: int, pair: list[int], tag: int) -> Channel:
        """The communicator of two ranks for messages with a tag."""
        key = f"{pair[0]}:{pair[1]}:{tag}"
        found = self._channels.get(key)
        if found is None:
            found = self._channels[key] = Channel(self._joined(device, pair, key))
        return found

    def _joined(self, device: int, members: list[int], key: str) -> hccl.Communicator:
        place = members.index(self._rank)
        try:
            if place == 0:
                self._store.set(f"root/{key}", hccl.root_info(device))
            self._store.set(f"joins/{key}/{place}", b"1")
            root = self._store.get(f"root/{key}")
            return hccl.Communicator(device, root, len(members), place)
        except RuntimeError as error:
            keys = {rank: f"joins/{key}/{index}" for index, rank in enumerate(members)}
            missing = [rank for rank, each in keys.items() if not self._store.check([each])]
            raise DistBackendError(
                f"HCCL: no communicator for npu:{device} on rank {self._rank} of {self._size}, group "
                f"{self._name()}; ranks that did not come: {missing}\n  {error}"
            ) from error

    def _name(self) -> str:
        return self._group_name or self._options.group_name or "0"

    # What all operations share.

    def _start(
        self,
        name: str,
        kind: OpType,
        channel: Channel,
        outputs: Any,
        keep: Sequence[Any],
        body: Body,
        after: Event | None = None,
    ) -> DeviceWork:
        """Queue a collective: `body(channel, call)` runs with the channel's stream current.

        A message between two ranks has no number in the group, and comes with the event that it is to wait for.
        """
        counted = after is None
        self._watch.group = self._name()
        self._watch.check()
        if counted:
            self._watch.sequence += 1
        sequence = self._watch.sequence if counted else 0
        number = f"sequence number {sequence}" if counted else "a message"
        what = f"{name} ({number}, group {self._name()}, rank {self._rank} of {self._size})"

        def call(function: str, *arguments: Any) -> None:
            try:
                channel.communicator.call(function, what, channel.stream.npu_stream, *arguments)
            except hccl.HcclError as error:
                raise DistBackendError(f"HCCL: {error} (operation {what})") from None

        channel.stream.wait_event(after or current_stream(channel.device).record_event())
        with asked(kind), StreamContext(channel.stream):
            body(channel, call)
            work = DeviceWork(self._watch, channel, name, sequence, kind, outputs, list(keep))
        self._watch.add(work)
        return work

    @staticmethod
    def _wrong(name: str, text: str) -> RuntimeError:
        return RuntimeError(f"ProcessGroupHCCL::{name}: {text}")

    def _device(self, name: str, tensors: Sequence[Any]) -> int:
        """The one device of all tensors; what the library cannot take is refused."""
        if not tensors:
            raise self._wrong(name, "requires non-empty tensor list")
        first = tensors[0].device
        for tensor in tensors:
            if tensor.layout is not strided:
                raise self._wrong(name, "only supports dense tensors")
            if tensor.device.type != "npu":
                raise self._wrong(name, f"tensors must be on an NPU, got {tensor.device}")
            if tensor.device != first:
                raise self._wrong(name, f"tensors must be on one device, got {first} and {tensor.device}")
            if tensor.dtype not in hccl.DTYPES:
                raise self._wrong(name, f"HCCL has no dtype for {tensor.dtype}")
            if tensor.dtype != tensors[0].dtype:
                raise self._wrong(name, f"tensors must have one dtype, got {tensors[0].dtype} and {tensor.dtype}")
        return int(first.index)

    def _single(self, name: str, tensors: Sequence[Any]) -> Any:
        if len(tensors) != 1:
            raise self._wrong(name, "requires a single-element tensor list")
        return tensors[0]

    def _root(self, name: str, root: int) -> int:
        if not 0 <= root < self._size:
            raise self._wrong(name, f"invalid root rank: {root}")
        return root

    def _reduction(self, name: str, op: Any, dtype: Any) -> tuple[int, Any]:
        """The vendor's number of a reduction, and the dtype in which it is done."""
        kind = red_op(op)
        asked = "SUM" if kind == ReduceOp.AVG else kind.name
        if asked not in hccl.REDUCTIONS:
            raise RuntimeError(
                f"Cannot use ReduceOp.{kind.name} with HCCL: it reduces by {', '.join(hccl.REDUCTIONS)}, and here AVG"
            )
        if kind == ReduceOp.AVG and not dtype.is_floating_point:
            raise self._wrong(name, f"a mean of {dtype} is not one of its values; use ReduceOp.SUM")
        carrier = {_t.bool: _t.int32, _t.uint8: _t.int32}.get(dtype, dtype)
        if asked == "PRODUCT" and dtype in hccl.NO_PRODUCT:
            carrier = _t.float32 if dtype.is_floating_point else _t.int32
        if carrier not in hccl.REDUCED:
            known = ", ".join(str(each).removeprefix("torch.") for each in hccl.REDUCED)
            raise self._wrong(name, f"HCCL does not reduce {dtype}; it reduces {known}, uint8 and bool")
        return hccl.REDUCTIONS[asked], carrier

    def _mean(self, op: Any, flat: Any) -> None:
        if red_op(op) == ReduceOp.AVG:
            flat.div_(self._size)

    # Reductions.

    def allreduce(self, tensors: Sequence[Any], opts: Any) -> Work:
        return self._allreduce("allreduce", OpType.ALLREDUCE, tensors, opts)

    def allreduce_coalesced(self, tensors: Sequence[Any], opts: Any) -> Work:
        return self._allreduce("allreduce_coalesced", OpType.ALLREDUCE_COALESCED, tensors, opts)

    def _allreduce(self, name: str, kind: OpType, tensors: Sequence[Any], opts: Any) -> Work:
        device = self._device(name, tensors)
        number, carrier = self._reduction(name, opts.reduceOp, tensors[0].dtype)
        blocks = [Memory(tensor) for tensor in tensors]
        carried = [block.flat.to(carrier) for block in blocks]

        def body(channel: Channel, call: Callable[..., None]) -> None:
            for block, flat in zip(blocks, carried):
                if flat.numel():
                    at = flat.data_ptr()
                    call("HcclAllReduce", at, at, flat.numel(), hccl.DTYPES[carrier], number)
                    self._back(block, flat, opts.reduceOp)

        return self._start(name, kind, self._channel(device), list(tensors), [tensors, blocks, carried], body)

    def _back(self, block: Memory, flat: Any, op: Any) -> None:
        """A reduced value into the tensor that it is for."""
        self._mean(op, flat)
        if flat.data_ptr() != block.flat.data_ptr():
            block.flat.copy_(flat)
        block.done()

    def reduce(self, tensors: Sequence[Any], opts: Any) -> Work:
        root, tensor = self._root("reduce", opts.rootRank), self._single("reduce", tensors)
        device = self._device("reduce", [tensor])
        number, carrier = self._reduction("reduce", opts.reduceOp, tensor.dtype)
        block = Memory(tensor)
        flat = block.flat.to(carrier)

        def body(channel: Channel, call: Callable[..., None]) -> None:
            if flat.numel():
                at = flat.data_ptr()
                call("HcclReduce", at, at, flat.numel(), hccl.DTYPES[carrier], number, root)
                if self._rank == root:
                    self._back(block, flat, opts.reduceOp)

        return self._start("reduce", OpType.REDUCE, self._channel(device), [tensor], [tensor, block, flat], body)

    def reduce_scatter(self, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any) -> Work:
        output = self._single("reduce_scatter", outputs)
        if len(inputs) != 1 or len(inputs[0]) != self._size:
            raise RuntimeError("invalid input tensor list size, must be world size")
        if inputs[0][self._rank].numel() != output.numel():
            raise self._wrong(
                "reduce_scatter",
                f"the input for rank {self._rank} has {inputs[0][self._rank].numel()} elements, the output "
                f"{output.numel()}",
            )
        self._device("reduce_scatter", [output, *inputs[0]])
        return self._scattered("reduce_scatter", OpType.REDUCE_SCATTER, [output], [list(inputs[0])], opts)

    def _reduce_scatter_base(self, output: Any, input: Any, opts: Any) -> Work:
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    def reduce_scatter_tensor_coalesced(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
        name = "reduce_scatter_tensor_coalesced"
        if len(outputs) != len(inputs):
            raise self._wrong(name, "requires input/output tensor lists to have the same length")
        self._device(name, [*outputs, *inputs])
        for output, input in zip(outputs, inputs):
            if output.numel() * self._size != input.numel():
                raise self._wrong(
                    name, f"input has {input.numel()} elements, expected {self._size} times {output.numel()}"
                )
        return self._scattered(name, OpType._REDUCE_SCATTER_BASE, outputs, [[each] for each in inputs], opts)

    def _scattered(
        self, name: str, kind: OpType, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any
    ) -> Work:
        """Each output from parts that lie in one tensor or in several."""
        number, carrier = self._reduction(name, opts.reduceOp, outputs[0].dtype)
        blocks = [Memory(output, fill=False) for output in outputs]
        received = [block.flat.to(carrier) for block in blocks]
        sent = [self._joined_flat(parts).to(carrier) for parts in inputs]
        sizes = [[each.numel() for each in parts] for parts in inputs]

        def body(channel: Channel, call: Callable[..., None]) -> None:
            for block, into, out, lengths in zip(blocks, received, sent, sizes):
                code = hccl.DTYPES[carrier]
                if len(set(lengths)) == 1:
                    if into.numel():
                        call("HcclReduceScatter", out.data_ptr(), into.data_ptr(), into.numel(), code, number)
                else:
                    call(
                        "HcclReduceScatterV",
                        *(out.data_ptr(), hccl.counts(lengths), hccl.counts(_places(lengths))),
                        *(into.data_ptr(), into.numel(), code, number),
                    )
                self._back(block, into, opts.reduceOp)

        channel = self._channel(int(outputs[0].device.index))
        return self._start(name, kind, channel, list(outputs), [outputs, inputs, blocks, received, sent], body)

    @staticmethod
    def _joined_flat(tensors: Sequence[Any]) -> Any:
        """All elements of several tensors side by side."""
        flats = [Memory(tensor).flat for tensor in tensors]
        if len(flats) == 1:
            return flats[0]
        out = flats[0].new_empty(sum(flat.numel() for flat in flats))
        for part, flat in zip(out.split([flat.numel() for flat in flats]), flats):
            part.copy_(flat)
        return out

    # Copies.

    def broadcast(self, tensors: Sequence[Any], opts: Any) -> Work:
        root, tensor = self._root("broadcast", opts.rootRank), self._single("broadcast", tensors)
        device, block = self._device("broadcast", [tensor]), Memory(tensor)

        def body(channel: Channel, call: Callable[..., None]) -> None:
            if block.flat.numel():
                code = hccl.DTYPES[tensor.dtype]
                call("HcclBroadcast", block.flat.data_ptr(), block.flat.numel(), code, root)
                if self._rank != root:
                    block.done()

        return self._start("broadcast", OpType.BROADCAST, self._channel(device), [tensor], [tensor, block], body)

    def allgather(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any) -> Work:
        return self._gathered("allgather", OpType.ALLGATHER, outputs, inputs)

    def allgather_coalesced(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any) -> Work:
        if len(outputs) != self._size:
            raise self._wrong("allgather_coalesced", "output lists should be equal to world size")
        turned = [[each[index] for each in outputs] for index in range(len(inputs))]
        return self._gathered("allgather_coalesced", OpType.ALLGATHER_COALESCED, turned, inputs)

    def _gathered(self, name: str, kind: OpType, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any]) -> Work:
        if len(inputs) != len(outputs):
            raise self._wrong(name, "requires input/output tensor lists to have the same length")
        device = self._device(name, [*inputs, *(each for targets in outputs for each in targets)])
        for targets, tensor in zip(outputs, inputs):
            if len(targets) != self._size:
                raise self._wrong(name, f"expected {self._size} outputs, got {len(targets)}")
            if targets[self._rank].numel() != tensor.numel():
                raise self._wrong(
                    name,
                    f"the output for rank {self._rank} has {targets[self._rank].numel()} elements, its input "
                    f"{tensor.numel()}",
                )
        sent = [Memory(tensor).flat for tensor in inputs]
        sizes = [[each.numel() for each in targets] for targets in outputs]
        whole = [flat.new_empty(sum(lengths)) for flat, lengths in zip(sent, sizes)]

        def body(channel: Channel, call: Callable[..., None]) -> None:
            for targets, flat, into, lengths in zip(outputs, sent, whole, sizes):
                self._gather_into(call, flat, into, lengths)
                for target, part in zip(targets, into.split(lengths)):
                    target.detach().copy_(part.view(target.shape))

        told = [list(each) for each in outputs]
        return self._start(name, kind, self._channel(device), told, [inputs, sent, whole], body)

    @staticmethod
    def _gather_into(call: Callable[..., None], flat: Any, into: Any, lengths: list[int]) -> None:
        code = hccl.DTYPES[flat.dtype]
        if len(set(lengths)) > 1:
            places = hccl.counts(_places(lengths))
            call("HcclAllGatherV", flat.data_ptr(), flat.numel(), into.data_ptr(), hccl.counts(lengths), places, code)
        elif flat.numel():
            call("HcclAllGather", flat.data_ptr(), into.data_ptr(), flat.numel(), code)

    def _allgather_base(self, output: Any, input: Any, opts: Any) -> Work:
        return self.allgather_into_tensor_coalesced([output], [input], opts)

    def allgather_into_tensor_coalesced(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
        """Each output is a row of blocks, whatever its shape."""
        if len(outputs) != len(inputs):
            raise self._wrong("allgather", "requires input/output tensor lists to have the same length")
        device = self._device("allgather", [*outputs, *inputs])
        for output, input in zip(outputs, inputs):
            if output.numel() != input.numel() * self._size:
                raise self._wrong(
                    "allgather", f"output has {output.numel()} elements, expected {self._size} times {input.numel()}"
                )
        blocks = [Memory(output, fill=False) for output in outputs]
        sent = [Memory(input).flat for input in inputs]

        def body(channel: Channel, call: Callable[..., None]) -> None:
            for block, flat in zip(blocks, sent):
                self._gather_into(call, flat, block.flat, [flat.numel()] * self._size)
                block.done()

        channel = self._channel(device)
        return self._start("allgather", OpType._ALLGATHER_BASE, channel, list(outputs), [inputs, blocks, sent], body)

    def gather(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any) -> Work:
        root, tensor = self._root("gather", opts.rootRank), self._single("gather", inputs)
        targets: Sequence[Any] = []
        if self._rank == root:
            if len(outputs) != 1 or len(outputs[0]) != self._size:
                raise self._wrong("gather", f"requires a list with {self._size} tensors on the root")
            targets = outputs[0]
            for target in targets:
                if target.numel() != tensor.numel():
                    raise self._wrong("gather", f"outputs must have the input's {tensor.numel()} elements")
        elif outputs:
            raise self._wrong("gather", "requires empty output on non-root")
        device = self._device("gather", [tensor, *targets])
        flat, blocks = Memory(tensor).flat, [Memory(target, fill=False) for target in targets]

        def body(channel: Channel, call: Callable[..., None]) -> None:
            if self._rank == root:
                blocks[root].flat.copy_(flat)
                messages = [(_RECEIVE, blocks[rank].flat, rank) for rank in range(self._size) if rank != root]
            else:
                messages = [(_SEND, flat, root)]
            self._exchange(call, messages)
            for block in blocks:
                block.done()

        channel = self._channel(device)
        return self._start("gather", OpType.GATHER, channel, list(targets), [tensor, flat, blocks], body)

    @staticmethod
    def _exchange(call: Callable[..., None], messages: Sequence[tuple[int, Any, int]]) -> None:
        """Messages that begin together: (kind, memory, rank in the communicator)."""
        items = [
            hccl.Message(kind, flat.data_ptr(), flat.numel(), hccl.DTYPES[flat.dtype], peer)
            for kind, flat, peer in messages
            if flat.numel()
        ]
        if items:
            call("HcclBatchSendRecv", (hccl.Message * len(items))(*items), len(items))

    def scatter(self, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any) -> Work:
        root, tensor = self._root("scatter", opts.rootRank), self._single("scatter", outputs)
        parts: Sequence[Any] = []
        if self._rank == root:
            if len(inputs) != 1 or len(inputs[0]) != self._size:
                raise self._wrong("scatter", f"requires a list with {self._size} tensors on the root")
            parts = inputs[0]
            for part in parts:
                if part.numel() != tensor.numel():
                    raise self._wrong("scatter", f"inputs must have the output's {tensor.numel()} elements")
        elif inputs:
            raise self._wrong("scatter", "requires empty input on non-root")
        device = self._device("scatter", [tensor, *parts])
        block = Memory(tensor, fill=False)
        sent = self._joined_flat(parts) if parts else None

        def body(channel: Channel, call: Callable[..., None]) -> None:
            if block.flat.numel():
                out = 0 if sent is None else sent.data_ptr()
                code = hccl.DTYPES[tensor.dtype]
                call("HcclScatter", out, block.flat.data_ptr(), block.flat.numel(), code, root)
                block.done()

        return self._start("scatter", OpType.SCATTER, self._channel(device), [tensor], [tensor, block, sent], body)

    def alltoall_base(
        self, output: Any, input: Any, output_sizes: Sequence[int], input_sizes: Sequence[int], opts: Any
    ) -> Work:
        device = self._device("alltoall_base", [output, input])
        into, out = splits(output, output_sizes, self._size), splits(input, input_sizes, self._size)
        block, flat = Memory(output, fill=False), Memory(input).flat
        return self._alltoall(
            "alltoall_base", OpType.ALLTOALL_BASE, device, flat, out, block.flat, into, [block], output
        )

    def alltoall(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
        for kind, tensors in (("input", inputs), ("output", outputs)):
            if len(tensors) != self._size:
                raise self._wrong(
                    "alltoall", f"{kind} tensor list size {len(tensors)} does not match world size {self._size}"
                )
        device = self._device("alltoall", [*outputs, *inputs])
        into, out = [each.numel() for each in outputs], [each.numel() for each in inputs]
        flat = self._joined_flat(inputs)
        whole = flat.new_empty(sum(into))
        return self._alltoall(
            "alltoall", OpType.ALLTOALL, device, flat, out, whole, into, list(outputs), outputs, scattered=True
        )

    def _alltoall(
        self,
        name: str,
        kind: OpType,
        device: int,
        flat: Any,
        out: list[int],
        whole: Any,
        into: list[int],
        targets: list[Any],
        outputs: Any,
        scattered: bool = False,
    ) -> Work:
        if flat.numel() and flat.data_ptr() == whole.data_ptr():
            flat = flat.clone()  # the library reads and writes at the same time
        code = hccl.DTYPES[flat.dtype]

        def body(channel: Channel, call: Callable[..., None]) -> None:
            if len({*out, *into}) == 1:
                if out[0]:
                    call("HcclAlltoAll", flat.data_ptr(), out[0], code, whole.data_ptr(), into[0], code)
            else:
                call(
                    "HcclAlltoAllV",
                    *(flat.data_ptr(), hccl.counts(out), hccl.counts(_places(out)), code),
                    *(whole.data_ptr(), hccl.counts(into), hccl.counts(_places(into)), code),
                )
            if scattered:
                for target, part in zip(targets, whole.split(into)):
                    target.detach().copy_(part.view(target.shape))
            else:
                targets[0].done()

        told = list(outputs) if scattered else [outputs]
        return self._start(name, kind, self._channel(device), told, [flat, whole, targets], body)

    # From one rank to another: a communicator for each pair and tag, so that nobody else needs to take part.

    def _peer(self, name: str, rank: int) -> int:
        if not 0 <= rank < self._size or rank == self._rank:
            raise self._wrong(name, f"invalid rank: {rank} (this is rank {self._rank} of {self._size})")
        return rank

    def send(self, tensors: Sequence[Any], dst: int, tag: int) -> Work | None:
        return self._message("send", OpType.SEND, _SEND, self._single("send", tensors), dst, tag)

    def recv(self, tensors: Sequence[Any], src: int, tag: int) -> Work | None:
        return self._message("recv", OpType.RECV, _RECEIVE, self._single("recv", tensors), src, tag)

    def recv_anysource(self, tensors: Sequence[Any], tag: int) -> Work:
        raise RuntimeError("Backend hccl does not support recv from any source: name the rank that sends")

    def _message(self, name: str, kind: OpType, direction: int, tensor: Any, peer: int, tag: int) -> Work | None:
        self._peer(name, peer)
        self._device(name, [tensor])
        if self._batch is not None:
            self._batch.append((direction, tensor, peer, tag))
            return None
        work = self._messages(name, kind, [(direction, tensor)], peer, tag)
        work._source = peer
        return work

    def _messages(self, name: str, kind: OpType, items: Sequence[tuple[int, Any]], peer: int, tag: int) -> Work:
        pair, device = sorted((self._rank, peer)), int(items[0][1].device.index)
        other = pair.index(peer)
        blocks = [Memory(tensor, fill=direction == _SEND) for direction, tensor in items]
        tensors = [tensor for _, tensor in items]
        after = current_stream(device).record_event()

        def body(channel: Channel, call: Callable[..., None]) -> None:
            if len(items) == 1:
                flat = blocks[0].flat
                if flat.numel():
                    function = "HcclSend" if items[0][0] == _SEND else "HcclRecv"
                    call(function, flat.data_ptr(), flat.numel(), hccl.DTYPES[flat.dtype], other)
            else:
                self._exchange(call, [(direction, b.flat, other) for (direction, _), b in zip(items, blocks)])
            for (direction, _), block in zip(items, blocks):
                if direction == _RECEIVE:
                    block.done()

        def begin() -> DeviceWork:
            channel = self._between(device, pair, tag)
            return self._start(f"{name} with rank {peer}", kind, channel, tensors, [tensors, blocks], body, after)

        line = self._lines.setdefault((pair[0], pair[1], tag), Queue(f"pt_hccl_{peer}_{tag}"))
        if line.idle and f"{pair[0]}:{pair[1]}:{tag}" in self._channels:
            return begin()
        later = Begun(kind, begin, tensors)
        line.put(later)
        return later

    def _start_coalescing(self) -> None:
        self._batch = []

    def _drop_coalescing(self) -> None:
        self._batch = None

    def _end_coalescing(self) -> Work | None:
        """Begin the messages of a batch, those with one rank together."""
        batch, self._batch = self._batch or [], None
        groups: dict[tuple[int, int, int], list[tuple[int, Any]]] = {}
        for direction, tensor, peer, tag in batch:
            key = (min(peer, self._rank), max(peer, self._rank), tag)
            groups.setdefault(key, []).append((direction, tensor))
        works = [
            self._messages("batch_isend_irecv", OpType.COALESCED, groups[key], sum(key[:2]) - self._rank, key[2])
            for key in sorted(groups)
        ]
        return Together(works) if works else None

    # Barriers.

    def barrier(self, opts: Any) -> Work:
        index = runtime.current_device() if opts.device is None or opts.device.index is None else opts.device.index

        def body(channel: Channel, call: Callable[..., None]) -> None:
            call("HcclBarrier")

        return self._start("barrier", OpType.BARRIER, self._channel(index), [], [], body)


class _Live:
    """Groups that have not been destroyed."""

    groups: weakref.WeakSet[ProcessGroupHCCL] = weakref.WeakSet()
    hooked = False


def _leave_all() -> None:
    """The program ends: communicators are given back before their streams."""
    for group in list(_Live.groups):
        group.shutdown()
