"""`DeviceMesh`: the ranks of a job as an array, with a group for every line along every dimension.

Invariant: all ranks make the same meshes in the same order, and so the same groups.
"""

from __future__ import annotations

import math
import os
import threading
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from .. import _dtype as _t
from . import distributed_c10d as dist

__all__ = ["DeviceMesh", "init_device_mesh"]


class _MeshEnv(threading.local):
    """The meshes that are entered with `with`."""

    def __init__(self) -> None:
        self.mesh_stack: list[DeviceMesh] = []

    def get_current_mesh(self) -> DeviceMesh:
        if not self.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.mesh_stack[-1]


_mesh_resources = _MeshEnv()

# A dimension, as (size, stride) of its factors, the outermost first: positions in the root's list of ranks. One that is
# made of several may have several, one of a single rank has none.
Axis = tuple[tuple[int, int], ...]


def _length(axis: Axis) -> int:
    return math.prod(size for size, _ in axis)


def _offsets(axis: Axis) -> list[int]:
    """Positions along a dimension."""
    found = [0]
    for size, stride in axis:
        found = [each + at * stride for each in found for at in range(size)]
    return found


def _merged(axes: Iterable[Axis]) -> Axis:
    """Several dimensions as one; neighbours that lie behind each other are one factor."""
    found: list[tuple[int, int]] = []
    for size, stride in (factor for axis in axes for factor in axis):
        if size == 1:
            continue
        if found and found[-1][1] == size * stride:
            found[-1] = (found[-1][0] * size, stride)
        else:
            found.append((size, stride))
    return tuple(found)


def _overlap(axes: Sequence[Axis]) -> bool:
    """Whether different places have the same position."""
    seen = [0]
    for axis in axes:
        seen = [each + more for each in seen for more in _offsets(axis)]
    return len(set(seen)) != len(seen)


