"""`torch.distributed.pipelining.schedules`."""

from __future__ import annotations

from typing import Any

from ._schedules import (
    PipelineScheduleMulti,
    PipelineScheduleSingle,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)
from ._zero_bubble import ScheduleDualPipeV, ScheduleInterleavedZeroBubble, ScheduleZBVZeroBubble

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "get_schedule_class",
]


def get_schedule_class(schedule_name: str) -> Any:
    """The schedule of a name: `GPipe`, `1F1B`, `Interleaved1F1B` and so on; capitals do not matter."""
    classes = (
        *(Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B, ScheduleLoopedBFS, ScheduleInterleavedZeroBubble),
        *(PipelineScheduleSingle, PipelineScheduleMulti, ScheduleZBVZeroBubble, ScheduleDualPipeV),
    )
    known: dict[str, Any] = {each.__name__.removeprefix("Schedule").lower(): each for each in classes}
    if schedule_name.lower() not in known:
        raise ValueError(f"Unknown schedule '{schedule_name}'. The valid options are {list(known)}")
    return known[schedule_name.lower()]
