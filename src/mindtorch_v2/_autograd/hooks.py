"""Handles of registered hooks.

Invariant: removing a handle twice, or after its owner died, does nothing.
"""

from __future__ import annotations

from _weakref import ref as _weak
from collections import OrderedDict
from collections.abc import Callable
from typing import Any


class HookDict(OrderedDict[int, Any]):
    """Hooks by the id of their handle, in the order in which they run."""


class RemovableHandle:
    """What registering a hook returns; `remove()` or leaving a `with` block takes the hook away."""

    next_id = 0

    def __init__(self, hooks_dict: HookDict, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = _weak(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.extra_dict_ref: tuple[_weak[Any], ...] = ()
        if isinstance(extra_dict, list):
            self.extra_dict_ref = tuple([_weak(d) for d in extra_dict])
        elif extra_dict is not None:
            self.extra_dict_ref = (_weak(extra_dict),)

    def remove(self) -> None:
        hooks = self.hooks_dict_ref()
        if hooks is not None:
            hooks.pop(self.id, None)
        for ref in self.extra_dict_ref:
            extra = ref()
            if extra is not None:
                extra.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        # Dictionaries that were gone already: a reference to nothing.
        self.hooks_dict_ref = _weak(HookDict() if state[0] is None else state[0])
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        self.extra_dict_ref = tuple(_weak(d) for d in state[2] if d is not None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def add_hook(hooks: HookDict, fn: Callable[..., Any], extra_dict: HookDict | None = None) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=extra_dict)
    hooks[handle.id] = fn
    return handle
