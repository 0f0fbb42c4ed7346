"""`torch.distributed.elastic.utils.api`: the environment, free ports, places in commands."""

from __future__ import annotations

import os
import socket
import string
from typing import Any

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name: str) -> str:
    """A variable of the environment, which must be set."""
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


def get_socket_with_port() -> socket.socket:
    """A socket that listens on a free port of this machine; whoever gives the port on closes the socket first."""
    for family, kind, protocol, _, _ in socket.getaddrinfo("localhost", None, socket.AF_UNSPEC, socket.SOCK_STREAM):
        made = socket.socket(family, kind, protocol)
        try:
            made.bind(("localhost", 0))
            made.listen(0)
        except OSError:
            made.close()
            continue
        return made
    raise RuntimeError("Failed to create a socket")


class macros:
    """Places in the arguments of a command that each worker fills."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list[Any], local_rank: str) -> list[str]:
        """The arguments of the worker with a rank."""
        return [string.Template(each).safe_substitute(local_rank=local_rank) for each in args]
