"""`load`: the pieces that each rank needs, from however many ranks wrote them."""

from __future__ import annotations

import os
import warnings
from typing import Any

from .. import distributed_c10d as dist
from ._steps import Together
from .default_planner import DefaultLoadPlanner
from .filesystem import FileSystemReader
from .planner import LoadPlanner
from .state_dict_saver import alone, stateful
from .stateful import Stateful
from .storage import StorageReader

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fill a state dict in place; all ranks call this, with what they want."""
    use_dist = not alone(no_dist, "load")
    if storage_reader is None:
        if not checkpoint_id:
            raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
        storage_reader = FileSystemReader(checkpoint_id)
    else:
        storage_reader.reset(checkpoint_id)
    ranks = Together(process_group, use_dist)
    keys = list(state_dict)
    if use_dist:
        # Objects that save themselves may talk to other ranks: all are asked in one order.
        keys = sorted({key for part in ranks._gather(keys) for key in part})
    wanted = stateful({key: state_dict[key] for key in keys if key in state_dict})
    _loaded(wanted, storage_reader, planner, ranks)
    for key in keys:
        if key not in state_dict:
            continue
        target = state_dict[key]
        if isinstance(target, Stateful):
            target.load_state_dict(wanted[key])
        else:
            state_dict[key] = wanted[key]


def _loaded(state_dict: dict[str, Any], reader: StorageReader, planner: LoadPlanner | None, ranks: Together) -> None:
    chosen = planner or DefaultLoadPlanner()

    def local_step() -> Any:
        metadata = reader.read_metadata()
        chosen.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return reader.prepare_local_plan(chosen.create_local_plan())

    def global_step(plans: list[Any]) -> list[Any]:
        return reader.prepare_global_plan(chosen.create_global_plan(plans))

    plan = ranks.reduce_scatter("plan", local_step, global_step)

    def read() -> None:
        reader.read_data(chosen.finish_plan(plan), chosen).wait()

    ranks.all_reduce("read", read, lambda results: None)


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """The former name of `load`."""
    warnings.warn(
        "'load_state_dict' is deprecated and will be removed in future versions. Please use 'load' instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_reader.reset()
    use_dist = not no_dist and dist.is_initialized()
    _loaded(state_dict, storage_reader, planner, Together(process_group, use_dist, coordinator_rank))
