"""`torch._lazy.ts_backend`: the backend that PyTorch compiles lazy tensors with."""

from __future__ import annotations


def init() -> None:
    """Make the backend known. There is none, and the first tensor on `lazy` will say so."""
