"""Registers the CPU's kernels."""

from __future__ import annotations

from importlib import import_module

from ..._dispatch import registry
from ..common import pinning

FAMILIES = ("pointwise", "shape", "reduce", "matmul", "index", "random")


def load_kernels() -> None:
    import_module(f"{__package__}.creation")
    for family in FAMILIES:
        import_module(f"{__package__}.ops.{family}")
    pinning.install(registry.ops())
