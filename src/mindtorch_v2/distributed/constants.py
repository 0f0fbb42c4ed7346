"""How long collectives wait when nobody says."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["default_pg_timeout", "default_pg_nccl_timeout"]

_DEFAULT_PG_TIMEOUT = timedelta(minutes=30)
default_pg_timeout: timedelta = _DEFAULT_PG_TIMEOUT
default_pg_nccl_timeout: timedelta | None = timedelta(minutes=10)
