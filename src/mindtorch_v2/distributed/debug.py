"""`torch.distributed.debug`: importable, and refused by name."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(
    __name__,
    "start_debug_server stop_debug_server",
    "",
    "{name} is not served; errors say which ranks are missing, and monitored_barrier does",
)
