"""Checkpoints in a directory as one file of `torch.save`, and back."""

from __future__ import annotations

import os
from typing import Any

from ..._unserved import offer as _offer
from ._nested_dict import unflatten_state_dict
from .filesystem import FileSystemReader
from .metadata import TensorStorageMetadata
from .state_dict_loader import load
from .state_dict_saver import save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Read a checkpoint whole, and write it as one file."""
    from ... import empty
    from ... import save as write

    metadata = FileSystemReader(dcp_checkpoint_dir).read_metadata()
    flat: dict[str, Any] = {}
    for name, stored in metadata.state_dict_metadata.items():
        is_tensor = isinstance(stored, TensorStorageMetadata)
        flat[name] = empty(stored.size, dtype=stored.properties.dtype) if is_tensor else None
    ways = metadata.planner_data or {name: (name,) for name in flat}
    nested = unflatten_state_dict(flat, ways)
    load(nested, checkpoint_id=dcp_checkpoint_dir, no_dist=True)
    write(nested, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Read one file, and write it as a checkpoint."""
    from ... import load as read

    save(read(torch_save_path, weights_only=False), checkpoint_id=dcp_checkpoint_dir, no_dist=True)


_offer(
    __name__,
    "",
    "BroadcastingTorchSaveReader DynamicMetaLoadPlanner",
    "{name} is not served; torch_save_to_dcp converts a file",
)
