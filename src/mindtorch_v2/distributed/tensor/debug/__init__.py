"""`torch.distributed.tensor.debug`: refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(__name__, "visualize_sharding", "CommDebugMode", "{name} is not served; torch.profiler shows collectives")
