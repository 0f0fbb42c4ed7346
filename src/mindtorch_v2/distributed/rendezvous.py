"""How processes find each other: by the environment, an address, a file, or a way that was registered.

Invariant: a rendezvous gives a store that all processes see, this process's rank, and how many there are.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import ParseResult, urlparse, urlunparse

from ._store import FileStore, PrefixStore, Store
from ._tcp_store import TCPStore
from .constants import default_pg_timeout

__all__ = ["register_rendezvous_handler", "rendezvous"]

Meeting = Iterator[tuple[Store, int, int]]
_rendezvous_handlers: dict[str, Callable[..., Meeting]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Meeting]) -> None:
    """Let a generator function serve addresses that begin with `scheme`://."""
    if scheme in _rendezvous_handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _rendezvous_handlers[scheme] = handler


def _query_to_dict(query: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in query.split("&") if pair)


def _rendezvous_helper(url: str, rank: int, world_size_opt: int | None, **kwargs: Any) -> Meeting:
    result = urlparse(url)
    world_size = -1 if world_size_opt is None else world_size_opt
    if world_size_opt is None and result.scheme == "env":
        rank = int(os.environ.get("RANK", rank))
        world_size = int(os.environ.get("WORLD_SIZE", world_size))
    if rank != -1 or world_size != -1 or world_size_opt is None:
        query = _query_to_dict(result.query)
        if "rank" in query or "world_size" in query:
            raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
        if rank != -1:
            query["rank"] = str(rank)
        if world_size != -1 or world_size_opt is None:
            query["world_size"] = str(world_size)
        result = result._replace(query="&".join(f"{key}={value}" for key, value in query.items()))
        url = urlunparse(result)
    if result.scheme not in _rendezvous_handlers:
        raise RuntimeError(f"No rendezvous handler for {result.scheme}://")
    return _rendezvous_handlers[result.scheme](url, **kwargs)


def rendezvous(url: Any, rank: Any = -1, world_size: Any = -1, **kwargs: Any) -> Meeting:
    """Meet the other processes: a generator of (store, rank, world size)."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url!r}")
    if not isinstance(rank, numbers.Integral):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, numbers.Integral):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    text = url.decode() if isinstance(url, bytes) else url
    return _rendezvous_helper(text, int(rank), int(world_size), **kwargs)


def _rendezvous_error(kind: str, text: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {kind}:// rendezvous: {text}")


def _rank_and_size(kind: str, result: ParseResult) -> tuple[int, int]:
    query = _query_to_dict(result.query)
    if "rank" not in query:
        raise _rendezvous_error(kind, "rank parameter missing")
    if "world_size" not in query:
        raise _rendezvous_error(kind, "world size parameter missing")
    return int(query["rank"]), int(query["world_size"])


def _file_rendezvous_handler(url: str, **kwargs: Any) -> Meeting:
    result = urlparse(url)
    if not result.path:
        raise _rendezvous_error("file", "path missing")
    rank, world_size = _rank_and_size("file", result)
    yield FileStore(result.path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _create_c10d_store(
    hostname: str, port: int, rank: int, world_size: int, timeout: timedelta, use_libuv: bool = True
) -> Store:
    """The store at an address: rank 0 serves it, unless the agent that started all ranks does."""
    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True):
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = TCPStore(hostname, port, world_size, False, timeout, wait_for_workers=False)
        # The agent's store outlives its workers: what those before a restart wrote must not be read.
        return PrefixStore(f"/worker/attempt_{attempt}", store)
    return TCPStore(hostname, port, world_size, rank == 0, timeout, multi_tenant=True, use_libuv=use_libuv)


def _tcp_rendezvous_handler(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Meeting:
    result = urlparse(url)
    if result.port is None:
        raise _rendezvous_error("tcp", "port number missing")
    rank, world_size = _rank_and_size("tcp", result)
    if result.hostname is None:
        raise AssertionError("hostname cannot be None")
    yield _create_c10d_store(result.hostname, result.port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _env_rendezvous_handler(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Meeting:
    query = _query_to_dict(urlparse(url).query)

    def known(key: str, variable: str) -> str:
        value = query.get(key) or os.environ.get(variable)
        if not value:
            raise _rendezvous_error("env", f"environment variable {variable} expected, but not set")
        return value

    rank, world_size = int(known("rank", "RANK")), int(known("world_size", "WORLD_SIZE"))
    host, port = known("", "MASTER_ADDR"), int(known("", "MASTER_PORT"))
    yield _create_c10d_store(host, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


def _create_store_from_options(backend_options: Any, rank: int) -> Store:
    store, _, _ = next(_rendezvous_helper(backend_options.init_method, rank, None))
    return store


register_rendezvous_handler("tcp", _tcp_rendezvous_handler)
register_rendezvous_handler("env", _env_rendezvous_handler)
register_rendezvous_handler("file", _file_rendezvous_handler)
