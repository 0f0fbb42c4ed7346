"""`torch.distributed.checkpoint.state_dict`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    (
        "get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict "
        "set_optimizer_state_dict set_state_dict "
    ),
    "StateDictOptions",
    "{name} is not served; torch.save and torch.load write and read checkpoints",
)
