"""Hooks of DDP's communication, by name."""

from __future__ import annotations

from enum import Enum
from typing import Any

from . import debugging_hooks as debugging
from . import default_hooks as default
from . import powerSGD_hook as powerSGD
from . import quantization_hooks as quantization

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class _Wrapper:
    """How a hook is registered: an enum's value that is no function, which would become a method."""

    def __init__(self, comm_hook: Any, **settings: Any) -> None:
        self.comm_hook, self.settings = comm_hook, settings

    def __call__(self, model: Any, state: Any) -> None:
        if self.settings:
            state = powerSGD.PowerSGDState(process_group=state, **self.settings)
        model.register_comm_hook(state, self.comm_hook)


class DDPCommHookType(Enum):
    """Hooks that can be registered by name."""

    ALLREDUCE = _Wrapper(default.allreduce_hook)
    FP16_COMPRESS = _Wrapper(default.fp16_compress_hook)
    BF16_COMPRESS = _Wrapper(default.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = _Wrapper(quantization.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = _Wrapper(quantization.quantization_perchannel_hook)
    POWER_SGD = _Wrapper(powerSGD.powerSGD_hook, matrix_approximation_rank=1)
    POWER_SGD_RANK2 = _Wrapper(powerSGD.powerSGD_hook, matrix_approximation_rank=2)
    BATCHED_POWER_SGD = _Wrapper(powerSGD.batched_powerSGD_hook, matrix_approximation_rank=1)
    BATCHED_POWER_SGD_RANK2 = _Wrapper(powerSGD.batched_powerSGD_hook, matrix_approximation_rank=2)
    NOOP = _Wrapper(debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let a hook by name reduce a model's buckets."""
    comm_hook_type.value(model=model, state=state)
