"""`torch.distributed.elastic.events`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "construct_and_record_rdzv_event get_logging_handler record record_rdzv_event",
    "Event EventMetadataValue EventSource NodeState RdzvEvent",
    "{name} is not served; the launcher writes logs and error files",
)
