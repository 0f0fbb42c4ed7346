"""`torch.distributed.pipelining`: stages by hand, one or several on a rank; the rest is refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer
from ._schedules import Schedule1F1B as Schedule1F1B
from ._schedules import ScheduleGPipe as ScheduleGPipe
from ._schedules import ScheduleInterleaved1F1B as ScheduleInterleaved1F1B
from ._schedules import ScheduleLoopedBFS as ScheduleLoopedBFS
from ._stage import PipelineStage as PipelineStage
from ._zero_bubble import ScheduleDualPipeV as ScheduleDualPipeV
from ._zero_bubble import ScheduleInterleavedZeroBubble as ScheduleInterleavedZeroBubble
from ._zero_bubble import ScheduleZBVZeroBubble as ScheduleZBVZeroBubble

__all__ = [
    "PipelineStage",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
]

_offer(
    __name__,
    "build_stage pipe_split pipeline",
    "Pipe SplitPoint",
    "{name} is not served; PipelineStage with a schedule is",
)
