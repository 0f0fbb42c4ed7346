"""`torch.distributed.optim.named_optimizer`: importable, and refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__, "", "_NamedOptimizer", "{name} is not served; checkpoint.state_dict.get_optimizer_state_dict names states"
)
