"""`torch.distributed` of a build without it: `is_available()` is False.

Invariant: what exists is what a PyTorch built without distributed has, and the names that libraries mention without
asking; none of them communicates. Several processes are a part of their own, which is not written yet.
"""

from __future__ import annotations

from typing import Any

_WHY = "torch.distributed is not part of this build (torch.distributed.is_available() is False)"


def is_available() -> bool:
    """False: there is no communication between processes."""
    return False


def is_initialized() -> bool:
    """False: there is no process group."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchelastic started this process."""
    import os

    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_mpi_available() -> bool:
    return False


is_nccl_available = is_gloo_available = is_ucc_available = is_xccl_available = is_mpi_available


class _Refused:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(_WHY)


class ProcessGroup(_Refused):
    """A group of processes: for annotations and `isinstance`."""


class GroupName(_Refused):
    """A group's name: for annotations and `isinstance`."""


def __getattr__(name: str) -> Any:
    if name in ("device_mesh", "rpc", "tensor"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}': {_WHY}")
