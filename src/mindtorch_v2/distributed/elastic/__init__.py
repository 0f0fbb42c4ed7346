"""`torch.distributed.elastic`: what programs started by torchrun use."""

from __future__ import annotations

from ..._unserved import offer_module as _offer_module

_offer_module(__name__, "control_plane", "worker_main", "", "{name} is not served; the launcher watches its workers")