def _split(axis: Axis, sizes: Sequence[int]) -> list[Axis]:
    """One dimension as several: each takes its part of the factors, the last one from the innermost."""
    rest = list(axis)
    found: list[Axis] = []
    for size in reversed(sizes):
        own: list[tuple[int, int]] = []
        while size > 1:
            have, stride = rest.pop()
            take = math.gcd(size, have)
            if take != min(size, have):
                raise ValueError(f"a dimension with sizes and strides {axis} cannot be cut into {tuple(sizes)}")
            own.insert(0, (take, stride))
            size //= take
            if have > take:
                rest.append((have // take, stride * take))
        found.insert(0, _merged([tuple(own)]))
    return found


class DeviceMesh:
    """Ranks in an array. `mesh["dp"]` is the part of it along a named dimension that this rank is in."""

    __module__ = "torch.distributed.device_mesh"

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Sequence[Any] | None = None,
        _init_backend: bool = True,
        _rank: int | None = None,
        _axes: Sequence[Axis] | None = None,
        _root: DeviceMesh | None = None,
    ) -> None:
        from .. import Tensor, tensor

        self._device_type = device_type
        if _axes is None:
            if mesh is None:
                raise TypeError("The mesh argument is required except for PRIVATE USAGE ONLY!")
            ranks = mesh.detach().to(_t.int32).cpu() if isinstance(mesh, Tensor) else tensor(mesh, dtype=_t.int32)
            ranks = ranks.contiguous()
            self._rank_map: tuple[int, ...] = tuple(ranks.flatten().tolist())
            pairs = zip(ranks.shape, ranks.stride())
            self._axes: tuple[Axis, ...] = tuple(_merged([((size, step),)]) for size, step in pairs)
        else:
            assert _root is not None
            self._rank_map, self._axes = _root._rank_map, tuple(_axes)
        self._names = tuple(mesh_dim_names) if mesh_dim_names else None
        if backend_override is not None and len(backend_override) != self.ndim:
            raise ValueError(
                "backend_override should have the same length as the number of mesh dimensions, but got "
                f"{len(backend_override)} and {self.ndim}."
            )
        self._root = _root
        self._groups: list[Any] | None = None
        self._flattened: dict[str, DeviceMesh] = {}
        if _init_backend:
            self._check_world()
        self._rank = dist.get_rank() if _rank is None else _rank
        self._coordinate = self._place()
        # Ranks that are threads have groups of their own: their meshes are not each other's.
        threads = dist.is_initialized() and dist.get_backend() == "threaded"
        self._thread_id = threading.get_ident() if threads else None
        if _init_backend:
            backends = backend_override or [None] * self.ndim
            names = self._names or [f"dim_{dim}" for dim in range(self.ndim)]
            self._groups = self._make_groups(self._axes, names, backends)

    def _check_world(self) -> None:
        if not dist.is_initialized():
            dist.init_process_group()
        world = dist.get_world_size()
        if self.size() > world:
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {world}, but found {self.size()} ranks!"
            )

    def _place(self) -> tuple[int, ...] | None:
        """This rank's place along all dimensions."""
        times = self._rank_map.count(self._rank)
        if times > 1:
            raise AssertionError(f"rank_coords.size(0) must be 0 or 1, got {times}")
        if not times:
            return None
        position = self._rank_map.index(self._rank)
        found = []
        for axis in self._axes:
            at = 0
            for size, stride in axis:
                at = at * size + position // stride % size
            found.append(at)
        return tuple(found)

    def _make_groups(self, axes: Sequence[Axis], names: Sequence[str], backends: Sequence[Any]) -> list[Any]:
        """Groups for all lines of the root's ranks along dimensions; those of this rank."""
        whole = len(axes) == 1 and _length(axes[0]) == dist.get_world_size() and len(self._axes) == 1
        if whole and self._rank_map == tuple(range(dist.get_world_size())) and backends[0] in (None, (None, None)):
            return [dist._get_default_group()]
        groups = []
        for axis, name, given in zip(axes, names, backends):
            backend, options = given if isinstance(given, tuple) else (given, None)
            offsets, mine = _offsets(axis), None
            for base in range(len(self._rank_map)):
                if any(base // stride % size for size, stride in axis):
                    continue
                line = [self._rank_map[base + offset] for offset in offsets]
                made = dist.new_group(line, backend=backend, pg_options=options, group_desc=f"mesh_{name}")
                if self._rank in line:
                    mine = made
            groups.append(mine)
        return groups

    @property
    def mesh(self) -> Any:
        """The ranks."""
        from .. import tensor

        base = 0
        if _length(_merged(self._axes)) != len(self._rank_map):
            if self._coordinate is None:
                raise RuntimeError(
                    "In order to get the mesh Tensor of a DeviceMesh it needs to either have all its original "
                    "dimensions (e.g., no slicing) or it needs to contain the local rank"
                )
            base = self._rank_map.index(self._rank)
            base -= sum(_offsets(axis)[at] for axis, at in zip(self._axes, self._coordinate))
        positions = [base]
        for axis in self._axes:
            positions = [each + more for each in positions for more in _offsets(axis)]
        return tensor([self._rank_map[each] for each in positions], dtype=_t.int32, device="cpu").view(self.shape)

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
        return len(self._axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many ranks there are along each dimension."""
        return tuple(_length(axis) for axis in self._axes)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, in all or along a dimension."""
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    def _get_root_mesh(self) -> DeviceMesh:
        return self if self._root is None else self._root

    def _dim(self, dim: int | str) -> int:
        if isinstance(dim, int):
            return dim
        return self._get_mesh_dim_by_name(dim)

    def _get_mesh_dim_by_name(self, mesh_dim_name: str) -> int:
        if not self._names:
            raise KeyError("No `mesh_dim_names` found.")
        if mesh_dim_name not in self._names:
            raise KeyError(
                f"Mesh dimension '{mesh_dim_name}' does not exist.",
                f"Available mesh dimensions are: mesh_dim_names={self._names}",
            )
        return self._names.index(mesh_dim_name)

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The group of this rank along a dimension."""
        if self._groups is None:
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
        flattened = self._get_root_mesh()._flattened
        if isinstance(mesh_dim, str) and mesh_dim in flattened:
            return flattened[mesh_dim].get_group()
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

    def get_coordinate(self) -> tuple[int, ...] | None:
        """This rank's place along all dimensions; None if it is not in the mesh."""
        return self._coordinate

    def _is_current_rank_part_of_mesh(self) -> bool:
        return self._coordinate is not None

    def _sym_get_coordinate(self, index: int) -> int:
        if self._coordinate is None:
            raise AssertionError
        return self._coordinate[index]

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        if not self._names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._names:
            return self
        flattened = self._flattened if self == self._get_root_mesh() else {}
        valid = [*self._names, *flattened]
        if not all(name in valid for name in names):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {valid}.")
        parts = []
        for name in names:
            if name not in self._names:
                warnings.warn(
                    "Slicing a flattened dim from root mesh will be deprecated in PT 2.11. "
                    "Users need to bookkeep the flattened mesh directly. ",
                    stacklevel=2,
                )
            home, dim = (self, self._names.index(name)) if name in self._names else (flattened[name], 0)
            parts.append((home._axes[dim], None if home._groups is None else home._groups[dim]))
        axes = [axis for axis, _ in parts]
        strides = [stride for axis in axes for size, stride in axis if size > 1]
        if strides != sorted(strides, reverse=True):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        if _overlap(axes):
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        return self._derived(axes, names, None if self._groups is None else [group for _, group in parts])

    def _derived(self, axes: Sequence[Axis], names: Sequence[str], groups: list[Any] | None) -> DeviceMesh:
        """A mesh of the same root, whose groups exist."""
        root = self._get_root_mesh()
        made = DeviceMesh(self._device_type, mesh_dim_names=names, _init_backend=False, _axes=axes, _root=root)
        made._groups = groups
        return made

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """A mesh of one dimension with all ranks of this part."""
        if not self._names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._names)
        if self.ndim == 1 and name in self._names:
            return self
        root = self._get_root_mesh()
        if name in (root._names or ()):
            raise ValueError(
                f"{name} already exists for submesh of the {root}. ",
                f"The mesh_dim_names of submesh and flattened mesh are {root._names}. Please specify another valid "
                "mesh_dim_name.",
            )
        axes = (_merged(self._axes),)
        if name not in root._flattened:
            given = None if backend_override is None else _backends({0: backend_override}, 1, None)
            root._flattened[name] = DeviceMesh(
                self._device_type, mesh_dim_names=(name,), backend_override=given, _axes=axes, _root=root
            )
        elif root._flattened[name]._axes != axes:
            raise ValueError(
                f"Flatten mesh with mesh_dim_name {name} has been created before, Please specify another valid "
                "mesh_dim_name."
            )
        return root._flattened[name]

    def _unflatten(
        self,
        dim: int | str,
        mesh_sizes: tuple[int, ...],
        mesh_dim_names: tuple[str, ...],
        backend_override: dict[Any, Any] | None = None,
    ) -> DeviceMesh:
        """A mesh in which several dimensions take the place of one."""
        names = self._names or ()
        if isinstance(dim, int) and dim >= self.ndim:
            raise ValueError(f"dim {dim} specified in `_unflatten` is out of range {self.ndim}")
        if isinstance(dim, str) and dim not in names:
            raise ValueError(f"dim {dim} specified in `_unflatten` is not in {self._names}")
        if len(mesh_sizes) != len(mesh_dim_names):
            raise RuntimeError("mesh_dim_names must have same length as mesh_sizes in _unflatten!")
        at = names.index(dim) if isinstance(dim, str) else dim
        if math.prod(mesh_sizes) != self.shape[at]:
            raise ValueError(
                f"The product of {mesh_sizes=} is {math.prod(mesh_sizes)}, but the original dimension at dim={at} has "
                f"size {self.shape[at]}. These must be equal for unflatten to work correctly."
            )
        inner = _split(self._axes[at], mesh_sizes)
        axes = (*self._axes[:at], *inner, *self._axes[at + 1 :])
        groups = None
        if self._groups is not None:
            given = _backends(backend_override or {}, len(mesh_sizes), mesh_dim_names)
            made = self._make_groups(inner, mesh_dim_names, given)
            groups = [*self._groups[:at], *made, *self._groups[at + 1 :]]
        return self._derived(axes, (*names[:at], *mesh_dim_names, *names[at + 1 :]), groups)

    @staticmethod
    def _concatenate(device_mesh_list: list[DeviceMesh]) -> DeviceMesh:
        """Parts of one mesh, as one with all their dimensions."""
        first = device_mesh_list[0]
        if any(each._rank_map != first._rank_map for each in device_mesh_list):
            raise RuntimeError("Cannot concatenate DeviceMeshes derived from different device meshs")
        axes = [axis for each in device_mesh_list for axis in each._axes]
        if _overlap(axes):
            raise RuntimeError(f"Cannot concatenate overlapping meshes: {device_mesh_list}")
        names = [name for each in device_mesh_list for name in each._names or ()]
        return first._derived(axes, names, [group for each in device_mesh_list for group in each._groups or ()])

    def _get_all_submeshes(self, mesh_dim_name: str) -> list[DeviceMesh]:
        """The lines along a dimension, each as a mesh."""
        dim = self._get_mesh_dim_by_name(mesh_dim_name)
        lines = self.mesh.movedim(dim, -1).reshape(-1, self.shape[dim])
        found = []
        for line in lines:
            made = DeviceMesh(self._device_type, line, mesh_dim_names=(mesh_dim_name,), _init_backend=False)
            inside = made._coordinate is not None and self._groups is not None
            made._groups = [self._groups[dim]] if inside and self._groups is not None else []
            found.append(made)
        return found

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None
    ) -> DeviceMesh:
        """A mesh of groups that exist."""
        if isinstance(group, dist.ProcessGroup):
            ranks = dist.get_process_group_ranks(group)
            if mesh is not None and (mesh.tolist() if hasattr(mesh, "tolist") else mesh) != ranks:
                raise ValueError(f"Invalid mesh {str(mesh)} for ProcessGroup with ranks {ranks}")
            made = DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _init_backend=False)
            made._groups = [group]
            return made
        groups = list(group)
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        if mesh_dim_names is None:
            raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if made.ndim != len(groups):
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {made.mesh.tolist()} and "
                f"{len(groups)} ProcessGroups"
            )
        made._groups = groups
        return made

    def __enter__(self) -> DeviceMesh:
        _mesh_resources.mesh_stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _mesh_resources.mesh_stack.pop()

    def __repr__(self) -> str:
        shape = (
            f"({', '.join(f'{name}={size}' for name, size in zip(self._names, self.shape))})"
            if self._names
            else f"{self.shape}"
        )
        steps = (tuple(stride for _, stride in axis) for axis in self._axes)
        strides = tuple(each[0] if len(each) == 1 else each for each in steps)
        told = f", Mesh: {self.mesh.tolist()}" if os.environ.get("TORCH_DISTRIBUTED_DEBUG", "") == "DETAIL" else ""
        return f"DeviceMesh({shape}, '{self.device_type}', stride={strides}{told})"

    def _key(self) -> tuple[Any, ...]:
        return self._rank_map, self._axes, self._device_type, self._names, self._thread_id

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

    return DeviceMesh(
        device_type,
        arange(math.prod(mesh_shape), dtype=_t.int32, device="cpu").view(tuple(mesh_shape)),
        mesh_dim_names=mesh_dim_names,
        backend_override=(
            None if backend_override is None else _backends(backend_override, len(mesh_shape), mesh_dim_names)
        ),
    )


def _backends(given: dict[Any, Any], ndim: int, names: Sequence[str] | None) -> list[tuple[Any, Any]]:
    """A backend and its options for each dimension, which are named by number or name."""
    left, found = dict(given), []
    for dim in range(ndim):
        name = names[dim] if names else None
        if name is not None and name in left and dim in left:
            raise RuntimeError(f"Found redundant dim index {dim} and name {name} in backend_override")
        value = left.pop(name, None) if name in left else left.pop(dim, None)
        pair = value if isinstance(value, tuple) else (value, None) if isinstance(value, str) else (None, value)
        found.append(pair)
    if left:
        raise RuntimeError(
            f"Found invalid keys in backend_override: got {list(left)}, expected integers in range [0, {ndim}) or one "
            f"of {tuple(names or ())}"
        )
    return found
