"""Objects of all ranks: what one rank raises, all raise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import distributed_c10d as dist

__all__ = ["SyncPayload", "all_gather", "all_gather_object_enforce_type", "broadcast"]


@dataclass
class SyncPayload:
    """What a rank has to say, or why it cannot."""

    stage_name: str | None
    success: bool
    payload: Any
    exception: Exception | None = None

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


def _called(data_or_fn: Any, stage_name: str | None, success: bool = True) -> SyncPayload:
    """A value, or what a function gives or raises."""
    if not callable(data_or_fn):
        return SyncPayload(stage_name, success, data_or_fn)
    try:
        return SyncPayload(stage_name, success, data_or_fn())
    except Exception as error:
        return SyncPayload(stage_name, False, None, error)


def broadcast(
    data_or_fn: Any, *, success: bool = True, stage_name: str | None = None, rank: int = 0, pg: Any = None
) -> Any:
    """Give one rank's value, or what its function returns, to all."""
    if not success and data_or_fn is not None:
        raise AssertionError("Data or Function is expected to be None if not successful")
    mine = rank == 0 if pg is None else pg.rank() == rank
    told = _called(data_or_fn, stage_name, success) if mine else SyncPayload(stage_name, success, None)
    if pg is not None:
        told_to_all = [told]
        dist.broadcast_object_list(told_to_all, src=rank, group=pg)
        told = told_to_all[0]
    if not told.success:
        stage = "" if stage_name is None else f": stage {told.stage_name}"
        why = "" if told.exception is None else f": exception {told.exception}"
        raise RuntimeError(f"Rank {rank} failed{stage}{why}") from told.exception
    return told.payload


def all_gather(data_or_fn: Any, stage_name: str | None = None, pg: Any = None) -> list[Any]:
    """The values of all, or what their functions return."""
    told = _called(data_or_fn, stage_name)
    if pg is None:
        if not told.success:
            raise RuntimeError(f"all_gather failed with exception {told.exception}") from told.exception
        return [told.payload]
    known: list[Any] = [None] * dist.get_world_size(pg)
    all_gather_object_enforce_type(pg, known, told)
    text, failed, found = "", [], []
    for rank, each in enumerate(known):
        if each.stage_name != known[0].stage_name:
            text += f"Unexpected stage name received from rank {rank}: {each.stage_name} "
        elif not each.success and each.exception is not None:
            failed.append((rank, each.exception))
        else:
            found.append(each.payload)
    if failed:
        raise RuntimeError(text, failed) from failed[0][1]
    return found


def all_gather_object_enforce_type(
    pg: Any,
    object_list: list[Any],
    obj: Any,
    type_checker: Callable[[Any, Any], bool] = lambda x, y: type(x) is type(y),
) -> None:
    """`all_gather_object` of objects of one type."""
    dist.all_gather_object(object_list, obj, group=pg)
    for at, each in enumerate(object_list):
        if not type_checker(object_list[0], each):
            raise TypeError(
                f"Object type at index {at} is {type(each)}, while first object type is {type(object_list[0])}"
            )
