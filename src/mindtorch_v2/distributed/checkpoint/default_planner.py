"""The usual plans: every rank writes its pieces, what all have is written once; a rank reads what its pieces need."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

from ._nested_dict import flatten_state_dict, set_element
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, StorageMeta, TensorStorageMetadata
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .planner_helpers import create_read_items, create_write_items, data_of, is_laid_out, is_tensor

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]


class DefaultSavePlanner(SavePlanner):
    """Every rank writes its pieces; what all have is written by one."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings: dict[str, Any] = {}
        if enable_plan_caching:
            raise NotImplementedError("DefaultSavePlanner(): argument 'enable_plan_caching' must be False")
        if dedup_replicated_tensors is not None:
            raise NotImplementedError("DefaultSavePlanner(): argument 'dedup_replicated_tensors' is no longer used")

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Take the state dict, flat."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        """All that this rank has."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Without what another rank writes."""
        plans = _once(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(plans)
        if self.flatten_state_dict:
            merged: dict[str, Any] = {}
            for plan in plans:
                merged.update(plan.planner_data or {})
            metadata = dataclasses.replace(metadata, planner_data=merged)
        _check(metadata)
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Take the plan."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Any:
        """The tensor, or the bytes, of an item."""
        return data_of(self.lookup_object(write_item.index))

    def lookup_object(self, index: Any) -> Any:
        """The value of a name."""
        return self.state_dict[index.fqn]


def _once(plans: list[SavePlan], lowest: bool) -> list[SavePlan]:
    """Plans in which nothing stands twice: it is written by the rank that has least to write, or by the lowest."""
    holders: dict[Any, list[int]] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            holders.setdefault(item.index, []).append(rank)
    load = [0] * len(plans)
    taken: dict[Any, int] = {}
    for plan in plans:
        for item in plan.items:
            if item.index not in taken:
                ranks = holders[item.index]
                chosen = ranks[0] if lowest else min(ranks, key=lambda each: load[each])
                taken[item.index] = chosen
                load[chosen] += item.tensor_storage_size() or 1
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if taken[item.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def _check(metadata: Metadata) -> None:
    """Refuse pieces that do not make up their tensors."""
    for name, stored in metadata.state_dict_metadata.items():
        if isinstance(stored, BytesStorageMetadata):
            continue
        total = sum(_volume(chunk.sizes) for chunk in stored.chunks)
        if total != _volume(stored.size) or any(
            offset + size > whole
            for chunk in stored.chunks
            for offset, size, whole in zip(chunk.offsets, chunk.sizes, stored.size)
        ):
            raise ValueError(f"Failed to validate global plan: the pieces of {name} do not make up {stored.size}")


def _volume(sizes: Any) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """What a rank has: its pieces of tensors; the coordinator has everything else too."""
    items: list[WriteItem] = []
    for name, value in state_dict.items():
        if is_laid_out(value):
            empty = value.numel() == 0
            if value.device_mesh.get_coordinate() is not None:
                items.extend(item for item in create_write_items(name, value) if item.tensor_storage_size() or empty)
        elif is_tensor(value) or is_coordinator:
            items.extend(create_write_items(name, value))
    return SavePlan(items)


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """The plans with places in the lists of pieces, and what is known of all."""
    known: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            data = item.tensor_data
            if item.type == WriteItemType.BYTE_IO or data is None:
                known[item.index.fqn] = BytesStorageMetadata()
                items.append(item)
                continue
            stored = known.setdefault(item.index.fqn, TensorStorageMetadata(data.properties, data.size, []))
            if rewrite_index_hints:
                item = dataclasses.replace(item, index=dataclasses.replace(item.index, index=len(stored.chunks)))
            stored.chunks.append(ChunkStorageMetadata(data.chunk.offsets, data.chunk.sizes))
            items.append(item)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(known)


class DefaultLoadPlanner(LoadPlanner):
    """A rank reads what its pieces need, and fills the state dict in place."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.mappings: dict[str, Any] = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Take the state dict, flat."""
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """What this rank needs."""
        if self.metadata is None:
            raise AssertionError("set_up_planner was not given the checkpoint's metadata")
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """As the ranks have it."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Take the plan."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Put an object into the state dict."""
        from ... import load

        name = read_item.dest_index.fqn
        found = load(value, weights_only=False)
        self.state_dict[name] = found
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], found)

    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """The part of a tensor that an item fills."""
        found = self.lookup_tensor(read_item.dest_index)
        for dim, (start, length) in enumerate(zip(read_item.dest_offsets, read_item.lengths)):
            found = found.narrow(dim, start, length)
        return found

    def lookup_tensor(self, index: Any) -> Any:
        """This rank's piece of a tensor."""
        value = self.state_dict[index.fqn]
        return value._local_tensor.detach() if is_laid_out(value) else value.detach()

    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """It was filled where it is."""


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """What a rank needs of a checkpoint."""
    items: list[ReadItem] = []
    for name, value in state_dict.items():
        if name not in metadata.state_dict_metadata:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        stored = metadata.state_dict_metadata[name]
        if isinstance(stored, TensorStorageMetadata) and is_tensor(value) and tuple(stored.size) != tuple(value.shape):
            raise ValueError(f"Size mismatch between saved {stored.size} and current: {value.size()} for {name}")
        if is_laid_out(value) and value.device_mesh.get_coordinate() is None:
            continue
        items.extend(create_read_items(name, stored, value))
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """As the ranks have it."""
    return all_plans
