"""`torch._C._distributed_c10d`: the names of PyTorch's C++ module, each from the module that has it here.

Invariant: nothing of `torch.distributed` is loaded before a name of it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_C10D = """AllToAllOptions AllgatherOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions BroadcastOptions
DebugLevel FakeProcessGroup FileStore GatherOptions HashStore PrefixStore ProcessGroup ProcessGroupGloo ReduceOp
ReduceOptions ReduceScatterOptions ScatterOptions Store TCPStore Work _DistributedBackendOptions _resolve_process_group
_register_process_group _unregister_all_process_groups _unregister_process_group get_debug_level set_debug_level
set_debug_level_from_env"""
_HOMES = {
    **dict.fromkeys(_C10D.split(), "distributed_c10d"),
    **dict.fromkeys(("ErrorType", "WorkResult", "WorkInfo", "OpType", "_make_nccl_premul_sum"), "_options"),
    **dict.fromkeys(("FakeWork", "PythonCallbackWork", "_create_work_from_future"), "_work"),
    **dict.fromkeys(("_ControlCollectives", "_StoreCollectives", "_test_python_store"), "_store_collectives"),
    **dict.fromkeys(
        """BuiltinCommHookType GradBucket Reducer _DEFAULT_FIRST_BUCKET_BYTES _broadcast_coalesced
        _compute_bucket_assignment_by_size _register_builtin_comm_hook _register_comm_hook
        _verify_params_across_processes""".split(),
        "_reducer",
    ),
    "Backend": "_process_group",
    "Logger": "_ddp_log",
    "_DEFAULT_PG_TIMEOUT": "constants",
    "_get_work_registry_size": "_functional_collectives",
    "_register_work": "_functional_collectives",
    **dict.fromkeys(("_set_global_rank", "_set_thread_isolation_mode"), "_private"),
    "_SymmetricMemory": "_symmetric_memory",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"...distributed.{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
