"""`torch.utils._device`: functions that make their tensors on a given device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch


def set_device(device: Any) -> Callable[[Any], Any]:
    """A decorator: inside the function, factories make tensors on `device`."""
    place = torch.device(device)

    def decorate(fn: Any) -> Any:
        @functools.wraps(fn)
        def placed(*args: Any, **kwargs: Any) -> Any:
            with place:
                return fn(*args, **kwargs)

        return placed

    return decorate
