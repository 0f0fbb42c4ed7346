"""Whether attention and transformer encoders may take their fast way where nothing is recorded."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_STATE = {"enabled": True}


def get_fastpath_enabled() -> bool:
    """Whether the fast way is allowed; whether it is taken depends on the inputs."""
    return _STATE["enabled"]


def set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid the fast way."""
    _STATE["enabled"] = value
