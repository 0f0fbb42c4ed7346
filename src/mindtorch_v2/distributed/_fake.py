"""The backend `fake`: one process that looks like many. Nothing is sent; what others would send is this process's own.

Invariant: as PyTorch's: a reduction leaves its tensor, a gathering copies this rank's input to every place.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ._options import OpType
from ._process_group import Backend, BackendOptions
from ._store import HashStore
from ._work import Done, Work
from .constants import default_pg_timeout

__all__ = ["FakeProcessGroup", "FakeStore"]


class FakeStore(HashStore):
    """A store of nobody but this process."""


class FakeProcessGroup(Backend):
    """A group whose other processes do not exist."""

    class Options(BackendOptions):
        """What the backend is made with."""

        def __init__(self, timeout: timedelta = default_pg_timeout) -> None:
            super().__init__("fake", timeout)
            self.error_on_collective = False

    def __init__(self, rank: int, size: int, options: Any = None) -> None:
        super().__init__(rank, size)
        self._options = options if isinstance(options, BackendOptions) else self.Options()

    def name(self) -> str:
        return "custom"

    @property
    def options(self) -> BackendOptions:
        return self._options

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._options._timeout = timeout

    def _get_sequence_number_for_group(self) -> int:
        return 0

    def _done(self, kind: OpType, outputs: Any) -> Work:
        if getattr(self._options, "error_on_collective", False):
            raise RuntimeError("FakeProcessGroup collective operation error (error_on_collective=true)")
        return Done(outputs, kind)

    def broadcast(self, tensors: Sequence[Any], opts: Any) -> Work:
        return self._done(OpType.BROADCAST, list(tensors))

    def allreduce(self, tensors: Sequence[Any], opts: Any) -> Work:
        return self._done(OpType.ALLREDUCE, list(tensors))

    def allreduce_coalesced(self, tensors: Sequence[Any], opts: Any) -> Work:
        return self._done(OpType.ALLREDUCE_COALESCED, list(tensors))

    def reduce(self, tensors: Sequence[Any], opts: Any) -> Work:
        return self._done(OpType.REDUCE, list(tensors))

    def allgather(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any) -> Work:
        for targets, tensor in zip(outputs, inputs):
            for target in targets:
                target.detach().copy_(tensor.detach())
        return self._done(OpType.ALLGATHER, outputs)

    def allgather_coalesced(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any) -> Work:
        return self.allgather([[each[index] for each in outputs] for index in range(len(inputs))], inputs, opts)

    def _allgather_base(self, output: Any, input: Any, opts: Any) -> Work:
        for target in output.detach().view(-1).split(max(input.numel(), 1)):
            target.copy_(input.detach().reshape(-1))
        return self._done(OpType._ALLGATHER_BASE, [output])

    def allgather_into_tensor_coalesced(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
        for output, input in zip(outputs, inputs):
            self._allgather_base(output, input, opts)
        return self._done(OpType._ALLGATHER_BASE, list(outputs))

    def gather(self, outputs: Sequence[Sequence[Any]], inputs: Sequence[Any], opts: Any) -> Work:
        for targets in outputs:
            for target in targets:
                target.detach().copy_(inputs[0].detach())
        return self._done(OpType.GATHER, list(outputs))

    def scatter(self, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any) -> Work:
        if inputs:
            outputs[0].detach().copy_(inputs[0][self._rank].detach())
        return self._done(OpType.SCATTER, list(outputs))

    def reduce_scatter(self, outputs: Sequence[Any], inputs: Sequence[Sequence[Any]], opts: Any) -> Work:
        outputs[0].detach().copy_(inputs[0][self._rank].detach())
        return self._done(OpType.REDUCE_SCATTER, list(outputs))

    def _reduce_scatter_base(self, output: Any, input: Any, opts: Any) -> Work:
        part = input.detach().reshape(self._size, -1)[self._rank]
        output.detach().copy_(part.view(output.shape))
        return self._done(OpType._REDUCE_SCATTER_BASE, [output])

    def reduce_scatter_tensor_coalesced(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
        for output, input in zip(outputs, inputs):
            self._reduce_scatter_base(output, input, opts)
        return self._done(OpType._REDUCE_SCATTER_BASE, list(outputs))

    def alltoall_base(self, output: Any, input: Any, into: Sequence[int], out: Sequence[int], opts: Any) -> Work:
        if output.shape == input.shape:
            output.detach().copy_(input.detach())
        return self._done(OpType.ALLTOALL_BASE, [output])

    def alltoall(self, outputs: Sequence[Any], inputs: Sequence[Any], opts: Any) -> Work:
        for output, input in zip(outputs, inputs):
            if output.shape == input.shape:
                output.detach().copy_(input.detach())
        return self._done(OpType.ALLTOALL, list(outputs))

    def send(self, tensors: Sequence[Any], dst: int, tag: int) -> Work:
        return self._done(OpType.SEND, list(tensors))

    def recv(self, tensors: Sequence[Any], src: int, tag: int) -> Work:
        return self._done(OpType.RECV, list(tensors))

    def recv_anysource(self, tensors: Sequence[Any], tag: int) -> Work:
        return self._done(OpType.RECVANYSOURCE, list(tensors))

    def barrier(self, opts: Any) -> Work:
        return self._done(OpType.BARRIER, [])
