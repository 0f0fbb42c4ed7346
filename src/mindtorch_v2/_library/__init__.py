"""Operators from outside the package; `torch.library` is their public face."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """PyTorch's modules are there without being imported by name."""
    if name in ("custom_ops", "fake_profile", "infer_schema", "opaque_object", "utils"):
        from importlib import import_module

        return import_module("." + name, __package__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
