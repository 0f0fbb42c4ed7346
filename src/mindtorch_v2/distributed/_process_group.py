"""`Backend` serves collectives on some devices; `ProcessGroup` sends each call to the backend of its tensors' device.

Invariant: a group knows nothing of how its backends communicate, and a backend nothing of groups and global ranks.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar, cast

from .._device import device as _device
from .._torch_dispatch import mode_stack
from ._options import (
    UNSET,
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    Options,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from ._store import Store
from ._work import Work

__all__ = ["Backend", "BackendOptions", "ProcessGroup"]

Given = TypeVar("Given", bound=Options)
# Of two lists of tensors these look at the first, since only one rank has the second.
_BY_OUTPUT = ("scatter", "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced")


class BackendOptions:
    """What a backend was made with."""

    def __init__(self, backend: str, timeout: timedelta) -> None:
        self.backend, self._timeout = backend, timeout
        self.global_ranks_in_group: list[int] = []
        self.group_name = ""


def _refusal(name: str) -> Any:
    def method(self: Backend, *args: Any, **kwargs: Any) -> Work:
        raise RuntimeError(f"Backend {self.name()} does not support {name}")

    method.__name__, method.__doc__ = name, f"`{name}` of a group; a backend that can do it overrides this."
    return method


class Backend:
    """What serves collectives; one of one's own overrides those it can do."""

    __module__ = "torch.distributed"

    supports_splitting = supports_coalescing = supports_time_estimate = supports_shrinking = False
    supports_tensor_alloc = False

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._size = rank, size
        self._group_name = self._group_desc = ""

    def rank(self) -> int:
        """The rank of this process in the group."""
        return self._rank

    def size(self) -> int:
        """How many processes the group has."""
        return self._size

    def name(self) -> str:
        """The backend's name."""
        return "undefined"

    def _get_backend_name(self) -> str:
        return self.name()

    def getBackendName(self) -> str:
        """The backend's name."""
        return self.name()

    @property
    def options(self) -> BackendOptions:
        """What the backend was made with."""
        raise RuntimeError(f"Backend {self.name()} does not implement getBackendOptions.")

    broadcast: Any = _refusal("broadcast")
    allreduce: Any = _refusal("allreduce")
    allreduce_coalesced: Any = _refusal("allreduce_coalesced")
    reduce: Any = _refusal("reduce")
    allgather: Any = _refusal("allgather")
    _allgather_base: Any = _refusal("_allgather_base")
    allgather_coalesced: Any = _refusal("allgather_coalesced")
    allgather_into_tensor_coalesced: Any = _refusal("allgather_into_tensor_coalesced")
    gather: Any = _refusal("gather")
    scatter: Any = _refusal("scatter")
    reduce_scatter: Any = _refusal("reduce_scatter")
    _reduce_scatter_base: Any = _refusal("_reduce_scatter_base")
    reduce_scatter_tensor_coalesced: Any = _refusal("reduce_scatter_tensor_coalesced")
    alltoall_base: Any = _refusal("alltoall_base")
    alltoall: Any = _refusal("alltoall")
    send: Any = _refusal("send")
    recv: Any = _refusal("recv")
    recv_anysource: Any = _refusal("recv_anysource")
    barrier: Any = _refusal("barrier")
    monitored_barrier: Any = _refusal("monitoredBarrier")
    _start_coalescing: Any = _refusal("startCoalescing")
    _end_coalescing: Any = _refusal("endCoalescing")
    eager_connect_single_device: Any = _refusal("eagerConnectSingleDevice")

    def _drop_coalescing(self) -> None:
        """Forget what a coalescing has collected: an error ended it."""

    def set_timeout(self, timeout: timedelta) -> None:
        """Let operations wait that long from now on."""
        self._set_default_timeout(timeout)

    def _set_default_timeout(self, timeout: timedelta) -> None:
        raise RuntimeError(f"Backend {self.name()} does not support setting timeout")

    def _set_sequence_number_for_group(self) -> None:
        """Every member begins to count at 0."""

    def _get_sequence_number_for_group(self) -> int:
        raise RuntimeError(f"Backend {self.name()} does not yet support sequence numbers.")

    def abort(self) -> None:
        """End what is on its way."""

    def shutdown(self) -> None:
        """End connections and threads."""


