"""`torch.utils.model_zoo`: the former place of `torch.hub.load_state_dict_from_url`."""

from __future__ import annotations

from typing import Any

from .. import hub as _hub
from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name: str) -> Any:
    if name == "tqdm":
        return _hub.tqdm
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
