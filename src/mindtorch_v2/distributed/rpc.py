"""`torch.distributed.rpc` of a build without it: its names are importable, and refuse."""

from __future__ import annotations

from .._unserved import offer as _offer

__all__ = ["is_available"]


def is_available() -> bool:
    """False: no process calls functions of another."""
    return False


_offer(
    __name__,
    "backend_registered get_worker_info init_backend init_rpc register_backend remote rpc_async rpc_sync shutdown "
    "construct_rpc_backend_options",
    "BackendType RRef TensorPipeRpcBackendOptions WorkerInfo PyRRef RpcAgent RpcBackendOptions",
    "{name} is not served: no process calls functions of another; torch.distributed's messages and objects are",
)
