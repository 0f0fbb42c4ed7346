"""The backend `mpi`, over mpi4py.

Invariant: nothing of MPI is loaded before a group asks for it.
"""

from __future__ import annotations

from datetime import timedelta
from importlib.util import find_spec
from typing import NoReturn

__all__ = ["ProcessGroupMPI", "is_mpi_available"]


def is_mpi_available() -> bool:
    """Whether groups can be made with MPI."""
    return False


class ProcessGroupMPI:
    """Groups over MPI: not served yet."""

    @staticmethod
    def create(ranks: list[int], timeout: timedelta) -> NoReturn:
        """Make one: refused, with what to use instead."""
        found = "mpi4py is installed, and" if find_spec("mpi4py") is not None else "mpi4py is not installed, and"
        raise RuntimeError(
            f"Distributed package doesn't have MPI built in: {found} the backend is not served; use gloo on CPUs"
        )
