"""`torch.utils.hooks`: handles of registered hooks, and hooks around the backward of a module."""
from __future__ import annotations

from .._autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
