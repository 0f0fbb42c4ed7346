"""Private names of PyTorch's `distributed_c10d` that its test tools and some libraries use.

Invariant: they look at the same groups as everything else; what has no meaning here raises by name.
"""

from __future__ import annotations

import hashlib
import os
import threading
from datetime import timedelta
from typing import Any, NoReturn

from typing_extensions import deprecated

from .. import _dtype as _t
from . import _world as _rooms
from ._backend_name import Backend
from ._store import Store
from ._world import _find_pg_by_ranks_and_tag, _get_default_group, _resolve_process_group
from ._world import get_backend as _backend_of
from ._world import get_global_rank as _global_rank
from .constants import default_pg_timeout

PG_WRAPPER_STORE_PREFIX = "pg_wrapper"
SHRINK_DEFAULT, SHRINK_ABORT = 0, 1
_GLOO_AVAILABLE = True
_NCCL_AVAILABLE = _UCC_AVAILABLE = _XCCL_AVAILABLE = _TORCHCOMM_AVAILABLE = False
_backend = _default_pg_init_method = None
_FLOAT8 = (_t.float8_e4m3fn, _t.float8_e4m3fnuz, _t.float8_e5m2, _t.float8_e5m2fnuz)


@deprecated(
    "`torch.distributed.distributed_c10d._get_global_rank` is deprecated, please use "
    "`torch.distributed.distributed_c10d.get_global_rank` instead",
    category=FutureWarning,
)
def _get_global_rank(group: Any, rank: int) -> int:
    """The former name of `get_global_rank`."""
    return _global_rank(group, rank)


def _get_group_size_by_name(group_name: Any) -> int:
    pg = _resolve_process_group(group_name) if isinstance(group_name, str) else group_name
    return int(pg.size())


def _get_process_group_uid(pg: Any) -> int:
    """-1: only NCCL's groups have such a number."""
    return -1


def _resolve_group_name_by_ranks_and_tag(ranks: list[int], tag: str) -> str:
    found = _find_pg_by_ranks_and_tag(tag, ranks)
    if found is None:
        raise ValueError("")
    return str(found.group_name)


def _as_iterable(obj: Any) -> Any:
    return obj if isinstance(obj, list) else (obj,)


def _is_fp8(tensor: Any) -> bool:
    return tensor.dtype in _FLOAT8


def _is_barrier_after_init() -> int:
    return int(os.getenv("TORCH_DIST_INIT_BARRIER", "0"))


def _hash_ranks_to_str(ranks: list[int]) -> str:
    text = "_".join([*map(str, ranks), str(len(_rooms._world.pg_names))])
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _validate_output_list_for_rank(my_rank: int, dst: int, gather_list: Any) -> None:
    if dst == my_rank and not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if dst != my_rank and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")


def _update_default_pg(pg: Any) -> None:
    """Let a group be the default one."""
    _rooms._world.default_pg = pg


def _set_global_rank(rank: int) -> None:
    """Nothing: errors ask the default group for its rank."""


def _set_thread_isolation_mode(enable: bool) -> None:
    """Let names that groups are registered under be those of each thread, for ranks that are threads of one process."""
    _rooms.registered = _OfThread() if enable else {}


class _OfThread(threading.local):
    """A table for each thread."""

    def __init__(self) -> None:
        self.table: dict[str, Any] = {}

    def __contains__(self, name: object) -> bool:
        return name in self.table

    def __getitem__(self, name: str) -> Any:
        return self.table[name]

    def __setitem__(self, name: str, group: Any) -> None:
        self.table[name] = group

    def pop(self, name: str, default: Any = None) -> Any:
        return self.table.pop(name, default)

    def clear(self) -> None:
        self.table.clear()


def _register_process_group(group_name: str, group: Any) -> None:
    """Let a group be found by a name."""
    _rooms.registered[group_name] = group


def _unregister_process_group(group_name: str) -> None:
    """Let a name be nobody's."""
    _rooms.registered.pop(group_name, None)


def _unregister_all_process_groups() -> None:
    """Let all names be nobody's."""
    _rooms.registered.clear()


