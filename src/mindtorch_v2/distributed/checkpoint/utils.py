"""Finding what an index of a plan names."""

from __future__ import annotations

from typing import Any

from .metadata import MetadataIndex
from .planner_helpers import chunk_of, is_laid_out

__all__ = ["find_state_dict_object", "find_tensor_shard"]


def find_tensor_shard(tensor: Any, index: MetadataIndex) -> Any:
    """This rank's piece of a tensor."""
    if is_laid_out(tensor):
        if index.offset is not None and tuple(index.offset) != tuple(chunk_of(tensor).offsets):
            raise ValueError(f"Could not find shard at '{index.offset}' for FQN: '{index.fqn}'")
        return tensor.to_local()
    if index.offset is not None and any(index.offset):
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return tensor


def find_state_dict_object(state_dict: dict[str, Any], index: MetadataIndex) -> Any:
    """What an index names."""
    from ... import Tensor

    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    found = state_dict[index.fqn]
    if isinstance(found, Tensor):
        return find_tensor_shard(found, index)
    if index.offset is not None:
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return found
