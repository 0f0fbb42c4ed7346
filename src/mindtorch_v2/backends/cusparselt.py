"""`torch.backends.cusparselt`: there is no cuSPARSELt."""

from __future__ import annotations

__all__ = ["get_max_alg_id", "is_available", "version"]


def version() -> int | None:
    return None


def is_available() -> bool:
    return False


def get_max_alg_id() -> int | None:
    return None
