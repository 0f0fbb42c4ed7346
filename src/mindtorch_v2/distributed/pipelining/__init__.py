"""`torch.distributed.pipelining`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "build_stage pipe_split pipeline",
    "Pipe PipelineStage Schedule1F1B ScheduleDualPipeV ScheduleGPipe ScheduleInterleaved1F1B "
    "ScheduleInterleavedZeroBubble ScheduleLoopedBFS ScheduleZBVZeroBubble SplitPoint",
    "{name} is not served; DistributedDataParallel, fully_shard and parallelize_module are",
)
