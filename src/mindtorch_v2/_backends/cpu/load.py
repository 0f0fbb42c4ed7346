"""Registers the CPU's kernels."""
from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from ..._dispatch import registry
from ..common import pinning

FAMILIES = ("pointwise", "activation", "shape", "creation", "copy", "reduce", "matmul", "norm", "loss", "index",
            "random", "sort")


def load_kernels() -> None:
    for family in FAMILIES:
        if find_spec(f"{__package__}.{family}") is not None:
            import_module(f"{__package__}.{family}")
    pinning.install(registry.ops())
