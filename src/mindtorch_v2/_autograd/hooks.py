"""Handles of registered hooks.

Invariant: removing a handle twice, or after its owner died, does nothing.
"""
from __future__ import annotations

import weakref
from typing import Any


class RemovableHandle:
    """What registering a hook returns; `remove()` or leaving a `with` block takes the hook away."""

    _next = 0

    def __init__(self, hooks: dict[int, Any], *, extra_dict: Any = None) -> None:
        self._hooks = _Ref(hooks) if not isinstance(hooks, HookDict) else weakref.ref(hooks)
        self.id = RemovableHandle._next
        RemovableHandle._next += 1
        self._extra = extra_dict

    def remove(self) -> None:
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)
        if self._extra is not None:
            self._extra.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class HookDict(dict[int, Any]):
    """A dict that can be weakly referenced."""

    __slots__ = ("__weakref__",)


class _Ref:
    def __init__(self, hooks: dict[int, Any]) -> None:
        self.hooks = hooks

    def __call__(self) -> dict[int, Any]:
        return self.hooks


def add_hook(hooks: dict[int, Any], fn: Any) -> RemovableHandle:
    if not callable(fn):
        raise TypeError(f"expected a callable hook, but got {type(fn).__name__}")
    handle = RemovableHandle(hooks)
    hooks[handle.id] = fn
    return handle
