"""Items of plans: for tensors, for tensors of a mesh, for anything else."""

from __future__ import annotations

import io
from typing import Any

from ..._size import Size
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, MetadataIndex, TensorProperties, TensorStorageMetadata
from .planner import LoadItemType, ReadItem, TensorWriteData, WriteItem, WriteItemType

__all__ = ["create_read_items_for_chunk_list"]


def is_tensor(value: Any) -> bool:
    from ... import Tensor

    return isinstance(value, Tensor)


def is_laid_out(value: Any) -> bool:
    """Whether it is a tensor of a mesh."""
    from ..tensor import DTensor

    return isinstance(value, DTensor)


def chunk_of(tensor: Any) -> ChunkStorageMetadata:
    """The piece of a tensor that this rank has."""
    if not is_laid_out(tensor):
        return ChunkStorageMetadata(Size([0] * tensor.dim()), Size(tensor.shape))
    from ..tensor._dtensor_spec import local_box

    sizes, offsets = local_box(tensor._spec.shape, tensor._spec.mesh, tensor._spec.placements)
    return ChunkStorageMetadata(Size(offsets), Size(sizes))


def create_write_items(fqn: str, value: Any) -> list[WriteItem]:
    """What is written of a value."""
    if not is_tensor(value):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)]
    if is_laid_out(value) and any(each.is_partial() for each in value.placements):
        raise ValueError(f"{fqn}: a tensor that is still to be reduced ({value.placements}) is not saved")
    chunk = chunk_of(value)
    kind = WriteItemType.SHARD if is_laid_out(value) else WriteItemType.TENSOR
    data = TensorWriteData(chunk, TensorProperties.create_from_tensor(_local(value)), Size(value.shape))
    return [WriteItem(MetadataIndex(fqn, chunk.offsets), kind, tensor_data=data)]


def _local(value: Any) -> Any:
    return value.to_local().detach() if is_laid_out(value) else value.detach()


def data_of(value: Any) -> Any:
    """What is written of it: a plain tensor, or bytes."""
    if is_tensor(value):
        return _local(value)
    from ... import save

    stream = io.BytesIO()
    save(value, stream)
    return stream


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """The parts of stored pieces that make up this rank's."""
    items = []
    for at, mine in enumerate(local_chunks):
        for stored_at, stored in enumerate(checkpoint_md.chunks):
            both = list(zip(mine.offsets, mine.sizes, stored.offsets, stored.sizes))
            starts = [max(a, b) for a, _, b, _ in both]
            lengths = [min(a + n, b + m) - start for (a, n, b, m), start in zip(both, starts)]
            if any(length <= 0 for length in lengths):
                continue
            items.append(
                ReadItem(
                    type=LoadItemType.TENSOR,
                    dest_index=MetadataIndex(fqn, mine.offsets, at),
                    dest_offsets=Size([start - a for start, a in zip(starts, mine.offsets)]),
                    storage_index=MetadataIndex(fqn, stored.offsets, stored_at),
                    storage_offsets=Size([start - b for start, b in zip(starts, stored.offsets)]),
                    lengths=Size(lengths),
                )
            )
    return items


def create_read_items(fqn: str, stored: Any, value: Any) -> list[ReadItem]:
    """What is read for a value."""
    if isinstance(stored, BytesStorageMetadata):
        index, nothing = MetadataIndex(fqn), Size((0,))
        return [ReadItem(LoadItemType.BYTE_IO, index, nothing, index, nothing, nothing)]
    if not is_tensor(value):
        raise ValueError(
            f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found {type(stored)}"
        )
    return create_read_items_for_chunk_list(fqn, stored, [chunk_of(value)])


def _create_write_items_for_dtensor(fqn: str, tensor: Any) -> WriteItem:
    return create_write_items(fqn, tensor)[0]


def _create_chunk_from_dtensor(tensor: Any) -> ChunkStorageMetadata:
    return chunk_of(tensor)
