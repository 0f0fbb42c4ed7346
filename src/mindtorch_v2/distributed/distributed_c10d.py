"""`torch.distributed.distributed_c10d`: PyTorch's home of groups and collectives.

Invariant: nothing is defined here but the names that only this module has; the rest is what it gathers.
"""

from __future__ import annotations

import sys
import types
import warnings
from datetime import timedelta
from typing import Any

from ._backend_name import Backend as Backend
from ._backend_name import BackendConfig as BackendConfig
from ._collectives import P2POp as P2POp
from ._collectives import _all_gather_base as _all_gather_base
from ._collectives import _check_not_self_rank as _check_not_self_rank
from ._collectives import _check_op as _check_op
from ._collectives import _check_p2p_op_list as _check_p2p_op_list
from ._collectives import _check_single_tensor as _check_single_tensor
from ._collectives import _check_tensor_list as _check_tensor_list
from ._collectives import _coalescing_manager as _coalescing_manager
from ._collectives import _CoalescingManager as _CoalescingManager
from ._collectives import _CollOp as _CollOp
from ._collectives import _ensure_all_tensors_same_dtype as _ensure_all_tensors_same_dtype
from ._collectives import _IllegalWork as _IllegalWork
from ._collectives import _reduce_scatter_base as _reduce_scatter_base
from ._collectives import _warn_not_in_group as _warn_not_in_group
from ._collectives import all_gather as all_gather
from ._collectives import all_gather_coalesced as all_gather_coalesced
from ._collectives import all_gather_into_tensor as all_gather_into_tensor
from ._collectives import all_gather_single as all_gather_single
from ._collectives import all_reduce as all_reduce
from ._collectives import all_reduce_coalesced as all_reduce_coalesced
from ._collectives import all_to_all as all_to_all
from ._collectives import all_to_all_single as all_to_all_single
from ._collectives import barrier as barrier
from ._collectives import batch_isend_irecv as batch_isend_irecv
from ._collectives import broadcast as broadcast
from ._collectives import gather as gather
from ._collectives import irecv as irecv
from ._collectives import isend as isend
from ._collectives import monitored_barrier as monitored_barrier
from ._collectives import record_comm as record_comm
from ._collectives import recv as recv
from ._collectives import reduce as reduce
from ._collectives import reduce_scatter as reduce_scatter
from ._collectives import reduce_scatter_single as reduce_scatter_single
from ._collectives import reduce_scatter_tensor as reduce_scatter_tensor
from ._collectives import scatter as scatter
from ._collectives import send as send
from ._collectives import supports_complex as supports_complex
from ._errors import DistBackendError as DistBackendError
from ._errors import DistError as DistError
from ._errors import DistNetworkError as DistNetworkError
from ._errors import DistStoreError as DistStoreError
from ._errors import QueueEmptyError as QueueEmptyError
from ._fake import FakeProcessGroup as FakeProcessGroup
from ._gloo import ProcessGroupGloo as ProcessGroupGloo
from ._groups import STORE_BASED_BARRIER_PREFIX as STORE_BASED_BARRIER_PREFIX
from ._groups import _abort_process_group as _abort_process_group
from ._groups import _DistributedBackendOptions as _DistributedBackendOptions
from ._groups import _find_or_create_pg_by_ranks_and_tag as _find_or_create_pg_by_ranks_and_tag
from ._groups import _new_group_with_tag as _new_group_with_tag
from ._groups import _process_group_name as _process_group_name
from ._groups import _store_based_barrier as _store_based_barrier
from ._groups import destroy_process_group as destroy_process_group
from ._groups import init_process_group as init_process_group
from ._groups import new_group as new_group
from ._groups import new_subgroups as new_subgroups
from ._groups import new_subgroups_by_enumeration as new_subgroups_by_enumeration
from ._groups import shrink_group as shrink_group
from ._groups import split_group as split_group
from ._objects import _object_to_tensor as _object_to_tensor
from ._objects import _pickler as _pickler
from ._objects import _tensor_to_object as _tensor_to_object
from ._objects import _unpickler as _unpickler
from ._objects import all_gather_object as all_gather_object
from ._objects import broadcast_object_list as broadcast_object_list
from ._objects import gather_object as gather_object
from ._objects import recv_object_list as recv_object_list
from ._objects import scatter_object_list as scatter_object_list
from ._objects import send_object_list as send_object_list
from ._options import AllgatherOptions as AllgatherOptions
from ._options import AllreduceCoalescedOptions as AllreduceCoalescedOptions
from ._options import AllreduceOptions as AllreduceOptions
from ._options import AllToAllOptions as AllToAllOptions
from ._options import BarrierOptions as BarrierOptions
from ._options import BroadcastOptions as BroadcastOptions
from ._options import DebugLevel as DebugLevel
from ._options import GatherOptions as GatherOptions
from ._options import ReduceOp as ReduceOp
from ._options import ReduceOptions as ReduceOptions
from ._options import ReduceScatterOptions as ReduceScatterOptions
from ._options import ScatterOptions as ScatterOptions
from ._options import get_debug_level as get_debug_level
from ._options import set_debug_level as set_debug_level
from ._options import set_debug_level_from_env as set_debug_level_from_env
from ._private import _GLOO_AVAILABLE as _GLOO_AVAILABLE
from ._private import _NCCL_AVAILABLE as _NCCL_AVAILABLE
from ._private import _TABLES, _world_name
from ._private import _TORCHCOMM_AVAILABLE as _TORCHCOMM_AVAILABLE
from ._private import _UCC_AVAILABLE as _UCC_AVAILABLE
from ._private import _XCCL_AVAILABLE as _XCCL_AVAILABLE
from ._private import PG_WRAPPER_STORE_PREFIX as PG_WRAPPER_STORE_PREFIX
from ._private import SHRINK_ABORT as SHRINK_ABORT
from ._private import SHRINK_DEFAULT as SHRINK_DEFAULT
from ._private import _add_ephemeral_timeout_for_all_pgs as _add_ephemeral_timeout_for_all_pgs
from ._private import _as_iterable as _as_iterable
from ._private import _backend as _backend
from ._private import _cleanup_process_group_global_state as _cleanup_process_group_global_state
from ._private import _create_process_group_wrapper as _create_process_group_wrapper
from ._private import _default_pg_init_method as _default_pg_init_method
from ._private import _get_backend_from_str as _get_backend_from_str
from ._private import _get_global_rank as _get_global_rank
from ._private import _get_group_size_by_name as _get_group_size_by_name
from ._private import _get_process_group_uid as _get_process_group_uid
from ._private import _get_split_source as _get_split_source
from ._private import _hash_ranks_to_str as _hash_ranks_to_str
from ._private import _is_barrier_after_init as _is_barrier_after_init
from ._private import _is_fp8 as _is_fp8
from ._private import _is_safe_to_split as _is_safe_to_split
from ._private import _new_process_group_helper as _new_process_group_helper
from ._private import _parse_backend_string as _parse_backend_string
from ._private import _process_group_color as _process_group_color
from ._private import _ProcessGroupWrapper as _ProcessGroupWrapper
from ._private import _register_pg_in_world as _register_pg_in_world
from ._private import _register_process_group as _register_process_group
from ._private import _resolve_group_name_by_ranks_and_tag as _resolve_group_name_by_ranks_and_tag
from ._private import _time_estimator as _time_estimator
from ._private import _unregister_all_process_groups as _unregister_all_process_groups
from ._private import _unregister_process_group as _unregister_process_group
from ._private import _update_default_pg as _update_default_pg
from ._private import _validate_output_list_for_rank as _validate_output_list_for_rank
from ._process_group import ProcessGroup as ProcessGroup
from ._store import FileStore as FileStore
from ._store import HashStore as HashStore
from ._store import PrefixStore as PrefixStore
from ._store import Store as Store
from ._tcp_store import TCPStore as TCPStore
from ._work import Work as Work
from ._world import GroupMember as GroupMember
from ._world import GroupName as GroupName
from ._world import _canonicalize_group_rank as _canonicalize_group_rank
from ._world import _check_valid_timeout as _check_valid_timeout
from ._world import _device_capability as _device_capability
from ._world import _find_pg_by_ranks_and_tag as _find_pg_by_ranks_and_tag
from ._world import _get_default_group as _get_default_group
from ._world import _get_default_store as _get_default_store
from ._world import _get_default_timeout as _get_default_timeout
from ._world import _get_group_size as _get_group_size
from ._world import _get_group_tag as _get_group_tag
from ._world import _get_object_coll_device as _get_object_coll_device
from ._world import _get_pg_default_device as _get_pg_default_device
from ._world import _get_process_group_name as _get_process_group_name
from ._world import _get_process_group_store as _get_process_group_store
from ._world import _group_or_default_group as _group_or_default_group
from ._world import _rank_not_in_group as _rank_not_in_group
from ._world import _resolve_process_group as _resolve_process_group
from ._world import _World as _World
from ._world import _world as _world
from ._world import _WorldMeta as _WorldMeta
from ._world import get_backend as get_backend
from ._world import get_backend_config as get_backend_config
from ._world import get_default_backend_for_device as get_default_backend_for_device
from ._world import get_global_rank as get_global_rank
from ._world import get_group_rank as get_group_rank
from ._world import get_node_local_rank as get_node_local_rank
from ._world import get_pg_count as get_pg_count
from ._world import get_process_group_ranks as get_process_group_ranks
from ._world import get_rank as get_rank
from ._world import get_world_size as get_world_size
from ._world import group as group
from ._world import is_backend_available as is_backend_available
from ._world import is_gloo_available as is_gloo_available
from ._world import is_initialized as is_initialized
from ._world import is_mpi_available as is_mpi_available
from ._world import is_nccl_available as is_nccl_available
from ._world import is_torchelastic_launched as is_torchelastic_launched
from ._world import is_ucc_available as is_ucc_available
from ._world import is_xccl_available as is_xccl_available
from .constants import default_pg_nccl_timeout as default_pg_nccl_timeout
from .constants import default_pg_timeout as default_pg_timeout
from .rendezvous import register_rendezvous_handler as register_rendezvous_handler
from .rendezvous import rendezvous as rendezvous


