"""`torch.distributed.checkpoint.format_utils`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "dcp_to_torch_save torch_save_to_dcp",
    "",
    "{name} is not served; torch.save and torch.load write and read checkpoints",
)
