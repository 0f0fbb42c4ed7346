"""`torch.distributed.tensor.parallel`: refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "loss_parallel parallelize_module",
    (
        "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput "
        "PrepareModuleOutput RowwiseParallel SequenceParallel "
    ),
    "{name} is not served: no tensor lies on several processes here",
)
