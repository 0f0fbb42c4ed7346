"""`torch.distributed.elastic.rendezvous`: its errors; the rest is importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer


class RendezvousError(Exception):
    """Of all errors of a rendezvous."""


class RendezvousClosedError(RendezvousError):
    """Nobody may come any more."""


class RendezvousTimeoutError(RendezvousError):
    """Not all came in time."""


class RendezvousConnectionError(RendezvousError):
    """The place is not to be reached."""


class RendezvousStateError(RendezvousError):
    """The place's own notes are damaged."""


class RendezvousGracefulExitError(RendezvousError):
    """This node was told to leave."""


__all__ = [
    "RendezvousClosedError",
    "RendezvousConnectionError",
    "RendezvousError",
    "RendezvousGracefulExitError",
    "RendezvousStateError",
    "RendezvousTimeoutError",
]

_offer(
    __name__,
    "get_rendezvous_handler",
    "RendezvousHandler RendezvousHandlerCreator RendezvousHandlerRegistry RendezvousInfo RendezvousParameters "
    "RendezvousStoreInfo rendezvous_handler_registry",
    "{name} is not served; start processes with `python -m mindtorch_v2.distributed.run`",
)
