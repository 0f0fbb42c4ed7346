"""`torch.distributed.optim.optimizer`: importable, and refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "",
    "DistributedOptimizer",
    "{name} is not served; it needs rpc, which is not served; ZeroRedundancyOptimizer splits states",
)
