"""Other parameters and other state in an optimiser, for the time of a `with` block.

Invariant: everything is checked before anything is swapped, and after the block the optimiser is as it was.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .._tensor import Tensor
from .optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state"


def _checked_state(state: Any) -> dict[Any, Any]:
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param "
            f"state dicts, got {type(state).__name__}."
        )
    if any(isinstance(key, Tensor) for key in state):
        raise RuntimeError(f"{_NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids.")
    if any(isinstance(key, int) and not isinstance(value, dict) for key, value in state.items()):
        raise RuntimeError(f"{_NAME} requires per-parameter optimizer state entries to be dictionaries.")
    return state


def _checked_group(number: int, live: dict[str, Any], group: Any) -> list[int]:
    """The numbers of the group's parameters."""
    if not isinstance(group, dict):
        raise RuntimeError(f"{_NAME} requires each optimizer param group to be a dictionary.")
    ids = group.get("params")
    if not isinstance(ids, list) or not all(isinstance(each, int) for each in ids):
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed by packed "
            "parameter ids."
        )
    if len(live["params"]) != len(ids):
        raise RuntimeError(
            f"swapin_optim_state param group {number} has a different number of params than the live optimizer param "
            "group."
        )
    only_new, only_live = [k for k in group if k not in live], [k for k in live if k not in group]
    if only_new or only_live:
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer "
            f"group keys for group {number}. Keys only in swap-in: {only_new}. Keys only in live: {only_live}."
        )
    return ids


def _prepared(optimizer: Optimizer, parameters: dict[str, Tensor], new: Any) -> tuple[Any, list[dict[str, Any]]]:
    """What `state` becomes, and the groups, with the given parameters in them."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(new, dict):
        raise RuntimeError(f"{_NAME} requires a DCP-style optimizer state_dict.")
    saved = _checked_state(new.get("state"))
    groups = new.get("param_groups")
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, got "
            f"{type(groups).__name__}."
        )
    if len(optimizer.param_groups) != len(groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    left = list(parameters.values())
    state: defaultdict[Any, Any] = defaultdict(dict)
    filled = []
    seen: set[int] = set()
    for number, (live, group) in enumerate(zip(optimizer.param_groups, groups)):
        ids = _checked_group(number, live, group)
        seen.update(ids)
        if len(ids) > len(left):
            raise RuntimeError(
                f"{_NAME} requires the explicit parameter state to match optimizer.param_groups ordering."
            )
        params, left = left[: len(ids)], left[len(ids) :]
        for param, each in zip(params, ids):
            state[param] = dict(saved.get(each, {}))
        filled.append({**group, "params": params})
    extra = [key for key in saved if key not in seen]
    if extra:
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {extra!r}."
        )
    return state, filled


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Within the block `optimizer` holds these parameters, in the order of its groups, and this saved state."""
    state, groups = _prepared(optimizer, swapin_parameters, swapin_optim_state)
    old_state, old_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        for live, group in zip(optimizer.param_groups, groups):
            live.update(group)
        optimizer.state = state
        yield
    finally:
        for live, old in zip(optimizer.param_groups, old_groups):
            live.clear()
            live.update(old)
        optimizer.state = old_state
