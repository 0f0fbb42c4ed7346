"""`torch.distributed`: several processes that work on one thing.

Invariant: asking whether it is available, or whether it is in use, loads nothing; the first other name loads it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

_C10D = "distributed_c10d"
# Names that PyTorch has here and not in `distributed_c10d.__all__`, by the module that has them.
_HOMES: dict[str, str] = {
    **dict.fromkeys(
        (
            *("DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError", "FileStore"),
            *("HashStore", "TCPStore", "set_debug_level", "set_debug_level_from_env", "_all_gather_base"),
            *("_reduce_scatter_base", "_rank_not_in_group", "_get_process_group_name", "_coalescing_manager"),
            *("_CoalescingManager", "rendezvous", "register_rendezvous_handler", "_world"),
        ),
        _C10D,
    ),
    "_create_store_from_options": "rendezvous",
    "_Work": "_work",
    "_Backend": "_process_group",
    **dict.fromkeys(("_ControlCollectives", "_StoreCollectives", "_test_python_store"), "_store_collectives"),
    "_make_nccl_premul_sum": "_options",
    "BuiltinCommHookType": "_reducer",
    "Reducer": "_reducer",
    "Logger": "_ddp_log",
    "_register_comm_hook": "_reducer",
    "_register_builtin_comm_hook": "_reducer",
    "_create_process_group_wrapper": "_private",
    "_time_estimator": "_private",
    "DeviceMesh": "device_mesh",
    "init_device_mesh": "device_mesh",
    "breakpoint": "_breakpoint",
    "GradBucket": "_reducer",
    "_broadcast_coalesced": "_reducer",
    "_compute_bucket_assignment_by_size": "_reducer",
    "_verify_params_across_processes": "_reducer",
    "_DEFAULT_FIRST_BUCKET_BYTES": "_reducer",
}
# Names that are others in their module.
_RENAMED = {"_Backend": "Backend", "_Work": "Work"}
_MODULES = frozenset(
    (
        *(
            "_composable",
            "_functional_collectives",
            "_tensor",
            "algorithms",
            "argparse_util",
            "autograd",
            "collective_utils",
            "checkpoint",
            "constants",
            "debug",
            "device_mesh",
        ),
        *(
            _C10D,
            "elastic",
            "flight_recorder",
            "fsdp",
            "launch",
            "launcher",
            "nn",
            "optim",
            "pipelining",
            "rpc",
            "run",
            "tensor",
            "utils",
        ),
    )
)


def is_available() -> bool:
    """True: processes can communicate with each other."""
    return True


def is_initialized() -> bool:
    """Whether there is a default group; nothing is loaded to find out that there is none."""
    loaded = sys.modules.get(f"{__name__}._world")
    return loaded is not None and loaded._world.default_pg is not None


def is_torchelastic_launched() -> bool:
    """Whether torchelastic (torchrun) started this process."""
    import os

    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def __getattr__(name: str) -> Any:
    if name in _HOMES and _HOMES[name] != name:
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), _RENAMED.get(name, name))
    elif name in _MODULES:
        return import_module(f"{__name__}.{name}")
    elif name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    else:
        c10d = import_module(f"{__name__}.{_C10D}")
        if name not in c10d.__all__:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        found = getattr(c10d, name)
    if name != "_world":
        globals()[name] = found
    return found


def __dir__() -> list[str]:
    names = import_module(f"{__name__}.{_C10D}").__all__
    return sorted({*globals(), *names, *_HOMES, *_MODULES})
