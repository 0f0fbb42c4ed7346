"""NPU lines of random counts."""
from __future__ import annotations

from ..lines import missing

for _name in ("poisson", "binomial"):
    missing(_name, "the vendor has no such distribution")
