"""`torch.distributed.elastic.rendezvous.dynamic_rendezvous`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "create_handler",
    "DynamicRendezvousHandler RendezvousBackend RendezvousSettings RendezvousTimeout",
    "{name} is not served; the number of nodes is fixed; start them with `python -m mindtorch_v2.distributed.run`",
)
