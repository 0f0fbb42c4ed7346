"""`save` and `async_save`."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..._device import device
from .. import distributed_c10d as dist
from ._steps import Together
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .metadata import Metadata
from .planner import SavePlanner
from .staging import AsyncStager, DefaultStager, StagingOptions
from .stateful import Stateful
from .storage import StorageWriter

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """Who writes while the program goes on."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """When the state dict was copied, and when it is written."""

    staging_completion: Future[None]
    upload_completion: Future[None]


def alone(no_dist: bool, doing: str) -> bool:
    """Whether one process works by itself."""
    if no_dist or not dist.is_initialized():
        warnings.warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to "
            f"{doing} in a single process.",
            stacklevel=3,
        )
        return True
    return False


def stateful(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The state dict, with the state dicts of the objects in it."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


def writer_for(checkpoint_id: Any, storage_writer: StorageWriter | None) -> StorageWriter:
    if storage_writer is not None:
        storage_writer.reset(checkpoint_id)
        return storage_writer
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    return FileSystemWriter(checkpoint_id, single_file_per_rank=True)


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Write a state dict whose tensors lie on many ranks; all ranks call this."""
    if not use_collectives:
        raise NotImplementedError("save(): argument 'use_collectives' must be True")
    use_dist = not alone(no_dist, "save")
    writer = writer_for(checkpoint_id, storage_writer)
    return _saved(stateful(state_dict), writer, planner, Together(process_group, use_dist))


def _saved(state_dict: dict[str, Any], writer: StorageWriter, planner: SavePlanner | None, ranks: Together) -> Metadata:
    chosen = planner or DefaultSavePlanner()
    known: list[Metadata] = []

    def local_step() -> Any:
        chosen.set_up_planner(state_dict, writer.storage_meta(), ranks.is_coordinator)
        writer.set_up_storage_writer(ranks.is_coordinator)
        return writer.prepare_local_plan(chosen.create_local_plan())

    def global_step(plans: list[Any]) -> list[Any]:
        made, metadata = chosen.create_global_plan(plans)
        known.append(metadata)
        return writer.prepare_global_plan(made)

    plan = ranks.reduce_scatter("plan", local_step, global_step)

    def write() -> Any:
        done = writer.write_data(chosen.finish_plan(plan), chosen)
        done.wait()
        return done.value()

    def finish(results: list[Any]) -> Metadata:
        writer.finish(known[0], results)
        return known[0]

    return ranks.all_reduce("write", write, finish)  # type: ignore[no-any-return]


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Any:
    """`save` in a thread, of a copy that a stager makes. The group must not be used for other things meanwhile."""
    if async_checkpointer_type is not AsyncCheckpointerType.THREAD:
        raise NotImplementedError("async_save(): argument 'async_checkpointer_type' must be THREAD")
    if dist.is_initialized() and device("cpu") not in (process_group or dist._get_default_group())._device_types:
        raise AssertionError(
            "A CPU backend must be enabled for async save; try initializing process group with 'cpu:gloo,cuda:nccl'"
        )
    stager = async_stager
    if stager is None:
        given = storage_writer if isinstance(storage_writer, AsyncStager) else None
        stager = given or DefaultStager(StagingOptions(False, False, False, False))
    staged = stager.stage(stateful(state_dict))

    def write() -> Metadata:
        return save(
            staged.result() if isinstance(staged, Future) else staged,
            checkpoint_id=checkpoint_id,
            storage_writer=storage_writer,
            planner=planner,
            process_group=process_group,
            no_dist=no_dist,
            use_collectives=use_collectives,
        )

    pool = ThreadPoolExecutor(max_workers=1)
    done: Any = pool.submit(write)
    pool.shutdown(wait=False)
    if not isinstance(staged, Future):
        if stager.should_synchronize_after_execute:
            stager.synchronize_staging()
        return done
    there: Future[None] = Future()

    def tell(copy: Future[Any]) -> None:
        error = copy.exception()
        if error is None:
            there.set_result(None)
        else:
            there.set_exception(error)

    staged.add_done_callback(tell)
    return AsyncSaveResponse(there, done)


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """The former name of `save`."""
    warnings.warn(
        "'save_state_dict' is deprecated and will be removed in future versions. Please use 'save' instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_writer.reset()
    use_dist = not no_dist and dist.is_initialized()
    return _saved(state_dict, storage_writer, planner, Together(process_group, use_dist, coordinator_rank))
