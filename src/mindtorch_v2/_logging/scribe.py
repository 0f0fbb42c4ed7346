"""`torch._logging.scribe`: notes for a service that only PyTorch's own builders run."""

from __future__ import annotations


def open_source_signpost(subsystem: str, name: str, parameters: str | None = None) -> None:
    """Nobody is told."""
