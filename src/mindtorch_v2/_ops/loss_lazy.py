"""Losses by margins, pairs and counts.

Invariant: `reduction` is PyTorch's number: 0 none, 1 mean, 2 sum. They are written in terms of other operators and are
differentiated through them.
"""
from __future__ import annotations

import math
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import int64
from .loss import MEAN, NONE, SUM
from .rules.base import like
from .rules.dtype_checks import not_implemented
from .table import composite, op

_where = registry.get("where")


def reduced(t: Any, reduction: int) -> Any:
    return t.mean() if reduction == MEAN else t.sum() if reduction == SUM else t


def _soft_meta(self: Any, target: Any, reduction: int) -> Spec:
    from .rules.pointwise import broadcast_shapes

    shape = broadcast_shapes(self._shape, target._shape)
    if not self._dtype.is_inexact:
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {self._dtype.scalar_name}")
    if tuple(self._shape) != tuple(shape):
        raise RuntimeError(f"output with shape {list(self._shape)} doesn't match the broadcast shape {list(shape)}")
    return like(self, shape if reduction == NONE else ())


def _soft_grad(g: Any, self: Any, target: Any, reduction: int) -> Any:
    slope = (target * self).neg().sigmoid() * target.neg()
    return g * slope / slope.numel() if reduction == MEAN else g * slope


op("soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", meta=_soft_meta, function=False,
   method=False, out=True, grad=dict(self=_soft_grad),
   kernel=lambda self, target, reduction: reduced((self * target).neg().exp().log1p(), reduction))


def _ranking(input1: Any, input2: Any, target: Any, margin: float, reduction: int) -> Any:
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


composite("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) "
          "-> Tensor", _ranking, method=False)


def _hinge(self: Any, target: Any, margin: float, reduction: int) -> Any:
    zero = self.new_zeros(())
    # The margin is of the input's dtype: integers stay integers, which have no mean.
    slack = margin - self if self._dtype.is_inexact else self.new_full(self._shape, margin) - self
    apart = _where.call((target == 1, zero, slack.clamp_min(0)))
    near = _where.call((target == -1, zero, self))
    return reduced(apart + near, reduction)


composite("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=0) -> Tensor", _hinge,
          method=False)


def _cosine_embedding(input1: Any, input2: Any, target: Any, margin: float, reduction: int) -> Any:
    n = len(target._shape)
    if n not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if len(input1._shape) != n + 1 or len(input2._shape) != n + 1:
        raise RuntimeError(
            f"{n}D target tensor expects {n + 1}D input tensors, but found inputs with sizes {list(input1._shape)} and "
            f"{list(input2._shape)}.")
    eps = 1e-12
    product = (input1 * input2).sum((n,))
    first = (input1 * input1).sum((n,)) + eps
    second = (input2 * input2).sum((n,)) + eps
    cosine = product / (first * second).sqrt()
    zero = cosine.new_zeros(())
    near = _where.call((target == 1, 1 - cosine, zero))
    apart = _where.call((target == -1, (cosine - margin).clamp_min(0), zero))
    return reduced(near + apart, reduction)


composite("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) "
          "-> Tensor", _cosine_embedding, method=False)


def _triplet(anchor: Any, positive: Any, negative: Any, margin: float, p: float, eps: float, swap: bool,
             reduction: int) -> Any:
    dims = tuple(len(t._shape) for t in (anchor, positive, negative))
    if dims[0] != dims[1] or dims[1] != dims[2]:
        raise RuntimeError(
            f"The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs")
    from .._api.lazy_tables import load

    load("distance")
    distance = registry.get("pairwise_distance")
    near = distance.call((anchor, positive, p, eps, False))
    far = distance.call((anchor, negative, p, eps, False))
    if swap:
        far = far.minimum(distance.call((positive, negative, p, eps, False)))
    return reduced((near - far + margin).clamp_min(0), reduction)


composite("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, "
          "float eps=1e-06, bool swap=False, int reduction=0) -> Tensor", _triplet, method=False)


