"""`torch.jit._state`: what was compiled so far. Nothing is."""

from __future__ import annotations


def _clear_class_state() -> None:
    """Forget compiled classes, of which there are none."""
