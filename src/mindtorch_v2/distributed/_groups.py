"""Making and destroying groups.

Invariant: all processes make the same groups in the same order; a group's name, which its store's keys begin with, is
the number of groups made before it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from .._device import device as _device
from ._backend_name import Backend, BackendConfig
from ._errors import DistStoreError
from ._process_group import ProcessGroup
from ._store import PrefixStore, Store
from ._world import (
    GroupMember,
    _check_valid_timeout,
    _find_pg_by_ranks_and_tag,
    _get_default_group,
    _get_default_timeout,
    _world,
    forget,
    forget_all,
    get_process_group_ranks,
    get_rank,
    get_world_size,
)
from .rendezvous import rendezvous

__all__ = [
    "destroy_process_group",
    "init_process_group",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "shrink_group",
    "split_group",
]

STORE_BASED_BARRIER_PREFIX = "store_based_barrier_key"


class _DistributedBackendOptions:
    """What a backend that was registered with `extended_api` is made from."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta, name: str, ranks: list[int]) -> None:
        self.store, self.group_rank, self.group_size, self.timeout = store, rank, size, timeout
        self.group_id, self.global_ranks_in_group = name, ranks


def _process_group_name(ranks: Sequence[int], use_hashed_name: bool) -> str:
    if use_hashed_name:
        text = "_".join([*map(str, ranks), str(len(_world.pg_names))])
        return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    name = str(_world.group_count)
    _world.group_count += 1
    return name


def _store_based_barrier(rank: int, store: Store, group_name: str, rendezvous_count: int, timeout: timedelta) -> None:
    """Wait until all members have come by, over the store alone."""
    key = f"{STORE_BASED_BARRIER_PREFIX}:{group_name}"
    count = store.add(key, 1)
    last = f"{key}:last_worker"
    if count == rendezvous_count:
        store.set(last, "1")
    started = time.monotonic()
    while True:
        try:
            store.wait([last], timedelta(seconds=10 + rendezvous_count / 1000))
            return
        except RuntimeError as error:
            count = store.add(key, 0)
            if timedelta(seconds=time.monotonic() - started) > timeout:
                raise DistStoreError(
                    f"Timed out initializing process group in store based barrier on rank {rank}, for key: {key} "
                    f"(world_size={rendezvous_count}, num_workers_joined={count}, timeout={timeout} error={error})"
                ) from None


def _checked_device(device_id: Any) -> _device | None:
    if device_id is None:
        return None
    from .. import accelerator

    here = accelerator.current_accelerator()
    if isinstance(device_id, int):
        if here is None:
            raise ValueError(
                "device_id is an int, but no accelerator support is found from the current compilation. "
                "Please use a different compiled version that supports your accelerator."
            )
        device_id = _device(here.type, device_id)
    if device_id.type != "cpu":
        if here is None or device_id.type != here.type:
            raise ValueError(
                f"device_id {device_id} does not match the current compilation's accelerator support: {here}. "
                "Please use a different compiled version that supports your accelerator."
            )
        if device_id.index is None:
            raise ValueError("Please use a device_id with index.")
        if device_id.index >= accelerator.device_count():
            raise ValueError(
                f"device_id {device_id} is out of range. Please use a device index less than the number of "
                f"accelerators available: {accelerator.device_count()}."
            )
    found: _device = device_id
    return found


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:
    """Make the default group, of all processes."""
    if _world.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if not world_size > 0:
            raise AssertionError("world_size must be positive if using store")
        if not rank >= 0:
            raise AssertionError("rank must be non-negative if using store")
    device = _checked_device(device_id)
    if backend is None and device is not None:
        backend = Backend.default_device_backend_map.get(device.type)
    kind = Backend(Backend.UNDEFINED if backend is None else backend)
    timeout = _get_default_timeout(kind) if timeout is None else timeout
    _check_valid_timeout(timeout)
    name = _process_group_name(_ranks or [], use_hashed_name=bool(_ranks))
    if kind == Backend.MPI:
        if world_size != -1 or rank != -1:
            warnings.warn(
                f"For MPI backend, world_size ({world_size}) and rank ({rank}) are ignored since they are assigned by "
                "the MPI runtime.",
                stacklevel=2,
            )
        store, rank, world_size = Store(), -1, -1
    elif store is None:
        store, rank, world_size = _met(kind, init_method or "env://", rank, world_size, timeout)
    pg, below = _make_group(world_size, rank, [], kind, store, name, pg_options, timeout, device, "default_pg", None)
    _world.default_pg = pg
    _world.pg_group_ranks[pg] = {index: index for index in range(pg.size())}
    sys.excepthook = _prefixed(sys.excepthook, f"[rank{pg.rank()}]")
    if int(os.getenv("TORCH_DIST_INIT_BARRIER", "0")) == 1 and kind != Backend.MPI:
        _store_based_barrier(pg.rank(), below, name, pg.size(), timeout)


