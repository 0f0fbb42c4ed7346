"""What tests share: random numbers that leave no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mindtorch_v2 as torch

from ..utils._mode_utils import no_dispatch


@contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Afterwards the generators of the CPU and of the current accelerator are in the state they had before."""
    device = torch.npu if torch.npu.is_available() else None
    with no_dispatch():
        state = torch.get_rng_state()
        device_state = None if device is None else device.get_rng_state()
    try:
        yield
    finally:
        with no_dispatch():
            if device is not None:
                device.set_rng_state(device_state)
            torch.set_rng_state(state)


def wrapper_set_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call `op` with the generators at a fixed seed, and leave them as they were."""
    with freeze_rng_state():
        torch.manual_seed(42)
        return op(*args, **kwargs)
