"""`torch.distributed.elastic.events.api`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "",
    "Event EventSource NodeState RdzvEvent",
    "{name} is not served; the launcher writes logs and error files",
)
