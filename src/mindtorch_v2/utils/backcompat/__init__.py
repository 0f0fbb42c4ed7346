"""`torch.utils.backcompat`: two switches for warnings about what changed in version 0.2.

Invariant: as in PyTorch, they keep what they are set to; no operator of today has anything to warn about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Warning:
    """A switch, over a function that sets it and one that asks for it."""

    def __init__(self, setter: Callable[[bool], Any], getter: Callable[[], bool]) -> None:
        self.setter = setter
        self.getter = getter

    def set_enabled(self, value: bool) -> None:
        """Switch it."""
        self.setter(value)

    def get_enabled(self) -> bool:
        """Whether it is on."""
        return self.getter()

    enabled = property(get_enabled, set_enabled)


def _switch() -> Warning:
    state = [False]

    def put(value: bool) -> None:
        state[0] = value

    return Warning(put, lambda: state[0])


broadcast_warning = _switch()
keepdim_warning = _switch()
