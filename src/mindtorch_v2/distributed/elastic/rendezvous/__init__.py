"""`torch.distributed.elastic.rendezvous`: its errors; the rest is importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer
from ...._unserved import offer_module as _offer_module


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

_RUN = "{name} is not served; start processes with `python -m mindtorch_v2.distributed.run`"
_ETCD = "{name} is not served: nodes meet at a TCPStore (--rdzv-backend c10d or static), not at etcd"
for _name, _functions, _classes, _why in (
    ("etcd_rendezvous", "create_rdzv_handler", "EtcdRendezvous EtcdRendezvousHandler", _ETCD),
    ("etcd_rendezvous_backend", "create_backend", "EtcdRendezvousBackend", _ETCD),
    ("etcd_server", "find_free_port stop_etcd", "EtcdServer", _ETCD),
    ("etcd_store", "cas_delay", "EtcdStore", _ETCD),
    ("registry", "create_handler get_rendezvous_handler", "", _RUN),
    ("static_tcp_rendezvous", "create_rdzv_handler", "StaticTCPRendezvous", _RUN),
):
    _offer_module(__name__, _name, _functions, _classes, _why)
