"""Choosing how scaled dot product attention is computed, and attention with user-written scores and masks.

Invariant: what is switched here holds for the whole process, as in PyTorch; the choice itself is made in `_choice`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .._sdp import BACKENDS, SDP, SDPBackend
from ._registry import (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
)

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS",
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

# Whether a mask that only some implementations know says why they were not used.
WARN_FOR_UNFUSED_KERNELS = False

for _function in (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
):
    _function.__module__ = __name__
del _function


def _raise_kernel_warnings(params: Any) -> None:
    """No implementation here knows a causal mask at the lower right by itself; those that are asked give no reason."""
    if WARN_FOR_UNFUSED_KERNELS:
        warnings.warn("Efficient attention can't be used because:", stacklevel=2)
        warnings.warn("Flash attention can't be used because:", stacklevel=2)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    backends = [backend for name, backend in BACKENDS.items() if SDP.enabled[name]]
    if with_priority:
        backends.sort(key=lambda backend: SDP.priority.index(int(backend)))
    return backends


def _sdpa_kernel(backends: Iterable[SDPBackend], set_priority: bool = False) -> None:
    backends = list(backends)
    for name, backend in BACKENDS.items():
        SDP.enable(name, backend in backends)
    if set_priority:
        first = [int(backend) for backend in backends]
        SDP.priority = first + [backend for backend in SDP.priority if backend not in first]


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[Any, Any]]:
    """Scaled dot product attention by the given implementations only; with `set_priority`, the first is preferred.

    A block (`with sdpa_kernel(...)`) or a decorator.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    chosen = [backends] if isinstance(backends, SDPBackend) else list(dict.fromkeys(backends))
    before = _cur_sdpa_kernel_backends(with_priority=set_priority)
    try:
        _sdpa_kernel(chosen, set_priority)
        yield {}
    finally:
        _sdpa_kernel(before, set_priority)


_LATE = ("bias", "flex_attention", "varlen")


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
