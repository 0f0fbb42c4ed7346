"""A name that older programs import."""

from __future__ import annotations

import warnings


def worker_init_fn(worker_id: int) -> None:
    """Nothing: `DataLoader` shards datapipes by itself."""
    warnings.warn(
        "Usage of `backward_compatibility.worker_init_fn` is deprecated as `DataLoader` automatically applies sharding "
        "in every worker",
        FutureWarning,
        stacklevel=2,
    )
