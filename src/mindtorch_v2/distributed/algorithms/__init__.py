"""`torch.distributed.algorithms`: what is built of collectives."""

from __future__ import annotations

from .join import Join as Join
from .join import Joinable as Joinable
from .join import JoinHook as JoinHook
