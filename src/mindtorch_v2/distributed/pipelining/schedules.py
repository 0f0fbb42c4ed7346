"""`torch.distributed.pipelining.schedules`."""

from __future__ import annotations

from ..._unserved import offer as _offer
from ._schedules import PipelineScheduleMulti as PipelineScheduleMulti
from ._schedules import PipelineScheduleSingle as PipelineScheduleSingle
from ._schedules import Schedule1F1B as Schedule1F1B
from ._schedules import ScheduleGPipe as ScheduleGPipe
from ._schedules import ScheduleInterleaved1F1B as ScheduleInterleaved1F1B
from ._schedules import ScheduleLoopedBFS as ScheduleLoopedBFS
from ._schedules import get_schedule_class as get_schedule_class

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
