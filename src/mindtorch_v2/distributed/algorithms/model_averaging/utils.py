"""The mean of parameters over the processes of a group.

Invariant: parameters without a gradient are left alone; all others are replaced by one all-reduce.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ....nn.parameter import Parameter
from ... import distributed_c10d as dist

__all__ = ["average_parameters", "get_params_to_average", "average_parameters_or_parameter_groups"]


def average_parameters(params: Iterator[Any], process_group: Any) -> None:
    """Replace parameters by their mean over a group."""
    from .... import cat

    group = dist.group.WORLD if process_group is None else process_group
    if dist._rank_not_in_group(group):
        return
    kept = list(params)
    flat = cat([each.data.reshape(-1) for each in kept])
    flat /= dist.get_world_size(group)
    dist.all_reduce(flat, group=group)
    begin = 0
    for each in kept:
        end = begin + each.numel()
        each.data = flat[begin:end].view_as(each).type_as(each)
        begin = end


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """Those of a model's parameters, or of an optimizer's groups, that have a gradient."""
    found: list[Any] = []
    for each in params:
        if isinstance(each, Parameter):
            found.append(each)
        elif isinstance(each, dict):
            found.extend(each["params"])
        else:
            raise NotImplementedError(f"Parameter input of type {type(each)} is not supported")
    return [each for each in found if each.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """Replace the parameters that have a gradient by their mean over a group."""
    average_parameters(iter(get_params_to_average(params)), process_group)
