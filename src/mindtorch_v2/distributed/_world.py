"""The groups that this process knows: the default one, those made after it, and whose ranks they hold.

Invariant: this is the only state of `torch.distributed` in a process; making and destroying groups (`_groups`) is all
that changes it.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any, NewType

from ._backend_name import Backend, BackendConfig
from ._process_group import ProcessGroup
from ._store import Store
from .constants import default_pg_nccl_timeout, default_pg_timeout

GroupName = NewType("GroupName", str)
_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


class _World:
    """What is known of groups."""

    def __init__(self) -> None:
        self.default_pg: ProcessGroup | None = None
        self.pg_map: dict[Any, tuple[Any, Store]] = {}
        self.pg_names: dict[Any, str] = {}
        self.pg_group_ranks: dict[Any, dict[int, int]] = {}
        self.pg_backend_config: dict[Any, str] = {}
        self.pg_to_tag: dict[Any, str] = {}
        self.tags_to_pg: dict[str, list[Any]] = {}
        self.pg_coalesce_state: dict[Any, list[Any]] = {}
        self.group_count = 0
        self.comms: list[Any] = []

    @property
    def pg_config_info(self) -> list[dict[str, Any]]:
        """Names, sizes and ranks of all groups."""
        return [
            {
                "pg_name": self.pg_names[pg],
                "pg_desc": pg.group_desc,
                "backend_config": self.pg_backend_config[pg],
                "ranks": list(self.pg_group_ranks[pg]),
                "group_size": pg.size(),
                "group_count": self.group_count,
            }
            for pg in self.pg_map
        ]


# Test tools put a world for each thread here, by `distributed_c10d._world`.
_world = _World()


# Groups that were given a name from outside.
registered: Any = {}


def forget_all() -> None:
    """There are no groups any more."""
    registered.clear()
    _world.default_pg = None
    for name in ("pg_map", "pg_names", "pg_group_ranks", "pg_backend_config", "pg_to_tag", "tags_to_pg"):
        getattr(_world, name).clear()
    _world.pg_coalesce_state.clear()
    _world.group_count = 0


def forget(pg: Any) -> None:
    """There is no such group any more."""
    for name in ("pg_map", "pg_names", "pg_group_ranks", "pg_backend_config", "pg_coalesce_state"):
        getattr(_world, name).pop(pg, None)
    tag = _world.pg_to_tag.pop(pg, None)
    for each in (tag, "") if tag is not None else ():
        if pg in _world.tags_to_pg.get(each, ()):
            _world.tags_to_pg[each].remove(pg)


class _WorldMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes."""
        return _world.default_pg

    @WORLD.setter
    def WORLD(cls, pg: ProcessGroup | None) -> None:
        _world.default_pg = pg


class group(metaclass=_WorldMeta):
    """`group.WORLD` is the group of all processes."""

    __module__ = "torch.distributed.distributed_c10d"


class GroupMember(metaclass=_WorldMeta):
    """`GroupMember.NON_GROUP_MEMBER` is what a process gets that is not in a group."""

    __module__ = "torch.distributed.distributed_c10d"

    NON_GROUP_MEMBER = -100


def _get_default_timeout(backend: Any) -> timedelta:
    if backend == Backend.NCCL and isinstance(default_pg_nccl_timeout, timedelta):
        return default_pg_nccl_timeout
    return default_pg_timeout


def _check_valid_timeout(timeout: Any) -> None:
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def is_initialized() -> bool:
    """Whether there is a default group."""
    return _world.default_pg is not None


def is_torchelastic_launched() -> bool:
    """Whether torchelastic (torchrun) started this process."""
    return os.getenv("TORCHELASTIC_RUN_ID") is not None


def is_gloo_available() -> bool:
    """True: CPU tensors are served by this package itself."""
    return True


def is_nccl_available() -> bool:
    """False: there is no CUDA here."""
    return False


def is_ucc_available() -> bool:
    """False."""
    return False


def is_xccl_available() -> bool:
    """False: there is no XPU here."""
    return False


def is_hccl_available() -> bool:
    """Whether the vendor's communication library, or the emulator's, is there."""
    from .._backends.npu.hccl import available

    return available()


def is_mpi_available() -> bool:
    """Whether mpi4py is installed, with an MPI library below it."""
    from ._mpi import is_mpi_available as available

    return available()


def is_backend_available(backend: str) -> bool:
    """Whether a backend, or every one of "cpu:gloo,npu:hccl", can be made."""
    if ":" in backend.lower():
        return all(_available(str(name)) for name in BackendConfig(Backend(backend)).device_backend_map.values())
    return _available(backend)


def _available(name: str) -> bool:
    question = globals().get(f"is_{name.lower()}_available")
    return bool(question()) if question is not None else name.lower() in Backend.backend_list


