"""Telling all datapipes of a graph how to shuffle, which seed to take, and which part of the work is theirs."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import mindtorch_v2 as torch

from .datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from .graph import DataPipeGraph, traverse_dps

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes"]


def get_all_graph_pipes(graph: DataPipeGraph) -> list[Any]:
    """Every datapipe of a graph once, outermost first."""
    return _each(graph, set())


def _each(graph: DataPipeGraph, seen: set[int]) -> list[Any]:
    found: list[Any] = []
    for number, (datapipe, below) in graph.items():
        if number not in seen:
            seen.add(number)
            found.append(datapipe)
            found.extend(_each(below, seen))
    return found


def _has(datapipe: Any, *names: str) -> bool:
    return all(inspect.ismethod(getattr(datapipe, name, None)) for name in names)


def _is_sharding_datapipe(datapipe: Any) -> bool:
    return isinstance(datapipe, _ShardingIterDataPipe) or _has(datapipe, "apply_sharding")


def _is_shuffle_datapipe(datapipe: Any) -> bool:
    return _has(datapipe, "set_shuffle", "set_seed")


def _is_random_datapipe(datapipe: Any) -> bool:
    return _has(datapipe, "set_seed")


def apply_sharding(
    datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = SHARDING_PRIORITIES.DEFAULT
) -> Any:
    """Let every sharding datapipe give only the part of this instance; two on one way are an error."""

    def apply(graph: DataPipeGraph, before: Any = None) -> None:
        for pipe, below in graph.values():
            applied = before
            if _is_sharding_datapipe(pipe):
                if before is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                        f"Sharding already applied to {before} while trying to apply to {pipe}"
                    )
                if len(inspect.signature(pipe.apply_sharding).parameters) < 3:
                    pipe.apply_sharding(num_of_instances, instance_id)
                else:
                    pipe.apply_sharding(num_of_instances, instance_id, sharding_group=sharding_group)
                applied = pipe
            apply(below, applied)

    apply(traverse_dps(datapipe))
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turn every shuffler on or off; where there is none, one is added at the end."""
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _is_shuffle_datapipe(pipe)]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware "
            "that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """The former name of `apply_random_seed`."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. Please use "
        "`apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Give every random datapipe a seed drawn from one generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _is_random_datapipe(pipe):
            pipe.set_seed(int(torch.empty((), dtype=torch.int64).random_(generator=rng).item()))
    return datapipe
