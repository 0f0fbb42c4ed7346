"""The exceptions of `torch.distributed`.

Invariant: every failure of communication is a `DistError`, which is a `RuntimeError` as in PyTorch.
"""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """Something went wrong between processes."""

    __module__ = "torch.distributed"


class DistBackendError(DistError):
    """A backend failed."""

    __module__ = "torch.distributed"


class DistNetworkError(DistError):
    """A connection failed."""

    __module__ = "torch.distributed"


class DistStoreError(DistError):
    """A store failed, or waited too long."""

    __module__ = "torch.distributed"


class QueueEmptyError(DistStoreError):
    """Nothing is in the queue, and the caller does not wait."""

    __module__ = "torch.distributed"
