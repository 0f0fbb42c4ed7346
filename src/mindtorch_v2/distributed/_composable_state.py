"""What functions that are applied to modules keep about them."""

from __future__ import annotations

import weakref
from typing import Any


class _State:
    """What such a function knows of a module."""


_module_state_mapping: weakref.WeakKeyDictionary[Any, weakref.ReferenceType[_State]] = weakref.WeakKeyDictionary()


def _insert_module_state(module: Any, state: _State) -> None:
    if module in _module_state_mapping:
        raise AssertionError(f"Inserting {module} more than once.")
    _module_state_mapping[module] = weakref.ref(state)


def _get_module_state(module: Any) -> _State | None:
    """The state of a module, which may be one itself; None if it has none."""
    if isinstance(module, _State):
        return module
    if module not in _module_state_mapping:
        return None
    state = _module_state_mapping[module]()
    if state is None:
        raise AssertionError("State has already been garbage collected")
    return state
