"""`torch.distributed.pipelining.schedules`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "get_schedule_class",
    "PipelineScheduleMulti PipelineScheduleSingle Schedule1F1B ScheduleDualPipeV ScheduleGPipe "
    "ScheduleInterleaved1F1B ScheduleInterleavedZeroBubble ScheduleLoopedBFS ScheduleZBVZeroBubble",
    "{name} is not served; fully_shard and parallelize_module are",
)
