"""What is known of a tensor on a mesh without its data: the mesh, how it lies along it, the shape of the whole.

Invariant: a spec never changes; a dimension of the tensor that several dimensions of the mesh split is split by the
first of them first, except by a strided split, which comes last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard

__all__ = ["DTensorSpec", "TensorMeta"]


class TensorMeta(NamedTuple):
    """Shape, strides and dtype of the whole tensor."""

    shape: Any
    stride: tuple[int, ...]
    dtype: Any


class ShardOrderEntry(NamedTuple):
    """Which dimensions of a mesh split a dimension of a tensor, the first of them first."""

    tensor_dim: int
    mesh_dims: tuple[int, ...]


ShardOrder = tuple[ShardOrderEntry, ...]


@dataclass(frozen=True)
class DTensorSpec:
    """How a tensor lies on a mesh."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    tensor_meta: TensorMeta

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self.mesh

    @property
    def shape(self) -> Any:
        """The shape of the whole."""
        return self.tensor_meta.shape

    @property
    def stride(self) -> tuple[int, ...]:
        """The strides of the whole."""
        return self.tensor_meta.stride

    @property
    def ndim(self) -> int:
        """The rank of the whole."""
        return len(self.tensor_meta.shape)

    @property
    def num_shards(self) -> int:
        """In how many parts the tensor is split."""
        parts = 1
        for at, placement in enumerate(self.placements):
            if placement.is_shard():
                parts *= self.mesh.size(at)
        return parts

    def is_replicated(self) -> bool:
        """Whether every rank has the whole."""
        return all(each.is_replicate() for each in self.placements)

    def is_sharded(self) -> bool:
        """Whether it is split along any dimension."""
        return any(each.is_shard() for each in self.placements)

    def __str__(self) -> str:
        shown = "".join(str(each) for each in self.placements)
        return f"Spec({shown} on {tuple(self.shape)})"


def split_order(placements: tuple[Placement, ...]) -> list[int]:
    """The dimensions of the mesh that split the tensor, in the order in which they split it."""
    split = [at for at, each in enumerate(placements) if isinstance(each, Shard)]
    return sorted(split, key=lambda at: isinstance(placements[at], _StridedShard))


def local_box(shape: Any, mesh: DeviceMesh, placements: tuple[Placement, ...], place: Any = None) -> Any:
    """Shape and offset of the part of a tensor that lies at a place of the mesh: this rank's, if none is given."""
    place = mesh.get_coordinate() if place is None else place
    sizes, starts = list(shape), [0] * len(shape)
    if place is None:
        return [0], [0]
    for at in split_order(placements):
        placement = placements[at]
        assert isinstance(placement, Shard)
        size, start = Shard.local_shard_size_and_offset(sizes[placement.dim], mesh.size(at), place[at])
        starts[placement.dim] += start
        sizes[placement.dim] = size
    return sizes, starts


def whole_shape(local: Any, mesh: DeviceMesh, placements: tuple[Placement, ...]) -> tuple[list[int], list[int]]:
    """Shape and strides of the whole, if all ranks have parts of the shape of `local`."""
    shape, stride = list(local.shape), list(local.stride())
    for at, placement in enumerate(placements):
        if isinstance(placement, Shard):
            if placement.dim >= len(shape):
                raise AssertionError(
                    f"Sharding dim {placement.dim} greater than tensor ndim {len(shape)} for placement number {at}."
                )
            own = shape[placement.dim]
            shape[placement.dim] = own * mesh.size(at)
            for dim, step in enumerate(stride):
                if dim != placement.dim and step >= stride[placement.dim] and own:
                    stride[dim] = step * mesh.size(at)
        elif not isinstance(placement, (Replicate, Partial)):
            raise RuntimeError(f"placement type {type(placement)} not supported!")
    return shape, stride


def normalized(placements: Any, ndim: int, mesh: DeviceMesh) -> tuple[Placement, ...]:
    """Placements with dimensions counted from the front; one for each dimension of the mesh."""
    given = [Replicate() for _ in range(mesh.ndim)] if placements is None else list(placements)
    if len(given) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(given)}, "
            f"and device_mesh.ndim: {mesh.ndim}."
        )
    out: list[Placement] = []
    for each in given:
        if isinstance(each, Shard) and each.dim < 0:
            each = (
                _StridedShard(each.dim + ndim, each.split_factor)
                if isinstance(each, _StridedShard)
                else Shard(each.dim + ndim)
            )
        out.append(each)
    return tuple(out)
