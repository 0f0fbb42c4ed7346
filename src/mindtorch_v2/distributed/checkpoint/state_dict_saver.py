"""`torch.distributed.checkpoint.state_dict_saver`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "async_save save save_state_dict",
    "",
    "{name} is not served; torch.save and torch.load write and read checkpoints",
)
