"""`torch.backends.mps`: there are no Apple GPUs."""

from __future__ import annotations

__all__ = ["get_core_count", "get_name", "is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built() -> bool:
    return False


def is_available() -> bool:
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Needs MPS, as PyTorch's does."""
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Needs MPS, as PyTorch's does."""
    return is_macos_or_newer(13, minor)


def get_name() -> str:
    raise AttributeError("module 'torch._C' has no attribute '_mps_get_name'")


def get_core_count() -> int:
    raise AttributeError("module 'torch._C' has no attribute '_mps_get_core_count'")
