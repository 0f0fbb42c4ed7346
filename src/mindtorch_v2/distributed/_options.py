"""Small types of collectives: how to reduce, the options of each call, how much is checked.

Invariant: an options object holds what PyTorch's holds, with PyTorch's defaults; it does nothing.
"""

from __future__ import annotations

import enum
import os
from datetime import timedelta
from typing import Any

from .._device import device as _device

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "BarrierOptions",
    "BroadcastOptions",
    "DebugLevel",
    "GatherOptions",
    "OpType",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "UNSET",
    "get_debug_level",
    "red_op",
    "set_debug_level",
    "set_debug_level_from_env",
]

# A timeout that was not given: the group's holds.
UNSET = timedelta(milliseconds=-1)


class RedOpType(enum.IntEnum):
    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class _AnyReduction(type):
    """`ReduceOp.SUM` is an instance of `ReduceOp`, though its type is `ReduceOp.RedOpType`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, RedOpType)


class ReduceOp(metaclass=_AnyReduction):
    """How values of several processes become one."""

    __module__ = "torch.distributed.distributed_c10d"

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX = RedOpType.SUM, RedOpType.AVG, RedOpType.PRODUCT, RedOpType.MIN, RedOpType.MAX
    BAND, BOR, BXOR, PREMUL_SUM = RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR, RedOpType.PREMUL_SUM

    def __init__(self, op: Any = RedOpType.SUM, _factor: Any = None) -> None:
        self.op: Any = red_op(op)
        self.factor = _factor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (ReduceOp, RedOpType)) and self.op == red_op(other)

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return f"<torch.distributed.distributed_c10d.ReduceOp object: {self.op}>"

    def __reduce__(self) -> Any:
        return ReduceOp, (self.op, self.factor)


def red_op(op: Any) -> RedOpType:
    """The kind of a reduction, however it was given."""
    kind = op.op if type.__instancecheck__(ReduceOp, op) else op
    if not isinstance(kind, RedOpType):
        raise TypeError(f"expected a torch.distributed.ReduceOp, got {type(op).__name__}")
    return kind


class OpType(enum.IntEnum):
    BROADCAST = 0
    ALLREDUCE = 1
    ALLREDUCE_COALESCED = 2
    REDUCE = 3
    ALLGATHER = 4
    _ALLGATHER_BASE = 5
    ALLGATHER_COALESCED = 6
    GATHER = 7
    SCATTER = 8
    REDUCE_SCATTER = 9
    ALLTOALL_BASE = 10
    ALLTOALL = 11
    SEND = 12
    RECV = 13
    RECVANYSOURCE = 14
    BARRIER = 15
    _REDUCE_SCATTER_BASE = 16
    COALESCED = 17
    _ALLREDUCE_SPARSE = 18
    UNKNOWN = 100


class ErrorType(enum.IntEnum):
    """How a backend is."""

    SUCCESS = 0
    TIMEOUT = 1
    COMM_ERROR = 2
    REMOTE_ERROR = 3


class WorkResult(enum.IntEnum):
    """How an operation has ended."""

    SUCCESS = 0
    TIMEOUT = 1
    COMM_ERROR = 2
    UNKNOWN = 100


class WorkInfo:
    """What a hook on the end of operations is told; no backend here calls one."""

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self) -> None:
        raise TypeError("torch.distributed.WorkInfo: No constructor defined!")


def _make_nccl_premul_sum(factor: Any) -> ReduceOp:
    """A sum of values that are multiplied by a factor first."""
    return ReduceOp(RedOpType.PREMUL_SUM, factor)


class Options:
    """What every call takes."""

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self) -> None:
        self.timeout = UNSET
        self.asyncOp = True


class AllgatherOptions(Options):
    __module__ = "torch.distributed.distributed_c10d"


class AllToAllOptions(Options):
    __module__ = "torch.distributed.distributed_c10d"


class BarrierOptions(Options):
    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self) -> None:
        super().__init__()
        self.device_ids: list[int] = []
        self.device: _device | None = None


class _Rooted(Options):
    def __init__(self) -> None:
        super().__init__()
        self.rootRank = 0


class BroadcastOptions(_Rooted):
    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self) -> None:
        super().__init__()
        self.rootTensor = 0


class GatherOptions(_Rooted):
    __module__ = "torch.distributed.distributed_c10d"


class ScatterOptions(_Rooted):
    __module__ = "torch.distributed.distributed_c10d"


_SUM = ReduceOp()


class _Reducing(Options):
    def __init__(self) -> None:
        super().__init__()
        self._op = _SUM

    @property
    def reduceOp(self) -> ReduceOp:
        """How values of several processes become one."""
        return self._op

    @reduceOp.setter
    def reduceOp(self, op: Any) -> None:
        self._op = op if type.__instancecheck__(ReduceOp, op) else ReduceOp(op)


class AllreduceOptions(_Reducing):
    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self) -> None:
        super().__init__()
        self.sparseIndices: Any = None


class AllreduceCoalescedOptions(AllreduceOptions):
    __module__ = "torch.distributed.distributed_c10d"


class ReduceScatterOptions(_Reducing):
    __module__ = "torch.distributed.distributed_c10d"


class ReduceOptions(_Reducing):
    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self) -> None:
        super().__init__()
        self.rootRank = 0
        self.rootTensor = 0


class DebugLevel(enum.Enum):
    """How much is checked and said (TORCH_DISTRIBUTED_DEBUG)."""

    OFF = 0
    INFO = 1
    DETAIL = 2


class _Debug:
    level: DebugLevel | None = None


def set_debug_level(level: DebugLevel) -> None:
    """Set how much is checked."""
    _Debug.level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Read TORCH_DISTRIBUTED_DEBUG again."""
    text = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper() or "OFF"
    if text not in DebugLevel.__members__:
        raise ValueError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    _Debug.level = DebugLevel[text]


def get_debug_level() -> DebugLevel:
    """How much is checked."""
    if _Debug.level is None:
        set_debug_level_from_env()
    assert _Debug.level is not None
    return _Debug.level
