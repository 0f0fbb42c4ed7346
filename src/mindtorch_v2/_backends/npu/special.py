"""NPU lines of special functions; whatever is a composition needs none."""
from __future__ import annotations

from ..._ops.special import PLAIN, POLYNOMIALS
from .lines import missing, npu

npu("gcd", "aclnnGcd(self, other, out)")
for _name in (*PLAIN, *POLYNOMIALS, "i0e", "i1", "i1e", "erfcx", "log_ndtr", "ndtri", "zeta"):
    missing(f"special_{_name}", "the vendor has no function for it")
for _name in ("i0", "igamma", "igammac", "nextafter", "frexp"):
    missing(_name, "the vendor has no function for it")
