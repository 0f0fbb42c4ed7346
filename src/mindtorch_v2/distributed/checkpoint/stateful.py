"""`torch.distributed.checkpoint.stateful`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(__name__, "", "Stateful", "{name} is not served; torch.save and torch.load write and read checkpoints")
