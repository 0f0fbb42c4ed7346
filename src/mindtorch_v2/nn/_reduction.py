"""Reduction names of the losses as the numbers their operators take.

Invariant: 0 is none, 1 is mean, 2 is sum, as in PyTorch's schemas.
"""

from __future__ import annotations

import warnings

_CODES = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    code = _CODES.get(reduction) if isinstance(reduction, str) else None
    if code is None:
        if isinstance(reduction, str) and reduction == "elementwise_mean":
            warnings.warn(
                "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2
            )
            return 1
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return code


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """What the two old flags, now deprecated, meant."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = "mean" if size_average and reduce else "sum" if reduce else "none"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=2
        )
    return name
