"""`torch.distributed.elastic.timer`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer
from ...._unserved import offer_module as _offer_module

_offer(
    __name__,
    "configure expires",
    "FileTimerClient FileTimerRequest FileTimerServer LocalTimerClient LocalTimerServer TimerClient TimerRequest "
    "TimerServer",
    "{name} is not served; give a timeout to init_process_group",
)

for _name, _functions, _classes in (
    ("local_timer", "", "LocalTimerClient LocalTimerServer MultiprocessingRequestQueue"),
    ("file_based_local_timer", "", "FileTimerClient FileTimerRequest FileTimerServer"),
    ("debug_info_logging", "log_debug_info_for_expired_timers", ""),
):
    _why = "{name} is not served; give a timeout to init_process_group"
    _offer_module(__name__, _name, _functions, _classes, _why)
