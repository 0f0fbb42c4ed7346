"""`torch.distributed.pipelining.stage`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(__name__, "build_stage", "PipelineStage", "{name} is not served; fully_shard and parallelize_module are")
