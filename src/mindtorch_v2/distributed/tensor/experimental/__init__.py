"""`torch.distributed.tensor.experimental`: refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "context_parallel implicit_replication local_map register_sharding",
    "",
    "{name} is not served: no tensor lies on several processes here",
)
