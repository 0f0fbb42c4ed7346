"""Putting a datapipe back to where an iteration stood."""

from __future__ import annotations

from typing import Any

from .._hook_iterator import _SnapshotState


def _simple_graph_snapshot_restoration(datapipe: Any, n_iterations: int, rng: Any = None) -> None:
    """Go forward by so many samples; the next iterator begins behind them."""
    from ...graph_settings import apply_random_seed

    if datapipe._snapshot_state == _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the graph if your graph "
            "has not been restored."
        )
    datapipe.reset()
    apply_random_seed(datapipe, rng)
    iterator = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(iterator)
        except StopIteration as error:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of samples available."
            ) from error
    datapipe._fast_forward_iterator = iterator
    # Set last: the iteration above has set it too.
    datapipe._snapshot_state = _SnapshotState.Restored
