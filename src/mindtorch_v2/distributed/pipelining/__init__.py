"""`torch.distributed.pipelining`: stages by hand, one or several on a rank; the rest is refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer
from ._schedules import Schedule1F1B as Schedule1F1B
from ._schedules import ScheduleGPipe as ScheduleGPipe
from ._schedules import ScheduleInterleaved1F1B as ScheduleInterleaved1F1B
from ._schedules import ScheduleLoopedBFS as ScheduleLoopedBFS
from ._stage import PipelineStage as PipelineStage

__all__ = ["PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleLoopedBFS"]

_offer(
    __name__,
    "build_stage pipe_split pipeline",
    "Pipe ScheduleDualPipeV ScheduleInterleavedZeroBubble ScheduleZBVZeroBubble SplitPoint",
    "{name} is not served; PipelineStage with ScheduleGPipe, Schedule1F1B, ScheduleInterleaved1F1B and "
    "ScheduleLoopedBFS is",
)
