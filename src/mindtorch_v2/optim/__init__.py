"""Optimisers: how parameters follow their gradients, as in PyTorch."""

import importlib
from typing import Any

from .optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from .sgd import SGD

__all__ = ["SGD", "Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

_SUBMODULES = ("lr_scheduler", "swa_utils")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
