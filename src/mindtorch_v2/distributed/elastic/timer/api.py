"""`torch.distributed.elastic.timer.api`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "configure expires",
    "RequestQueue TimerClient TimerRequest TimerServer",
    "{name} is not served; collectives have time limits of their own",
)
