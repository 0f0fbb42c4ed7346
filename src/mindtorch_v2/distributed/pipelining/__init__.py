"""`torch.distributed.pipelining`: stages by hand with the schedules GPipe and 1F1B; the rest is refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer
from ._schedules import Schedule1F1B as Schedule1F1B
from ._schedules import ScheduleGPipe as ScheduleGPipe
from ._stage import PipelineStage as PipelineStage

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe"]

_offer(
    __name__,
    "build_stage pipe_split pipeline",
    "Pipe ScheduleDualPipeV ScheduleInterleaved1F1B ScheduleInterleavedZeroBubble ScheduleLoopedBFS "
    "ScheduleZBVZeroBubble SplitPoint",
    "{name} is not served; PipelineStage with ScheduleGPipe and Schedule1F1B is",
)