def _met(kind: Any, method: str, rank: int, world_size: int, timeout: timedelta) -> tuple[Store, int, int]:
    store: Store
    if kind == Backend.FAKE:
        from ._fake import FakeStore

        store = FakeStore()
    else:
        store, rank, world_size = next(rendezvous(method, rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
    return PrefixStore("default_pg", store), rank, world_size


class _Prefixed:
    """`sys.excepthook` of a process in a group: each line says which rank it comes from."""

    def __init__(self, before: Callable[..., Any], prefix: str) -> None:
        self.before, self.prefix = before, prefix

    def __call__(self, *arguments: Any) -> None:
        import io

        real, sys.stderr = sys.stderr, io.StringIO()
        try:
            self.before(*arguments)
        finally:
            text, sys.stderr = sys.stderr.getvalue(), real
        sys.stderr.write("\n".join(f"{self.prefix}: {line}" if line else "" for line in text.split("\n")))
        sys.stderr.flush()


def _prefixed(before: Any, prefix: str) -> _Prefixed:
    return _Prefixed(before.before if isinstance(before, _Prefixed) else before, prefix)


def _make_group(
    size: int,
    rank: int,
    ranks: list[int],
    backend: Any,
    store: Store,
    name: str,
    options: Any,
    timeout: timedelta,
    device_id: _device | None,
    desc: str | None,
    tag: str | None,
) -> tuple[Any, Any]:
    """A group with its backends, entered into the world; `ranks` is empty for the default group."""
    if name in _world.pg_names.values():
        raise ValueError("The specified group name has already been created, please use a different group name")
    if device_id is not None and (device_id.index is None or device_id.type == "cpu"):
        raise ValueError("init_process_group device_id parameter must be an accelerator with an index")
    if tag:
        existing = _find_pg_by_ranks_and_tag(tag, ranks)
        if existing is not None:
            return existing, _world.pg_map[existing][1]
    if ranks and _get_default_group().rank() not in ranks:
        return GroupMember.NON_GROUP_MEMBER, None
    below = PrefixStore(f"{name}/", store)
    config = BackendConfig(backend)
    if "," not in str(backend) and ":" not in str(backend) and backend not in Backend.backend_type_map:
        raise AssertionError(f"Unknown backend type {backend}")
    pg: Any = ProcessGroup(below, rank, size)
    made: dict[str, Any] = {}
    for kind, which in config.device_backend_map.items():
        if which not in made:
            made[which] = _make_backend(
                which, PrefixStore(f"{kind}/", below), rank, size, timeout, name, ranks, options
            )
        if made[which] is None:
            return GroupMember.NON_GROUP_MEMBER, None
        if isinstance(made[which], ProcessGroup):
            pg = made[which]  # a group of one's own takes the place of ours
            break
        if pg.rank() == -1:
            pg = ProcessGroup(below, made[which].rank(), made[which].size())
        pg._register_backend(_device(kind), Backend.backend_type_map[which], made[which])
    first = next(iter(config.device_backend_map.values()))
    if type(pg) is ProcessGroup:
        pg._set_default_backend(Backend.backend_type_map[first if backend == Backend.UNDEFINED else str(first)])
        pg.bound_device_id = device_id
        pg._set_group_name(name)
        pg._set_group_desc(desc or "undefined")
    _world.pg_map[pg] = (backend, below)
    _world.pg_names[pg] = name
    _world.pg_backend_config[pg] = str(config)
    full = f"user:{tag}" if tag else f"ptd:{name}"
    _world.pg_to_tag[pg] = full
    for each in (full,) if tag else ("", full):
        _world.tags_to_pg.setdefault(each, []).append(pg)
    return pg, below


_MISSING = {
    Backend.NCCL: "Distributed package doesn't have NCCL built in",
    Backend.XCCL: "Distributed package doesn't have XCCL built in",
}


def _make_backend(
    which: str, store: Store, rank: int, size: int, timeout: timedelta, name: str, ranks: list[int], options: Any
) -> Any:
    if which.upper() not in Backend._plugins:
        if which in _MISSING:
            raise RuntimeError(_MISSING[which])
        raise AssertionError(f"Unknown c10d backend type {which.upper()}")
    plugin = Backend._plugins[which.upper()]
    if plugin.extended_api:
        return plugin.creator_fn(_DistributedBackendOptions(store, rank, size, timeout, name, ranks), options)
    return plugin.creator_fn(store, rank, size, timeout)


def _gloo(given: _DistributedBackendOptions, options: Any) -> Any:
    from ._gloo import ProcessGroupGloo

    made = ProcessGroupGloo(given.store, given.group_rank, given.group_size, given.timeout)
    made.options.global_ranks_in_group, made.options.group_name = given.global_ranks_in_group, given.group_id
    return made


def _fake(given: _DistributedBackendOptions, options: Any) -> Any:
    from ._fake import FakeProcessGroup

    return FakeProcessGroup(given.group_rank, given.group_size, options)


def _hccl(given: _DistributedBackendOptions, options: Any) -> Any:
    from ._hccl import ProcessGroupHCCL

    made = ProcessGroupHCCL(given.store, given.group_rank, given.group_size, given.timeout)
    made.options.global_ranks_in_group, made.options.group_name = given.global_ranks_in_group, given.group_id
    return made


def _mpi(given: _DistributedBackendOptions, options: Any) -> Any:
    from ._mpi import ProcessGroupMPI

    return ProcessGroupMPI.create(given.global_ranks_in_group, given.timeout)


Backend.register_backend("gloo", _gloo, extended_api=True, devices=["cpu", "cuda"])
Backend.register_backend("fake", _fake, extended_api=True, devices=["cpu", "cuda", "hpu", "xpu", "npu"])
Backend.register_backend("hccl", _hccl, extended_api=True, devices=["npu"])
Backend.register_backend("mpi", _mpi, extended_api=True, devices=["cpu", "cuda"])


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: _device | None = None,
    sort_ranks: bool = True,
) -> Any:
    """Make a group of some processes. All processes call this, those outside the group too."""
    return _new_group_with_tag(
        ranks, timeout, backend, pg_options, None, use_local_synchronization, group_desc, device_id, sort_ranks
    )


def _new_group_with_tag(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    backend_options: Any = None,
    pg_tag: str | None = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: _device | None = None,
    sort_ranks: bool = True,
) -> Any:
    default = _get_default_group()
    if group_desc is not None and not isinstance(group_desc, str):
        raise TypeError(
            "_set_group_desc(): incompatible function arguments. The following argument types are supported: str, got "
            f"{type(group_desc).__name__}"
        )
    if device_id is None:
        device_id = default.bound_device_id
    elif default.bound_device_id is not None and device_id != default.bound_device_id:
        raise AssertionError("Mismatched bound device between new pg and the default pg.")
    kind = Backend(backend or _world.pg_map[default][0])
    store = _world.pg_map[default][1]
    timeout = _get_default_timeout(kind) if timeout is None else timeout
    _check_valid_timeout(timeout)
    if use_local_synchronization:
        if kind == Backend.MPI:
            raise ValueError("MPI backend doesn't support use_local_synchronization=True")
        if ranks is not None and default.rank() not in ranks:
            return None
    members = _members(ranks, sort_ranks, default.size())
    name = _process_group_name(members, use_hashed_name=use_local_synchronization)
    rank = members.index(default.rank()) if default.rank() in members else -1
    pg, below = _make_group(
        len(members), rank, members, kind, store, name, backend_options, timeout, device_id, group_desc, pg_tag
    )
    _world.pg_group_ranks[pg] = {each: index for index, each in enumerate(members)}
    if int(os.getenv("TORCH_DIST_INIT_BARRIER", "0")) == 1 and kind != Backend.MPI:
        local = use_local_synchronization
        count = len(members) if local else default.size()
        _store_based_barrier(default.rank(), below if local else store, name, count, timeout)
    return pg


def _members(ranks: Sequence[int] | None, sort_ranks: bool, size: int) -> list[int]:
    if ranks is None:
        return list(range(size))
    members = sorted(ranks) if sort_ranks else list(ranks)
    if len(set(members)) != len(members):
        raise ValueError(f"ranks list must not contain duplicate entries, got {members}")
    if len(members) > size:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in members:
        if rank < 0 or rank >= size:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    return members


def _find_or_create_pg_by_ranks_and_tag(tag: str, ranks: list[int], stride: int) -> Any:
    if len(ranks) % stride != 0:
        raise ValueError(f"The world size ({len(ranks)}) must be divisible by stride ({stride})")
    mine: list[int] | None = None
    for start in range(0, len(ranks), stride):
        part = ranks[start : start + stride]
        if get_rank() in part:
            mine = part
    if mine is None:
        raise RuntimeError("rank not in the given ranks")
    found = _find_pg_by_ranks_and_tag(tag, mine)
    return found if found is not None else _new_group_with_tag(mine, pg_tag=tag)


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Cut a group into groups of one size; this process's, and all of them."""
    if group_size is None:
        from .. import accelerator

        group_size = accelerator.device_count()
        if not group_size:
            raise ValueError(
                "Default group size only takes effect when CUDA is available."
                "If your subgroup using a backend that does not depend on CUDA,"
                "please pass in 'group_size' correctly."
            )
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    world_size = get_world_size(group=group)
    if world_size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({world_size})")
    if world_size % group_size != 0:
        raise ValueError(f"The world size ({world_size}) must be divisible by '{group_size=}'")
    ranks = get_process_group_ranks(group)
    parts = [ranks[start : start + group_size] for start in range(0, len(ranks), group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make groups of lists of ranks; this process's, and all of them."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    made: list[Any] = []
    mine: Any = None
    seen: dict[int, Sequence[int]] = {}
    for ranks in ranks_per_subgroup_list:
        made.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
            if rank == get_rank():
                mine = made[-1]
    return mine, made


def split_group(
    parent_pg: Any = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> Any:
    """Cut a group, whose communicators exist, into parts by lists of its ranks; this process's part, or None."""
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    default = _get_default_group()
    if not default.bound_device_id:
        raise RuntimeError("No device associated with the default pg, not safe to split any process groups")
    parent = parent_pg or default
    inside = {index: rank for rank, index in _world.pg_group_ranks[parent].items()}
    mine: Any = None
    for part in split_ranks:
        if not part:
            raise ValueError("the split group cannot be empty")
        if len(part) > parent.size():
            raise ValueError(
                "the split group's size should be less or equal to the world_size set by init_process_group"
            )
        if len(set(part)) != len(part):
            raise ValueError("the split group cannot have duplicate ranks")
        ranks = [inside[index] for index in sorted(part)]
        made = new_group(ranks, timeout, backend or _world.pg_map[parent][0], pg_options, group_desc=group_desc)
        if default.rank() in ranks:
            mine = made
    return mine


def shrink_group(ranks_to_exclude: list[int], group: Any = None, shrink_flags: int = 0, pg_options: Any = None) -> Any:
    """Not served: PyTorch offers it for NCCL alone."""
    raise NotImplementedError("torch.distributed.shrink_group: no backend here can shrink a group; make a new_group")


def destroy_process_group(group: Any = None) -> None:
    """End a group, or with none given all of them: connections and threads end, and their names are free again."""
    _end_group(group, "shutdown", "Invalid process group specified")


def _abort_process_group(group: Any = None) -> None:
    _end_group(group, "abort", "Invalid process group specified or has been destroyed.")


def _end_group(group: Any, how: str, unknown: str) -> None:
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    pg = _world.default_pg if group is None else group
    if pg is None:
        raise AssertionError("Process group cannot be None")
    if pg not in _world.pg_map:
        raise ValueError(unknown)
    if pg is not _world.default_pg:
        if pg in _world.pg_coalesce_state:
            warnings.warn(
                "Some coalesced collectives haven't been launched when ProcessGroup is destroyed. They will be "
                "cleaned.",
                stacklevel=3,
            )
        getattr(pg, how)()
        forget(pg)
        return
    for each in sorted(_world.pg_names, key=lambda known: _world.pg_names[known], reverse=True):
        getattr(each, how)()
    forget_all()
    if isinstance(sys.excepthook, _Prefixed):
        sys.excepthook = sys.excepthook.before
