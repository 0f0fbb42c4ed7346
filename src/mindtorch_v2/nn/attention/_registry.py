"""Implementations of flash attention that others bring along.

Invariant: at most one is active; activating another, or restoring the built-in one, removes it first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

_log = logging.getLogger(__name__)


class _Registry:
    """What is registered by name, and what is active with the handle that removes it."""

    known: dict[str, Callable[..., Any]] = {}
    active: tuple[str, Any] | None = None


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Make an implementation known; `register_fn()` puts it in place and returns a handle that can `remove()` it."""
    _Registry.known[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Put a registered implementation in place of the current one."""
    restore_flash_attention_impl(_raise_warn=False)
    register_fn = _Registry.known.get(impl)
    if register_fn is None:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: {list_flash_attention_impls()}"
        )
    handle = register_fn()
    if handle is not None:
        _Registry.active = (impl, handle)


def list_flash_attention_impls() -> list[str]:
    """The names of all registered implementations."""
    return sorted(_Registry.known)


def current_flash_attention_impl() -> str | None:
    """The name of the active implementation, or None for the built-in one."""
    return None if _Registry.active is None else _Registry.active[0]


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Go back to the built-in implementation."""
    if _Registry.active is not None:
        _Registry.active[1].remove()
    elif _raise_warn:
        _log.warning("Trying to restore default FA2 impl when no custom impl was activated")
    _Registry.active = None