def _register_pg_in_world(
    pg: Any,
    backend_name: str,
    store: Store,
    group_name: str,
    backend_config: str,
    rank_mapping: dict[int, int] | None = None,
    pg_tag: str | None = None,
    user_tag: str | None = None,
    add_to_default_tag: bool = False,
) -> None:
    """Enter a group that was made elsewhere."""
    world = _rooms._world
    world.pg_map[pg] = (backend_name, store)
    world.pg_names[pg] = group_name
    world.pg_backend_config[pg] = backend_config
    if rank_mapping is not None:
        world.pg_group_ranks[pg] = rank_mapping
    tag = f"user:{user_tag}" if user_tag else pg_tag or f"ptd:{group_name}"
    world.pg_to_tag[pg] = tag
    for each in ("", tag) if user_tag or add_to_default_tag else (tag,):
        world.tags_to_pg.setdefault(each, []).append(pg)


def _cleanup_process_group_global_state(pg: Any) -> None:
    """Forget a group without ending it."""
    _rooms.forget(pg)


def _parse_backend_string(backend: str) -> dict[str, str]:
    """Backends by device, of a name or of `cpu:gloo,npu:hccl`: only what is named."""
    backend = backend.lower()
    if ":" not in backend:
        devices = [device for device, name in Backend.default_device_backend_map.items() if name == backend]
        if not devices:
            raise ValueError(
                f"Unknown backend '{backend}'; expected one of the registered backends "
                f"{sorted(set(Backend.default_device_backend_map.values()))}"
            )
        return dict.fromkeys(devices, backend)
    found: dict[str, str] = {}
    for part in backend.split(","):
        pieces = part.split(":")
        if len(pieces) != 2:
            raise ValueError(
                f"Invalid device:backend pairing '{part}' in '{backend}'. Expected format: "
                "'<device_type1>:<backend1>,<device_type2>:<backend2>...'"
            )
        device, name = pieces[0].strip(), pieces[1].strip()
        if device in found:
            raise ValueError(f"Duplicate device type '{device}' in backend string '{backend}'")
        found[device] = name
    return found


def _get_backend_from_str(backend: str | None = None) -> Any:
    return Backend(backend or _backend_of(_get_default_group()))


def _add_ephemeral_timeout_for_all_pgs(timeout: timedelta) -> None:
    """Nothing: only NCCL's groups have such a limit."""


def _is_safe_to_split() -> bool:
    """Whether the default group is bound to a device."""
    return _get_default_group().bound_device_id is not None


def _get_split_source(pg: Any) -> Any:
    """The backend that a group's parts can be split from; None where none can."""
    source = pg._get_backend(pg.bound_device_id) if pg.bound_device_id else None
    return source if source is not None and source.supports_splitting else None


def _process_group_color(ranks: list[int]) -> int:
    return abs(hash(tuple(ranks))) % 2**31


def _new_process_group_helper(
    group_size: int,
    group_rank: int,
    global_ranks_in_group: list[int],
    backend: str,
    store: Store,
    group_name: str,
    backend_options: Any = None,
    timeout: timedelta | None = None,
    pg_tag: str | None = None,
    device_id: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, Any]:
    """A group, and its store; who is not in it gets `NON_GROUP_MEMBER`."""
    from ._groups import _make_group

    limit = default_pg_timeout if timeout is None else timeout
    kind = Backend(backend)
    desc = group_desc or "undefined"
    ranks = list(global_ranks_in_group)
    return _make_group(
        group_size, group_rank, ranks, kind, store, group_name, backend_options, limit, device_id, desc, pg_tag
    )


class _ProcessGroupWrapper:
    """PyTorch's checks of every collective's arguments in the mode DETAIL."""

    def __init__(self, backend: Any, gloo: Any) -> None:
        raise NotImplementedError(
            "_ProcessGroupWrapper: there is no wrapper that compares the arguments of collectives; gloo here and the "
            "emulator's hccl refuse calls that differ between ranks by themselves"
        )


def _create_process_group_wrapper(
    wrapped_pg: Any, store_prefix: str, store: Store, rank: int, world_size: int, timeout: Any = default_pg_timeout
) -> NoReturn:
    """Refuses, by the name of the wrapper."""
    _ProcessGroupWrapper(wrapped_pg, None)
    raise AssertionError("unreachable")


def _time_estimator(group: Any = None, device: Any = None) -> NoReturn:
    """Refuses: no backend here can tell how long a collective would take."""
    raise NotImplementedError("_time_estimator: no backend estimates the time of collectives")


def _world_name(name: str) -> Any:
    """Former names of the world's tables."""
    return getattr(_rooms._world, name.removeprefix("_"))


_TABLES = frozenset(
    ("_pg_map", "_pg_names", "_pg_group_ranks", "_pg_backend_config", "_pg_to_tag", "_tags_to_pg", "_group_count")
)
