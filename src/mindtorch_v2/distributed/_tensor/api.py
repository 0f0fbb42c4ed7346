"""The former name of `torch.distributed.tensor`."""

from __future__ import annotations

from ..tensor import *  # noqa: F403
