"""NPU lines of searching and counting."""
from __future__ import annotations

from typing import Any

from .lines import helper, missing, npu


@helper
def to_the_right(right: bool, side: Any) -> bool:
    return right or side == "right"


npu("searchsorted", "aclnnSearchSorted(sorted_sequence, self, out_int32, to_the_right(right, side), sorter, out)",
    numbers=dict(self="aclnnSearchSorteds(sorted_sequence, self, out_int32, to_the_right(right, side), sorter, out)"))
npu("histc", "aclnnHistc(self, bins, min, max, out)", empty=0)
for _name in ("histogram.bins_tensor", "histogram.bin_ct"):
    missing(_name, "the vendor counts into equal bins only (histc)")
