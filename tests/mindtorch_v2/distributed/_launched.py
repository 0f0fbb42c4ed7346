"""Functions that an agent starts in processes."""

from __future__ import annotations

import importlib
import os
from typing import Any


def summed(library: str, value: float) -> Any:
    """What all ranks add up to, and what the agent has told this one."""
    torch: Any = importlib.import_module(library)
    dist: Any = importlib.import_module(f"{library}.distributed")
    dist.init_process_group("gloo")
    t = torch.tensor([value + dist.get_rank()])
    dist.all_reduce(t)
    dist.destroy_process_group()
    names = ("LOCAL_RANK", "RANK", "WORLD_SIZE", "ROLE_NAME", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID")
    return t.item(), [os.environ[name] for name in names]


def fails_at_first(library: str, folder: str) -> str:
    """Raises on rank 1 until it has done so once."""
    path = os.path.join(folder, "failed")
    if os.environ["RANK"] == "1" and not os.path.exists(path):
        open(path, "w").close()
        raise ValueError("on purpose")
    return os.environ["TORCHELASTIC_RESTART_COUNT"]


def fails(library: str) -> None:
    raise ValueError("again and again")
