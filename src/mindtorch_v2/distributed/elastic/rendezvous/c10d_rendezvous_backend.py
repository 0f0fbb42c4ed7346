"""`torch.distributed.elastic.rendezvous.c10d_rendezvous_backend`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(
    __name__,
    "create_backend",
    "C10dRendezvousBackend",
    "{name} is not served; start nodes with `python -m mindtorch_v2.distributed.run`",
)
