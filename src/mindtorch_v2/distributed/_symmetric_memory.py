"""`torch.distributed._symmetric_memory`: memory that devices of several processes see; not served, and says so."""

from __future__ import annotations

from typing import Any, NoReturn

_TEXT = "torch.distributed._symmetric_memory: memory that several devices share is not served"


class _SymmetricMemory:
    """PyTorch's handle of such memory."""

    def __init__(self) -> None:
        raise NotImplementedError(_TEXT)

    @staticmethod
    def has_multicast_support(device_type: Any, device_idx: int) -> bool:
        """False: there is no such hardware here."""
        return False

    @staticmethod
    def is_symm_mem_tensor(tensor: Any) -> bool:
        """False: no tensor lies there."""
        return False

    signal_pad_size = 2048


def is_nvshmem_available() -> bool:
    """False."""
    return False


def is_symm_mem_tensor(tensor: Any) -> bool:
    """False: no tensor lies in such memory."""
    return False


def empty(*size: Any, dtype: Any = None, device: Any = None) -> NoReturn:
    """Refuses: there is no such memory."""
    raise NotImplementedError(_TEXT)


def rendezvous(tensor: Any, group: Any) -> NoReturn:
    """Refuses: there is no such memory."""
    raise NotImplementedError(_TEXT)