class _reduce_op:
    """The former name of `ReduceOp`."""

    def __init__(self) -> None:
        for name, value in ReduceOp.RedOpType.__members__.items():
            setattr(self, name, value)
        self.__members__ = ReduceOp.RedOpType.__members__

    def __getattribute__(self, key: str) -> Any:
        if not key.startswith("__") or key == "__members__":
            warnings.warn(
                "`torch.distributed.reduce_op` is deprecated, please use `torch.distributed.ReduceOp` instead",
                FutureWarning,
                stacklevel=2,
            )
        return object.__getattribute__(self, key)


reduce_op = _reduce_op()


def _set_pg_timeout(timeout: timedelta, group: Any = None) -> None:
    """Let a group's operations wait that long from now on."""
    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    pg.set_timeout(timeout)


def _get_pg_config(group: Any = None) -> dict[str, Any]:
    pg = group or _get_default_group()
    return {
        "pg_name": _get_process_group_name(pg),
        "pg_desc": pg.group_desc,
        "backend_config": get_backend_config(pg),
        "pg_size": _get_group_size(pg),
        "ranks": get_process_group_ranks(pg),
    }


def _get_all_pg_configs() -> list[dict[str, Any]]:
    return [_get_pg_config(pg) for pg in _world.pg_map]


def __getattr__(name: str) -> Any:
    if name in _TABLES:
        return _world_name(name)
    if name == "_MPI_AVAILABLE":
        return is_mpi_available()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class _Home(types.ModuleType):
    """This module: a world that is put here is the world of all modules that look at it."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "_world":
            for each in ("_world", "_groups", "_collectives"):
                setattr(sys.modules[f"{__package__}.{each}"], name, value)


sys.modules[__name__].__class__ = _Home

__all__ = [
    "Backend",
    "BackendConfig",
    "GroupMember",
    "P2POp",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_object",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "send_object_list",
    "recv_object_list",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend_config",
    "get_backend",
    "get_default_backend_for_device",
    "get_rank",
    "get_world_size",
    "get_pg_count",
    "group",
    "init_process_group",
    "irecv",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_backend_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "reduce",
    "reduce_scatter",
    "scatter",
    "scatter_object_list",
    "send",
    "supports_complex",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "AllToAllOptions",
    "BarrierOptions",
    "BroadcastOptions",
    "GatherOptions",
    "GroupName",
    "PrefixStore",
    "ProcessGroup",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
    "Store",
    "DebugLevel",
    "get_debug_level",
    "Work",
    "default_pg_timeout",
    "get_group_rank",
    "get_global_rank",
    "get_process_group_ranks",
    "reduce_op",
    "all_gather_single",
    "all_gather_into_tensor",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "get_node_local_rank",
    "split_group",
    "shrink_group",
    "record_comm",
    "ProcessGroupGloo",
]

# The function, as in PyTorch, and not the module of that name, which importing it has put there.
setattr(sys.modules[__name__.rpartition(".")[0]], "rendezvous", rendezvous)
