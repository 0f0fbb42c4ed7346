"""Objects that say themselves what of them is saved."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """Has `state_dict` and `load_state_dict`."""

    def state_dict(self) -> dict[str, Any]:
        """What is saved."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what was loaded."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
