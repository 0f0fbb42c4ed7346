"""What is known of a checkpoint: which tensors there are, in which pieces, and where these are stored.

Invariant: these classes are pickled into `.metadata` under PyTorch's names, with the fields that PyTorch's have.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ... import contiguous_format, get_default_dtype, strided
from ..._size import Size

__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]


@dataclass
class ChunkStorageMetadata:
    """A piece of a tensor."""

    offsets: Any
    sizes: Any


class _MEM_FORMAT_ENCODING(Enum):
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


def _formats() -> list[Any]:
    from ... import channels_last, preserve_format

    return [contiguous_format, channels_last, preserve_format]


@dataclass
class TensorProperties:
    """What a tensor is made with."""

    dtype: Any = field(default_factory=get_default_dtype)
    layout: Any = field(default=strided)
    requires_grad: bool = False
    memory_format: Any = field(default=contiguous_format)
    pin_memory: bool = False

    def __getstate__(self) -> Any:
        form = _MEM_FORMAT_ENCODING(_formats().index(self.memory_format))
        return self.dtype, self.layout, self.requires_grad, form, self.pin_memory

    def __setstate__(self, state: Any) -> None:
        self.dtype, self.layout, self.requires_grad, form, self.pin_memory = state
        self.memory_format = _formats()[form.value]

    @staticmethod
    def create_from_tensor(tensor: Any) -> TensorProperties:
        """Those of a tensor."""
        return TensorProperties(
            tensor.dtype, tensor.layout, tensor.requires_grad, contiguous_format, tensor.is_pinned()
        )


@dataclass
class TensorStorageMetadata:
    """A tensor, in pieces."""

    properties: TensorProperties
    size: Any
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Anything else."""


@dataclass
class StorageMeta:
    """Which checkpoint, saving and loading it was."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """A checkpoint."""

    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of something that is stored: of a tensor, the piece that begins at an offset."""

    fqn: str
    offset: Any = None
    # Where in the list of pieces it stands, if known; it does not count in comparisons.
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else Size(offset))
