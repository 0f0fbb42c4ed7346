"""`torch.distributed.pipelining.schedules`."""

from __future__ import annotations

from ..._unserved import offer as _offer
from ._schedules import PipelineScheduleSingle as PipelineScheduleSingle
from ._schedules import Schedule1F1B as Schedule1F1B
from ._schedules import ScheduleGPipe as ScheduleGPipe

__all__ = ["PipelineScheduleSingle", "Schedule1F1B", "ScheduleGPipe"]

_offer(
    __name__,
    "get_schedule_class",
    "PipelineScheduleMulti ScheduleDualPipeV ScheduleInterleaved1F1B ScheduleInterleavedZeroBubble "
    "ScheduleLoopedBFS ScheduleZBVZeroBubble",
    "{name} is not served; ScheduleGPipe and Schedule1F1B are",
)
