"""`torch._refs._conversions`: references of conversions between dtypes."""

from __future__ import annotations

import mindtorch_v2 as torch

from ._names import finder

_METHODS = "bfloat16 bool byte cdouble cfloat chalf char double float half int long short"
_PAIRS = "complex polar"

_method = finder("_refs._conversions", _METHODS, lambda: torch.Tensor)
_function = finder("_refs._conversions", _PAIRS, lambda: torch)


def __getattr__(name: str) -> object:
    return _function(name) if name in _PAIRS.split() else _method(name)


__all__ = [*_METHODS.split(), *_PAIRS.split()]  # noqa: PLE0604
