"""`torch.distributed.launcher.api`: importable, and refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "launch_agent",
    "LaunchConfig elastic_launch",
    "{name} is not served; start processes with `python -m mindtorch_v2.distributed.run`",
)
