"""`torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "hook_with_zero_step hook_with_zero_step_interleaved",
    "",
    "{name} is not served; step ZeroRedundancyOptimizer after backward",
)
