"""`torch.distributed.elastic.timer`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "configure expires",
    "FileTimerClient FileTimerRequest FileTimerServer LocalTimerClient LocalTimerServer TimerClient TimerRequest "
    "TimerServer",
    "{name} is not served; give a timeout to init_process_group",
)
