"""`torch.distributed.algorithms.ddp_comm_hooks.optimizer_overlap_hooks`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "_apply_optim_in_backward_hook _hook_then_optimizer _reducer_allreduce_and_upcast_hook",
    "_OptimizerHookState",
    "{name} is not served; use distributed.optim._apply_optimizer_in_backward",
)
