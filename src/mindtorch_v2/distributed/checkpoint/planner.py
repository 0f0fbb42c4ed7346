"""`torch.distributed.checkpoint.planner`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "",
    "LoadPlan LoadPlanner ReadItem SavePlan SavePlanner WriteItem",
    "{name} is not served; torch.save and torch.load write and read checkpoints",
)
