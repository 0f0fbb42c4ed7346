"""`torch.utils._mode_utils`: switching handlers off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .._torch_dispatch import DisableTorchDispatch

T = TypeVar("T")


def all_same_mode(modes: Any) -> bool:
    """Whether a sequence holds one mode only."""
    return all(mode == modes[0] for mode in modes)


@contextmanager
def no_dispatch() -> Iterator[None]:
    """Inside, neither subclasses nor modes take operators over."""
    with DisableTorchDispatch():
        yield
