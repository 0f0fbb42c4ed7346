"""Optimisers: how parameters follow their gradients, as in PyTorch."""

from .optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from .sgd import SGD

__all__ = ["SGD", "Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]
