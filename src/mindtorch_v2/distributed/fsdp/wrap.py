"""`torch.distributed.fsdp.wrap`: which parts of a model FSDP wraps; refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    (
        "always_wrap_policy lambda_auto_wrap_policy transformer_auto_wrap_policy "
        "size_based_auto_wrap_policy enable_wrap wrap "
    ),
    "CustomPolicy ModuleWrapPolicy",
    "{name} is not served; DistributedDataParallel and ZeroRedundancyOptimizer are",
)
