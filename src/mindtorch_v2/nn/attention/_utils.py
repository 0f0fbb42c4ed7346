"""What the kinds of attention check alike.

Invariant: nothing here computes.
"""

from __future__ import annotations

from typing import Any


def _validate_sdpa_input(query: Any, key: Any, value: Any, *, allow_lowp_kv: bool = False) -> None:
    """Dtypes, devices and numbers of dimensions; `allow_lowp_kv` lets keys and values have other dtypes."""
    if not allow_lowp_kv and (query.dtype != key.dtype or query.dtype != value.dtype):
        raise ValueError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.device != key.device or query.device != value.device:
        raise ValueError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{query.device}, key.device: {key.device}, and value.device: {value.device} instead."
        )
    if query.dim() < 2 or key.dim() < 2 or value.dim() < 2:
        raise ValueError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.dim()}, key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