def _rank_not_in_group(group: Any) -> bool:
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def _check_group(group: Any) -> None:
    """What is no group at all is refused before anything is asked of it."""
    if group is not None and not isinstance(group, ProcessGroup) and group != GroupMember.NON_GROUP_MEMBER:
        raise ValueError(
            f"Process group {group} is not initialized in the world group map. Please initialize the group first."
        )


def _get_default_group() -> ProcessGroup:
    if _world.default_pg is None:
        raise ValueError(_NOT_INITIALIZED)
    return _world.default_pg


def _get_default_store() -> Store:
    return _world.pg_map[_get_default_group()][1]


def _group_or_default_group(group: Any = None) -> Any:
    if group is None or group is GroupMember.WORLD:
        return _get_default_group()
    return group


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in a group of a global rank."""
    if group is GroupMember.WORLD:
        return global_rank
    ranks = _ranks_of(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group: Any, group_rank: int) -> int:
    """The global rank of a rank in a group."""
    if group is GroupMember.WORLD:
        return group_rank
    for rank, inside in _ranks_of(group).items():
        if inside == group_rank:
            return rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


def _ranks_of(group: Any) -> dict[int, int]:
    if group not in _world.pg_group_ranks:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return _world.pg_group_ranks[group]


def _canonicalize_group_rank(
    group: Any, global_rank: int | None = None, group_rank: int | None = None, return_global: bool = False
) -> int:
    """A rank in the group, from whichever of the two was given."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return get_global_rank(group, group_rank) if return_global else group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return global_rank if return_global else get_group_rank(group, global_rank)


def get_process_group_ranks(group: Any) -> list[int]:
    """The global ranks of a group's members."""
    return list(_world.pg_group_ranks[group or _get_default_group()])


def get_rank(group: Any = None) -> int:
    """The rank of this process in a group; -1 if it is not in it."""
    if _rank_not_in_group(group):
        return -1
    default = _get_default_group()
    if group is None or group is GroupMember.WORLD:
        return default.rank()
    return get_group_rank(group, default.rank())


def get_world_size(group: Any = None) -> int:
    """How many processes a group has; -1 if this one is not in it."""
    if _rank_not_in_group(group):
        return -1
    return _get_group_size(group)


def _get_group_size(group: Any) -> int:
    size: int = _group_or_default_group(group).size()
    return size


def get_backend_config(group: Any = None) -> str:
    """Which backend of a group serves which device."""
    pg = group or _get_default_group()
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    if pg not in _world.pg_backend_config:
        raise TypeError("Invariant encountered: value was None when it should not be")
    return str(_world.pg_backend_config[pg])


def get_backend(group: Any = None) -> Any:
    """The backend of a group."""
    pg = group or _get_default_group()
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    entry = _world.pg_map.get(pg)
    if entry is None:
        raise ValueError(
            f"Process group {pg} is not initialized in the world group map. Please initialize the group first."
        )
    return Backend(entry[0])


def get_default_backend_for_device(device: Any) -> str:
    """The backend that serves a kind of device if nobody says otherwise."""
    from .._device import device as _device

    found = Backend.default_device_backend_map.get(_device(device).type)
    if found is None:
        raise ValueError(f"Default backend not registered for device : {device}")
    return found


def get_pg_count() -> int:
    """How many groups have been made."""
    return _world.group_count


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank of this process among those of its machine (LOCAL_RANK)."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def _get_process_group_name(pg: Any) -> str:
    return _world.pg_names.get(pg, "None")


def _get_process_group_store(pg: Any) -> Store:
    return _world.pg_map[pg][1]


def _get_group_tag(pg: Any) -> str:
    return _world.pg_to_tag[pg].removeprefix("user:")


def _find_pg_by_ranks_and_tag(tag: str, ranks: list[int]) -> Any:
    if tag and not tag.startswith(("ptd:", "user:")):
        tag = f"user:{tag}"
    for pg in _world.tags_to_pg.get(tag, ()):
        if pg.size() == len(ranks) and set(_world.pg_group_ranks[pg]) == set(ranks):
            return pg
    return None


def _resolve_process_group(name: str) -> Any:
    """The group of a name."""
    if name in registered:
        return registered[name]
    for pg, found in _world.pg_names.items():
        if found == name:
            return pg
    raise RuntimeError(f"Could not resolve the process group registered under the name {name}")


def _get_object_coll_device(group: Any = None) -> str:
    """Where pickled objects lie while they travel."""
    kinds = [each.type for each in _group_or_default_group(group)._device_types]
    return "cpu" if not kinds or "cpu" in kinds else kinds[0]


def _get_pg_default_device(group: Any = None) -> Any:
    from .._device import device as _device

    return _device(_get_object_coll_device(group))


def _device_capability(group: Any = None) -> list[str]:
    return [each.type for each in _group_or_default_group(group)._device_types]
