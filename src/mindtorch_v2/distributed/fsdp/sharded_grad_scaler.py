"""`torch.distributed.fsdp.sharded_grad_scaler`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(__name__, "", "ShardedGradScaler", "{name} is not served; bfloat16 needs no scaler")
