"""`torch.backends.opt_einsum`: in which order `torch.einsum` contracts: from left to right, opt_einsum is not asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

m: Any = sys.modules[__name__]
enabled: Any = False
strategy: Any = None


def is_available() -> bool:
    """Whether `torch.einsum` can ask opt_einsum: it cannot."""
    return False


def get_opt_einsum() -> Any:
    """The package opt_einsum, if it is used."""
    return None


def set_flags(_enabled: Any = None, _strategy: Any = None) -> tuple[Any, Any]:
    """Set the flags that are not None, as far as that means anything without opt_einsum; returns what they were."""
    global enabled
    before = (enabled, strategy)
    if _enabled:
        raise ValueError(
            f"opt_einsum is not available, so setting `enabled` to {_enabled} will not reap the benefits of "
            "calculating an optimal path for einsum. torch.einsum "
            "will fall back to contracting from left to right. To enable this "
            "optimal path calculation, please install opt-einsum."
        )
    if _enabled is not None:
        enabled = _enabled
    if _strategy is not None:
        raise ValueError(
            f"opt_einsum is not available, so setting `strategy` to {_strategy} will not be meaningful. torch.einsum "
            "will bypass path calculation and simply contract from left to right. Please install opt_einsum or unset "
            "`strategy`."
        )
    return before


@contextmanager
def flags(enabled: Any = None, strategy: Any = None) -> Iterator[None]:
    """The flags inside a block."""
    before = set_flags(enabled, strategy)
    try:
        yield
    finally:
        set_flags(*before)
