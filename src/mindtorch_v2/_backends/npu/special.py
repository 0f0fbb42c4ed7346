"""NPU lines of special functions; whatever is a composition needs none."""
from __future__ import annotations

from ..._dispatch import registry
from ..._ops.special import PLAIN, POLYNOMIALS
from .lines import backed, choose, helper, line, missing, npu

npu("gcd", "aclnnGcd(self, other, out)")
backed("heaviside", "aclnnHeaviside(self, values, out)", expand=("self", "values"))


@helper
def clipped(eps: float | None) -> float:
    """A negative bound is none."""
    return -1.0 if eps is None else eps


# Whoever clips at less than nothing gets what the row makes of it.
_logit = registry.get("logit").row.fallback
npu("logit", choose(lambda self, eps: eps is not None and eps < 0, {
    False: line("aclnnLogit(self, clipped(eps), out)", absent=_logit), True: _logit}))
for _name in (*PLAIN, *POLYNOMIALS, "i0e", "i1", "i1e", "erfcx", "log_ndtr", "ndtri", "zeta"):
    missing(f"special_{_name}", "the vendor has no function for it")
for _name in ("i0", "igamma", "igammac", "nextafter", "frexp"):
    missing(_name, "the vendor has no function for it")
