"""`torch.distributed.pipelining.stage`."""

from __future__ import annotations

from ..._unserved import offer as _offer
from ._stage import PipelineStage as PipelineStage

__all__ = ["PipelineStage"]

_offer(__name__, "build_stage", "", "{name} is not served; PipelineStage is")
