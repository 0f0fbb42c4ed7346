"""`torch.distributed.tensor.parallel.input_reshard`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(__name__, "input_reshard", "", "{name} is not served; use torch.utils.checkpoint")
