"""`torch.distributed.elastic.utils.distributed`: stores and free ports."""

from __future__ import annotations

from datetime import timedelta

from ... import TCPStore
from .api import get_socket_with_port as get_socket_with_port

__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]


def create_c10d_store(
    is_server: bool,
    server_addr: str,
    server_port: int = -1,
    world_size: int = 1,
    timeout: float = 60 * 10,
    wait_for_workers: bool = True,
    retries: int = 3,
    use_libuv: bool | None = None,
) -> TCPStore:
    """A `TCPStore`; without a port the server takes a free one, and tries others if it is taken in between."""
    if use_libuv is not None:
        raise NotImplementedError("create_c10d_store(): argument 'use_libuv' must be None; there is one kind of server")
    if server_port == -1 and world_size > 1:
        raise ValueError(f"server_port must be specified when world_size > 1, got server_port={server_port}, "
                         f"world_size={world_size}")  # fmt: skip
    chosen = server_port != -1
    for attempt in range(1, (1 if chosen else retries) + 1):
        port = server_port if chosen else get_free_port()
        try:
            return TCPStore(
                server_addr, port, world_size, is_server, timedelta(seconds=timeout), wait_for_workers=wait_for_workers
            )
        except RuntimeError:
            if chosen or attempt == retries:
                raise
    raise AssertionError("unreachable")


def get_free_port() -> int:
    """The number of a port of this machine that nobody listens on."""
    with get_socket_with_port() as found:
        return int(found.getsockname()[1])
