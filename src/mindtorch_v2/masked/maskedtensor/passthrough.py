"""Operators that move elements about: the same of data and mask."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .core import mapped, wrapped

__all__: list[str] = []

PASSTHROUGH_NAMES = (
    "select transpose split t slice slice_backward select_backward index expand view _unsafe_view _reshape_alias cat "
    "unsqueeze unfold unfold_backward im2col col2im stack"
).split()
PASSTHROUGH_FNS = [getattr(torch.ops.aten, name) for name in PASSTHROUGH_NAMES]


def _is_pass_through_fn(fn: Any) -> bool:
    return fn in PASSTHROUGH_FNS


def _apply_pass_through_fn(fn: Any, *args: Any, **kwargs: Any) -> Any:
    data = fn(*mapped(args, lambda t: t.get_data()), **mapped_names(kwargs, "get_data"))
    mask = fn(*mapped(args, lambda t: t.get_mask()), **mapped_names(kwargs, "get_mask"))
    return wrapped(data, mask)


def mapped_names(kwargs: dict[str, Any], method: str) -> dict[str, Any]:
    """Arguments by name with a part of each masked tensor."""
    return {name: mapped(value, lambda t: getattr(t, method)()) for name, value in kwargs.items()}