def _options(kind: type[Given], given: Any, timeout: timedelta | None, **fields: Any) -> Given:
    """The options object of a call, which PyTorch lets one give whole or as arguments."""
    if isinstance(given, kind):
        return given
    made = kind()
    for name, value in fields.items():
        if value is not None:
            setattr(made, name, value)
    if timeout is not None:
        made.timeout = timeout
    return made


def _list(tensors: Any) -> list[Any]:
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


class ProcessGroup:
    """Processes that communicate with each other, and the backends by which they do it."""

    __module__ = "torch.distributed.distributed_c10d"

    class BackendType(enum.IntEnum):
        """What kind of backend serves a group."""

        UNDEFINED = 0
        GLOO = 1
        NCCL = 2
        UCC = 3
        MPI = 4
        XCCL = 5
        CUSTOM = 6

    UNDEFINED, GLOO, NCCL, UCC = BackendType.UNDEFINED, BackendType.GLOO, BackendType.NCCL, BackendType.UCC
    MPI, XCCL, CUSTOM = BackendType.MPI, BackendType.XCCL, BackendType.CUSTOM

    def __init__(self, *arguments: Any) -> None:
        """`ProcessGroup(rank, size)` or `ProcessGroup(store, rank, size)`."""
        store, rank, size = arguments if len(arguments) == 3 else (None, *arguments)
        self._store: Store | None = store
        self._rank, self._size = int(rank), int(size)
        self._backends: dict[str, Any] = {}
        self._default_type = ProcessGroup.BackendType.UNDEFINED
        self._types: dict[ProcessGroup.BackendType, Any] = {}
        self._name = self._desc = ""
        self.bound_device_id: _device | None = None

    def rank(self) -> int:
        """The rank of this process in the group."""
        return self._rank

    def size(self) -> int:
        """How many processes the group has."""
        return self._size

    def name(self) -> str:
        """The name of the default backend."""
        return cast(str, self._default_backend().name())

    def _get_backend_name(self) -> str:
        return self.name()

    @property
    def group_name(self) -> str:
        """The name under which all members know the group."""
        return self._name

    @property
    def group_desc(self) -> str:
        """What the group is for, in its maker's words."""
        return self._desc

    def _set_group_name(self, name: str) -> None:
        self._name = name
        for backend in self._unique():
            backend._group_name = name

    def _set_group_desc(self, desc: str) -> None:
        self._desc = desc
        for backend in self._unique():
            backend._group_desc = desc

    def get_group_store(self) -> Store:
        """The store of this group."""
        if self._store is None:
            raise RuntimeError("the group was made without a store")
        return self._store

    @property
    def _device_types(self) -> list[_device]:
        return [_device(kind) for kind in self._backends]

    def _unique(self) -> list[Any]:
        return list({id(backend): backend for backend in self._backends.values()}.values())

    def _register_backend(self, device: Any, backend_type: BackendType, backend: Any = None) -> None:
        if backend is None:
            backend = self._types[backend_type]
        self._backends[_device(device).type] = self._types[backend_type] = backend

    def _set_default_backend(self, backend_type: BackendType) -> None:
        self._default_type = backend_type

    def _default_backend(self) -> Any:
        found = self._types.get(self._default_type)
        if found is None:
            found = next(iter(self._backends.values()), None)
        if found is None:
            raise RuntimeError(f"Could not find the default backend type {int(self._default_type)} for Process Group.")
        return found

    def _get_backend(self, device: Any) -> Any:
        kind = _device(device).type
        if kind not in self._backends:
            raise RuntimeError(f"No backend type associated with device type {kind}")
        return self._backends[kind]

    def _backend_id(self, backend_type: BackendType) -> int:
        return id(self._types.get(backend_type))

    def _id(self) -> int:
        return id(self)

    def _has_hooks(self) -> bool:
        return False

    def _of_nothing(self) -> Any:
        """For tensors without data: shapes and dtypes are all there is."""
        from ._fake import FakeProcessGroup

        return FakeProcessGroup(self._rank, self._size)

    def _for(self, *tensors: Any) -> Any:
        """The backend of the first tensor's device, however deep it lies in lists."""
        for found in tensors:
            while isinstance(found, (list, tuple)) and found:
                found = found[0]
            if not isinstance(found, (list, tuple)):
                return self._of_nothing() if found.is_meta else self._get_backend(found.device)
        return self._default_backend()

    def _serve(self, name: str, *arguments: Any) -> Work:
        """Have the backend do it. What goes out decides on which device, or what comes in where nothing goes out."""
        first, second = arguments[0], arguments[1]
        own = isinstance(second, Options) or name in _BY_OUTPUT
        return cast(Work, getattr(self._for(*((first,) if own else (second, first))), name)(*arguments))

    def _ask(self, name: str, *arguments: Any) -> Work:
        """Have the backend do it; modes that look at operators see it first."""
        if mode_stack():
            from ._c10d_ops import asked

            return cast(Work, asked(self, name, arguments))
        return self._serve(name, *arguments)

    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, root: Any = None) -> Work:
        """Give the root's tensor to all."""
        root = opts if isinstance(opts, int) else root
        options = _options(BroadcastOptions, opts, timeout, rootRank=root)
        return self._ask("broadcast", _list(tensors), options)

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, op: Any = None) -> Work:
        """Reduce the tensors of all, for all."""
        op = opts if isinstance(opts, ReduceOp) else op
        options = _options(AllreduceOptions, opts, timeout, reduceOp=op)
        return self._ask("allreduce", _list(tensors), options)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        """`allreduce` of several tensors in one step."""
        options = _options(AllreduceCoalescedOptions, opts, None)
        return self._ask("allreduce_coalesced", _list(tensors), options)

    def reduce(
        self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None, root: Any = None
    ) -> Work:
        """Reduce the tensors of all, for the root."""
        root = opts if isinstance(opts, int) and not isinstance(opts, ReduceOp) else root
        options = _options(ReduceOptions, opts, timeout, rootRank=root, reduceOp=op)
        return self._ask("reduce", _list(tensors), options)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Give everybody the tensors of all."""
        if not isinstance(inputs, (list, tuple)):
            outputs, inputs = [outputs], [inputs]
        options = _options(AllgatherOptions, opts, timeout)
        return self._ask("allgather", outputs, inputs, options)

    def _allgather_base(self, output: Any, input: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        options = _options(AllgatherOptions, opts, timeout)
        return self._ask("_allgather_base", output, input, options)

    all_gather_single = _allgather_base

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """`allgather` of several tensors in one step."""
        options = _options(AllgatherOptions, opts, None)
        return self._ask("allgather_coalesced", outputs, inputs, options)

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """`all_gather_single` of several tensors in one step."""
        options = _options(AllgatherOptions, opts, None)
        return self._ask("allgather_into_tensor_coalesced", outputs, inputs, options)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def gather(
        self, outputs: Any, inputs: Any, opts: Any = None, timeout: timedelta | None = None, root: Any = None
    ) -> Work:
        """Give the root the tensors of all."""
        if not isinstance(inputs, (list, tuple)):
            outputs, inputs = [outputs] if outputs else [], [inputs]
        root = opts if isinstance(opts, int) else root
        options = _options(GatherOptions, opts, timeout, rootRank=root)
        return self._ask("gather", outputs, inputs, options)

    def scatter(
        self, outputs: Any, inputs: Any, opts: Any = None, timeout: timedelta | None = None, root: Any = None
    ) -> Work:
        """Give everybody one of the root's tensors."""
        if not isinstance(outputs, (list, tuple)):
            outputs, inputs = [outputs], [inputs] if inputs else []
        root = opts if isinstance(opts, int) else root
        options = _options(ScatterOptions, opts, timeout, rootRank=root)
        return self._ask("scatter", outputs, inputs, options)

    def reduce_scatter(
        self, outputs: Any, inputs: Any, opts: Any = None, timeout: timedelta | None = None, op: Any = None
    ) -> Work:
        """Reduce the lists of all, and give everybody one entry."""
        if not isinstance(outputs, (list, tuple)):
            outputs, inputs = [outputs], [inputs]
        op = opts if isinstance(opts, ReduceOp) else op
        options = _options(ReduceScatterOptions, opts, timeout, reduceOp=op)
        return self._ask("reduce_scatter", outputs, inputs, options)

    def _reduce_scatter_base(self, output: Any, input: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        options = _options(ReduceScatterOptions, opts, timeout)
        return self._ask("_reduce_scatter_base", output, input, options)

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """`reduce_scatter_single` of several tensors in one step."""
        options = _options(ReduceScatterOptions, opts, None)
        return self._ask("reduce_scatter_tensor_coalesced", outputs, inputs, options)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def alltoall_base(
        self,
        output: Any,
        input: Any,
        output_split_sizes: Sequence[int] = (),
        input_split_sizes: Sequence[int] = (),
        opts: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Give every rank its part of one tensor."""
        options = _options(AllToAllOptions, opts, timeout)
        return self._ask("alltoall_base", output, input, list(output_split_sizes), list(input_split_sizes), options)

    all_to_all_single = alltoall_base

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Give every rank one tensor of a list."""
        options = _options(AllToAllOptions, opts, timeout)
        return self._ask("alltoall", outputs, inputs, options)

    def send(self, tensors: Any, dstRank: int, tag: int) -> Work:
        """Send to one rank."""
        return cast(Work, self._for(tensors).send(_list(tensors), dstRank, tag))

    def recv(self, tensors: Any, srcRank: int, tag: int) -> Work:
        """Receive from one rank."""
        return cast(Work, self._for(tensors).recv(_list(tensors), srcRank, tag))

    def recv_anysource(self, tensors: Any, tag: int) -> Work:
        """Receive from whoever sends first."""
        return cast(Work, self._for(tensors).recv_anysource(_list(tensors), tag))

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Wait until all are here."""
        options = _options(BarrierOptions, opts, timeout)
        device = options.device
        backend = self._get_backend(device) if device is not None else self._backends.get("cpu")
        return cast(Work, (backend or self._default_backend()).barrier(options))

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait until all are here; the error names who is not."""
        self._get_backend("cpu").monitored_barrier(UNSET if timeout is None else timeout, wait_all_ranks)

    def _start_coalescing(self, device: Any) -> None:
        self._get_backend(device)._start_coalescing()

    def _end_coalescing(self, device: Any) -> Work:
        return cast(Work, self._get_backend(device)._end_coalescing())

    def _set_sequence_number_for_group(self) -> None:
        self._default_backend()._set_sequence_number_for_group()

    def _get_sequence_number_for_group(self) -> int:
        return cast(int, self._default_backend()._get_sequence_number_for_group())

    def _wait_for_pending_works(self) -> None:
        """Hooks on finished works wait for nothing: there are none."""

    def set_timeout(self, timeout: timedelta) -> None:
        """Let operations of all backends wait that long from now on."""
        for backend in self._unique():
            backend.set_timeout(timeout)

    def shutdown(self) -> None:
        """End connections and threads of all backends."""
        for backend in self._unique():
            backend.shutdown()

    def abort(self) -> None:
        """End what is on its way, in all backends."""
        for backend in self._unique():
            backend.abort()

    def boxed(self) -> Any:
        """This group: there is no other language to hand it to."""
        return self

    @staticmethod
    def unbox(boxed: Any) -> ProcessGroup:
        """The group that `boxed` gave."""
        if not isinstance(boxed, ProcessGroup):
            raise TypeError(f"unbox(): expected a ProcessGroup, got {type(boxed).__name__}")
        return boxed