def _poisson(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


composite("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) "
          "-> Tensor", _poisson, method=False)


# -- one label or several ---------------------------------------------------------------------------------------------
def _check_classes(self: Any, target: Any, weight: Any) -> tuple[int, int]:
    shape, n = self._shape, len(self._shape)
    rows = 1 if n < 2 else shape[0]
    classes = self.numel() if n < 2 else shape[1]
    if n > 2 or (n > 0 and shape[-1] == 0):
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
                           f"{list(shape)}")
    if len(target._shape) > 1 or target.numel() != rows:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
                           f"samples (batch size). Expected target size [{rows}], but got {list(target._shape)}. "
                           f"Input has shape {list(shape)}.")
    if weight is not None and (len(weight._shape) > 1 or weight.numel() != classes):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight._shape)}")
    if target._dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target._dtype.scalar_name}")
    return rows, classes


def _multi_margin(self: Any, target: Any, p: Any, margin: Any, weight: Any, reduction: int) -> Any:
    if p not in (1, 2):
        raise RuntimeError(f"multi_margin_loss: Invalid p, expected 1 or 2 but got {p}")
    rows, classes = _check_classes(self, target, weight)
    x, t = self.reshape((rows, classes)), target.reshape((rows, 1))
    try:
        own = x.gather(1, t)
    except RuntimeError as error:
        if "is out of bounds" not in str(error):
            raise
        raise RuntimeError("target out of range") from None
    distance = (margin - own + x).clamp_min(0)
    if p == 2:
        distance = distance * distance
    if weight is not None:
        distance = distance * weight.reshape((-1,)).index_select(0, t.reshape((-1,))).reshape((rows, 1))
    loss = distance.scatter(1, t, 0.0).sum((1,)) / classes
    if reduction == NONE:
        return loss if len(target._shape) else loss.reshape(())
    return reduced(loss, reduction) if rows else loss.sum()


composite("multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, "
          "int reduction=Mean) -> Tensor", _multi_margin, function=False, method=False)


def _multilabel_rows(self: Any, target: Any) -> tuple[Any, Any, Any, Any]:
    """Rows of the input, which labels count, where they are, and which classes they name."""
    n = len(self._shape)
    if n > 2 or (n > 0 and self._shape[-1] == 0):
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
                           f"{list(self._shape)}")
    if tuple(target._shape) != tuple(self._shape) and not (n == 0 and target.numel() == 1):
        raise RuntimeError(f"inconsistent target size: {list(target._shape)} for input of size: {list(self._shape)}")
    if self._dtype.name not in ("float32", "float64"):
        raise not_implemented("multilabel_margin_loss_forward_out_frame", self._dtype)
    if target._dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target._dtype.scalar_name}")
    rows = 1 if n < 2 else self._shape[0]
    classes = self.numel() if n < 2 else self._shape[1]
    x, t = self.reshape((rows, classes)), target.reshape((rows, classes))
    if not t.is_meta and t.numel() and (int(t.max()) >= classes or int(t.min()) < -1):
        raise RuntimeError("argument #2 'target' is out of range")
    # Labels end at the first negative one.
    valid = (t >= 0).to(int64).cumprod(1).to(x._dtype)
    places = t.clamp(0, max(classes - 1, 0))
    return x, valid, places, x.new_zeros((rows, classes)).scatter_add(1, places, valid) > 0


def _multilabel(self: Any, target: Any, reduction: int) -> Any:
    x, valid, places, labelled = _multilabel_rows(self, target)
    own = x.gather(1, places)
    pairs = (1 - own.unsqueeze(2) + x.unsqueeze(1)).clamp_min(0)
    counted = valid.unsqueeze(2) * labelled.logical_not().to(x._dtype).unsqueeze(1)
    loss = (pairs * counted).sum((1, 2)) / x._shape[1]
    if reduction == NONE:
        return loss if len(self._shape) == 2 else loss.reshape(())
    return reduced(loss, reduction) if x._shape[0] else loss.sum()


def _multilabel_forward(self: Any, target: Any, reduction: int) -> Any:
    """The loss, and which classes are labelled, in the input's dtype."""
    labelled = _multilabel_rows(self.detach(), target)[3]
    return MULTILABEL.call((self, target, reduction)), labelled.to(self._dtype).reshape(target._shape)


MULTILABEL: Op = composite("multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
                           _multilabel, function=False, method=False)
composite("multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor "
          "is_target)", _multilabel_forward, function=False, method=False)
