"""Dropout: of elements, of whole channels, and so that mean and variance stay.

Invariant: as in PyTorch, nothing is drawn where every element stays, or none.
"""
from __future__ import annotations

from typing import Any

from .._core_operators import CORE
from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import bool as bool_
from .create import NEW_EMPTY
from .random import BERNOULLI_P
from .rules.base import like
from .table import composite, op

_EMPTY_LIKE = registry.get("empty_like")
_DRAW: Op = BERNOULLI_P.row.inplace_op


def _kept(input: Any, p: float, train: bool) -> Any:
    """The factors of dropout: 0, or what keeps the expectation. None: everything passes."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or 0 in input._shape:
        return None
    if p == 1:
        return 0
    noise = _EMPTY_LIKE.call((input.detach(), None, None, None, None, None))
    return CORE.div_.call((_DRAW.call((noise, 1.0 - p, None)), 1.0 - p))


def _dropout(input: Any, p: float, train: bool) -> Any:
    kept = _kept(input, p, train)
    return input if kept is None else input * kept


def _dropout_(self: Any, p: float, train: bool) -> Any:
    kept = _kept(self, p, train)
    return self if kept is None else self.mul_(kept)


DROPOUT: Op = composite("dropout(Tensor input, float p, bool train) -> Tensor", _dropout)
composite("dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", _dropout_, method=False)


def _native_dropout_meta(input: Any, p: float, train: Any) -> list[Spec]:
    return [like(input), like(input, None, bool_)]


def _native_dropout(input: Any, p: float, train: Any) -> Any:
    if train is False:
        return input.clone(), input.new_ones(input._shape, dtype=bool_)
    if p == 1:
        return input.new_zeros(input._shape), input.new_zeros(input._shape, dtype=bool_)
    mask = input.new_empty(input._shape, dtype=bool_).bernoulli_(1 - p)
    return (input * mask).mul_(1 / (1 - p)), mask


DROPOUT_BACKWARD: Op = op(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    meta=lambda grad_output, mask, scale: like(grad_output), function=False, method=False,
    kernel=lambda grad_output, mask, scale: grad_output * mask * scale,
    grad=dict(grad_output=lambda g, mask, scale: DROPOUT_BACKWARD.call((g, mask, scale))))


def _native_dropout_grad(g: Any, result1: Any, p: float, train: Any) -> Any:
    scale = 1.0 if train is False else 0.0 if p == 1 else 1 / (1 - p)
    return DROPOUT_BACKWARD.call((g, result1, scale))


op("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", meta=_native_dropout_meta,
   kernel=_native_dropout, grad=dict(input=_native_dropout_grad))


# -- of whole channels, and so that mean and variance stay -------------------------------------------------------------
_ALPHA = 1.7580993408473766


def _noise(input: Any, p: float, train: bool, feature: bool) -> Any:
    """1 where an element stays; None: everything passes."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or 0 in input._shape:
        return None
    if p == 1:
        return 0
    if feature and len(input._shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input._shape[:2], *(1,) * (len(input._shape) - 2)) if feature else input._shape
    return _DRAW.call((NEW_EMPTY.call((input.detach(), shape, None, None, None, False)), 1 - p, None))


def _scaled(noise: Any, p: float) -> Any:
    return noise if p == 1 else CORE.div_.call((noise, 1 - p))


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
