"""`DeviceMesh`: the ranks of a job as an array, with a group for every line along every dimension.

Invariant: all ranks make the same meshes in the same order, and so the same groups.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

from .. import _dtype as _t
from . import distributed_c10d as dist

__all__ = ["DeviceMesh", "init_device_mesh"]


class _MeshEnv:
    """The meshes that are entered with `with`."""

    mesh_stack: list[DeviceMesh] = []

    @classmethod
    def get_current_mesh(cls) -> DeviceMesh:
        if not cls.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return cls.mesh_stack[-1]


_mesh_resources = _MeshEnv


class DeviceMesh:
    """Ranks in an array. `mesh["dp"]` is the part of it along a named dimension that this rank is in."""

    __module__ = "torch.distributed.device_mesh"

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Sequence[Any] | None = None,
        _init_backend: bool = True,
        _root: DeviceMesh | None = None,
    ) -> None:
        from .. import Tensor, tensor

        self._device_type = device_type
        self.mesh = mesh.detach().to(_t.int32).cpu() if isinstance(mesh, Tensor) else tensor(mesh, dtype=_t.int32)
        self._names = tuple(mesh_dim_names) if mesh_dim_names is not None else None
        self._backends = list(backend_override or ())
        self._root = _root
        self._groups: list[Any] = []
        self._flattened: dict[str, DeviceMesh] = {}
        if not dist.is_initialized():
            dist.init_process_group()
        world = dist.get_world_size()
        if self.mesh.numel() > world:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {world}, but found {self.mesh.numel()} ranks!"
            )
        where = (self.mesh == dist.get_rank()).nonzero()
        if where.shape[0] not in (0, 1):
            raise AssertionError(f"rank_coords.size(0) must be 0 or 1, got {where.shape[0]}")
        # Ranks that are threads have groups of their own: their meshes are not each other's.
        self._thread_id = threading.get_ident() if dist.get_backend() == "threaded" else None
        self._coordinate = where[0].tolist() if where.shape[0] else None
        if _init_backend:
            self._make_groups()

    def _make_groups(self) -> None:
        ranks = self.mesh.flatten().tolist()
        if self.ndim == 1 and ranks == list(range(dist.get_world_size())) and not self._backends:
            self._groups.append(dist._get_default_group())
            return
        for dim in range(self.ndim):
            lines = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim]).tolist()
            name = self._names[dim] if self._names else f"dim_{dim}"
            given = self._backends[dim] if dim < len(self._backends) else None
            backend, options = given if isinstance(given, tuple) else (given, None)
            mine: Any = None
            for line in lines:
                made = dist.new_group(line, backend=backend, pg_options=options, group_desc=f"mesh_{name}")
                if dist.get_rank() in line:
                    mine = made
            self._groups.append(mine)

    @property
    def device_type(self) -> str:
        """The kind of device that the ranks use."""
        return self._device_type

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of the dimensions."""
        return self._names

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return int(self.mesh.dim())

    @property
    def shape(self) -> tuple[int, ...]:
        """How many ranks there are along each dimension."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, in all or along a dimension."""
        return int(self.mesh.numel() if mesh_dim is None else self.mesh.shape[mesh_dim])

    def _get_root_mesh(self) -> DeviceMesh:
        return self if self._root is None else self._root

    def _dim(self, dim: int | str) -> int:
        if isinstance(dim, int):
            return dim
        if self._names is None or dim not in self._names:
            raise KeyError(f"Mesh dimension '{dim}' does not exist. Available mesh dimensions are: {self._names}")
        return self._names.index(dim)

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group of this rank along a dimension."""
        if not self._groups:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions",
                    "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
                    "If you want to get the list of all the ProcessGroups in the DeviceMesh,"
                    "please use `get_all_groups()` instead.",
                )
            return self._groups[0]
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """The groups of this rank, one for each dimension."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_rank(self) -> int:
        """This process's global rank."""
        return dist.get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This rank's place along a dimension."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
            )
        return dist.get_rank(self.get_group(0 if mesh_dim is None else mesh_dim))

    def get_coordinate(self) -> list[int] | None:
        """This rank's place along all dimensions; None if it is not in the mesh."""
        return list(self._coordinate) if self._coordinate is not None else None

    def _sym_get_coordinate(self, dim: int) -> int:
        if self._coordinate is None:
            raise RuntimeError("this rank is not in the mesh")
        return int(self._coordinate[dim])

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        if self._names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if wanted == self._names:
            return self
        root = self._get_root_mesh()
        if len(wanted) == 1 and wanted[0] in root._flattened:
            return root._flattened[wanted[0]]
        for name in wanted:
            if name not in self._names:
                raise KeyError(
                    f"Invalid mesh_dim_names {wanted} specified. Valid mesh_dim_names are "
                    f"{[*self._names, *root._flattened]}."
                )
        dims = [self._names.index(name) for name in wanted]
        return self._part(dims, wanted)

    def _part(self, dims: list[int], names: tuple[str, ...]) -> DeviceMesh:
        if self._coordinate is None:
            raise RuntimeError("this rank is not in the mesh, and in no part of it")
        others = [dim for dim in range(self.ndim) if dim not in dims]
        moved = self.mesh.permute(*others, *dims)
        for dim in others:
            moved = moved[self._coordinate[dim]]
        root = self._get_root_mesh()
        made = DeviceMesh(self._device_type, moved, mesh_dim_names=names, _init_backend=False, _root=root)
        made._groups = [self._groups[dim] for dim in dims]
        return made

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """A mesh of one dimension with all ranks of this part."""
        if self._names is None:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._names)
        root = self._get_root_mesh()
        if name in root._flattened:
            return root._flattened[name]
        others = [dim for dim in range(root.ndim) if root._names is None or root._names[dim] not in self._names]
        inner = [dim for dim in range(root.ndim) if dim not in others]
        lines = root.mesh.permute(*others, *inner).reshape(-1, self.mesh.numel())
        backends = (backend_override,) if backend_override is not None else None
        made = [
            DeviceMesh(self._device_type, line, mesh_dim_names=(name,), backend_override=backends, _root=root)
            for line in lines
        ]
        for mesh in made:
            if mesh._coordinate is not None:
                root._flattened[name] = mesh
        return root._flattened[name]

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None
    ) -> DeviceMesh:
        """A mesh of groups that exist."""
        groups = list(group) if isinstance(group, (list, tuple)) else [group]
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if mesh is None:
            if len(groups) > 1:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            mesh = dist.get_process_group_ranks(groups[0])
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if made.ndim != len(groups):
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {made.mesh.tolist()} and "
                f"{len(groups)} ProcessGroups"
            )
        made._groups = groups
        return made

    def __enter__(self) -> DeviceMesh:
        _MeshEnv.mesh_stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _MeshEnv.mesh_stack.pop()

    def __repr__(self) -> str:
        shape = (
            f"({', '.join(f'{name}={size}' for name, size in zip(self._names, self.shape))})"
            if self._names
            else f"{self.shape}"
        )
        strides = tuple(self.mesh.contiguous().stride())
        return f"DeviceMesh({shape}, '{self.device_type}', stride={strides})"

    def _key(self) -> tuple[Any, ...]:
        return self._device_type, tuple(self.mesh.flatten().tolist()), self.shape, self._names, self._thread_id

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._key() == other._key())


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: dict[Any, Any] | None = None,
) -> DeviceMesh:
    """A mesh of all ranks in their order."""
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! "
                f"Found len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    from .. import arange

    names = mesh_dim_names or ()
    given = backend_override or {}
    overrides = [given.get(dim, given.get(names[dim]) if names else None) for dim in range(len(mesh_shape))]
    ranks = arange(math.prod(mesh_shape), dtype=_t.int32).view(tuple(mesh_shape))
    return DeviceMesh(
        device_type,
        ranks,
        mesh_dim_names=mesh_dim_names,
        backend_override=overrides if any(each is not None for each in overrides) else None,
    )
