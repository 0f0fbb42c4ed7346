"""Dropout of whole channels, and dropout that keeps mean and variance.

Invariant: as in PyTorch, nothing is drawn where every element stays, or none.
"""
from __future__ import annotations

from typing import Any

from .table import composite

_ALPHA = 1.7580993408473766


def _noise(input: Any, p: float, train: bool, feature: bool) -> Any:
    """1 where an element stays; None: everything passes."""
    if p < 0 or p > 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or 0 in input._shape:
        return None
    if p == 1:
        return input.detach().new_zeros(())
    if feature and len(input._shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input._shape[:2], *(1 for _ in input._shape[2:])) if feature else input._shape
    return input.detach().new_empty(shape).bernoulli_(1 - p)


def _scaled(noise: Any, p: float) -> Any:
    return noise if p == 1 else noise.div_(1 - p)


def _alpha(noise: Any, p: float) -> tuple[Any, Any]:
    a = 1.0 / ((_ALPHA * _ALPHA * p + 1) * (1 - p)) ** 0.5
    return noise * a, (noise - 1) * (_ALPHA * a) + _ALPHA * a * p


def _declare_dropout(name: str, feature: bool, alpha: bool) -> None:
    def fresh(input: Any, p: float, train: bool) -> Any:
        noise = _noise(input, p, train, feature)
        if noise is None:
            return input
        if not alpha or p == 1:
            return input * _scaled(noise, p)
        factor, shift = _alpha(noise, p)
        return input * factor + shift

    def inside(self: Any, p: float, train: bool) -> Any:
        noise = _noise(self, p, train, feature)
        if noise is None:
            return self
        if not alpha or p == 1:
            return self.mul_(_scaled(noise, p))
        factor, shift = _alpha(noise, p)
        return self.mul_(factor).add_(shift)

    composite(f"{name}(Tensor input, float p, bool train) -> Tensor", fresh)
    composite(f"{name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", inside, method=False)


_declare_dropout("feature_dropout", True, False)
_declare_dropout("alpha_dropout", False, True)
_declare_dropout("feature_alpha_dropout", True, True)
