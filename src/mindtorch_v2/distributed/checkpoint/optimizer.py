"""`torch.distributed.checkpoint.optimizer`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "load_sharded_optimizer_state_dict",
    "",
    "{name} is not served; state_dict.set_optimizer_state_dict loads states that are split",
)
