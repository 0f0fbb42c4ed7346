"""What NPUs refuse of what PyTorch computes on the CPU, by operator: dtypes, "gradient", or "all".

Invariant: each entry is a limit of the vendor's functions, not a hole of ours; the error says which.
"""
from __future__ import annotations

REFUSED: dict[str, tuple[str, ...] | str] = {
    # The vendor counts into equal bins only.
    "histogram": "all",
    # aclnnConvolution multiplies in the matrix unit, which has no integers of this width.
    **{f"nn.functional.conv{across}{rank}d": ("int64",) for across in ("", "_transpose") for rank in (1, 2, 3)},
}
