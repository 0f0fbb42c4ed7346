"""`torch.distributed.pipelining.schedules`."""

from __future__ import annotations

from ..._unserved import offer as _offer
from ._schedules import (
    PipelineScheduleMulti,
    PipelineScheduleSingle,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
    get_schedule_class,
)

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS",
    "get_schedule_class",
]

_offer(
    __name__,
    "",
    "ScheduleDualPipeV ScheduleInterleavedZeroBubble ScheduleZBVZeroBubble",
    "{name} is not served; ScheduleGPipe, Schedule1F1B, ScheduleInterleaved1F1B and ScheduleLoopedBFS are",
)
