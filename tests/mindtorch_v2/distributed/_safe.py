"""Checkpoints of safetensors on several ranks."""

from __future__ import annotations

import importlib
from typing import Any

WAYS: dict[str, dict[str, Any]] = {
    "whole": {},
    "by file": {"fqn_to_index_mapping": {"w": 1, "b": 2, "n": 1}},
    "pieces": {"save_distributed": True},
    "made whole": {
        "save_distributed": True,
        "enable_consolidation": True,
        "fqn_to_index_mapping": {"w": 1, "b": 2, "n": 2},
    },
}


def tools(torch: Any) -> tuple[Any, Any, Any]:
    name = torch.__name__
    rooms = ("distributed.checkpoint", "distributed.checkpoint.hf_storage", "distributed.tensor")
    one, two, three = (importlib.import_module(f"{name}.{room}") for room in rooms)
    return one, two, three


def state(torch: Any, tensor: Any, mesh: Any, filled: bool) -> dict[str, Any]:
    """A tensor that is split unevenly, one that is whole, and one of whole numbers."""
    scale = 1 if filled else 0
    w = torch.arange(15.0).reshape(5, 3) * scale
    n = torch.arange(6).reshape(2, 3) * scale
    split = tensor.distribute_tensor(w, mesh, [tensor.Shard(0)]) if mesh is not None else w
    return {"w": split, "b": torch.arange(3.0).to(torch.bfloat16) * scale, "n": n}


def save(torch: Any, dist: Any, rank: int, size: int, folder: str, how: str) -> None:
    checkpoint, storage, tensor = tools(torch)
    pieces = "save_distributed" in WAYS[how]
    mesh = dist.init_device_mesh("cpu", (size,)) if pieces else None
    if pieces or rank == 0:  # files of whole tensors are written by one rank
        writer = storage.HuggingFaceStorageWriter(folder, **WAYS[how])
        checkpoint.save(state(torch, tensor, mesh, True), storage_writer=writer, no_dist=not pieces)
    dist.barrier()


def load(torch: Any, dist: Any, rank: int, size: int, folder: str) -> Any:
    checkpoint, storage, tensor = tools(torch)
    found = state(torch, tensor, dist.init_device_mesh("cpu", (size,)), False)
    checkpoint.load(found, storage_reader=storage.HuggingFaceStorageReader(folder))
    return found["w"].full_tensor().tolist(), found["b"].tolist(), found["n"].tolist()
