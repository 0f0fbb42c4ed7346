"""Losses.

Invariant: `reduction` is PyTorch's number: 0 none, 1 mean, 2 sum; a loss with a kernel has its backward as a row.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.keys import CPU
from .._dispatch.op import Op, Spec
from .._dtype import int64, uint8
from .._layout import contiguous_format
from .._tensor_base import all_values, numel
from .composites import norm as composed
from .composites.rows import ROWS
from .rules import norm as rules
from .rules.base import like
from .table import composite, op

NONE, MEAN, SUM = 0, 1, 2
registry.get("_log_softmax")  # `ROWS.log_softmax`, which cross entropy ends in


def _reduced(t: Any, reduction: int) -> Any:
    return t if reduction == NONE else t.mean() if reduction == MEAN else t.sum()


def _scaled_total(t: Any, reduction: int, count: int) -> Any:
    """The derivative of a reduced loss with respect to its incoming gradient."""
    return t if reduction == NONE else t.sum() if reduction == SUM else t.sum() / count


# -- negative log likelihood --------------------------------------------------------------------------------------
_NLL = "Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index"
_NLL_DEFAULT = "Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, int ignore_index=-100"
NLL_BACKWARD: Op = op(
    f"nll_loss_backward(Tensor grad_output, {_NLL}, Tensor total_weight) -> Tensor", meta=rules.NllBackward(),
    function=False, method=False,
    grad=dict(grad_output=lambda g, target, weight, reduction, ignore_index: ROWS.nll_forward.call(
        (g, target, weight, reduction, ignore_index))[0], self=lambda g: g.new_zeros(g._shape)))
ROWS.nll_forward = op(
    f"nll_loss_forward({_NLL}) -> (Tensor output, Tensor total_weight)", meta=rules.Nll(), node="NllLossBackward0",
    nondiff=("total_weight",), function=False, method=False,
    grad=dict(self=lambda g, self, target, weight, reduction, ignore_index, total_weight: NLL_BACKWARD.call(
        (g, self, target, weight, reduction, ignore_index, total_weight))))


def _nll2d_meta(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> list[Spec]:
    if len(target._shape) != 3:
        raise RuntimeError("only batches of spatial targets supported (3D tensors) but got targets of dimension: "
                           f"{len(target._shape)}")
    if len(self._shape) != 4:
        raise RuntimeError(
            f"only batches of spatial inputs supported (4D tensors), but got input of dimension: {len(self._shape)}")
    if (self._shape[0],) + self._shape[2:] != target._shape:
        raise RuntimeError(f"size mismatch (got input: {list(self._shape)} , target: {list(target._shape)}")
    rules.check_classes(self._shape[1], weight)
    if target._dtype not in (int64, uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target._dtype.scalar_name}")
    return [like(self, target._shape if reduction == NONE else ()), like(self, ())]


def _rows(t: Any) -> Any:
    """(N, C, H, W) as a matrix with one row per place."""
    n, c, h, w = t._shape
    return t.permute((0, 2, 3, 1)).reshape((n * h * w, c))


def _nll2d(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    out, total = ROWS.nll_forward.call((_rows(self), target.reshape((-1,)), weight, reduction, ignore_index))
    return (out.reshape(target._shape) if reduction == NONE else out), total


def _nll2d_backward(grad_output: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int,
                    total_weight: Any) -> Any:
    g = grad_output.reshape((-1,)) if reduction == NONE else grad_output
    n, c, h, w = self._shape
    rows = NLL_BACKWARD.call((g, _rows(self), target.reshape((-1,)), weight, reduction, ignore_index, total_weight))
    return rows.reshape((n, h, w, c)).permute((0, 3, 1, 2)).clone(memory_format=contiguous_format)


def _nll2d_backward_meta(grad_output: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int,
                         total_weight: Any) -> Spec:
    _nll2d_meta(self, target, weight, reduction, ignore_index)
    if numel(total_weight) != 1:
        raise RuntimeError("expected total_weight to be a single element tensor, got: "
                           f"{list(total_weight._shape)} ({numel(total_weight)} elements)")
    shape = list(grad_output._shape)
    if reduction == NONE and grad_output._shape != target._shape:
        raise RuntimeError(f"grad_output must have same dimension as target (3) but got dimension: {shape}")
    if reduction != NONE and (len(shape) > 1 or numel(grad_output) != 1):
        raise RuntimeError(f"Expected a single element grad_output tensor, but got: {shape}")
    return rules.same(self)


NLL2D_BACKWARD: Op = op(
    f"nll_loss2d_backward(Tensor grad_output, {_NLL}, Tensor total_weight) -> Tensor", meta=_nll2d_backward_meta,
    function=False, method=False, kernel=_nll2d_backward,
    grad=dict(grad_output=lambda g, target, weight, reduction, ignore_index: NLL2D.call(
        (g, target, weight, reduction, ignore_index))[0], self=lambda g: g.new_zeros(g._shape)))
NLL2D: Op = op(
    f"nll_loss2d_forward({_NLL}) -> (Tensor output, Tensor total_weight)", meta=_nll2d_meta, node="NllLoss2DBackward0",
    nondiff=("total_weight",), function=False, method=False, kernel=_nll2d,
    grad=dict(self=lambda g, self, target, weight, reduction, ignore_index, total_weight: NLL2D_BACKWARD.call(
        (g, self, target, weight, reduction, ignore_index, total_weight))))
composite(f"nll_loss({_NLL_DEFAULT}) -> Tensor", lambda *args: ROWS.nll_forward.call(args)[0], function=False,
          method=False)
composite(f"nll_loss2d({_NLL_DEFAULT}) -> Tensor", lambda *args: NLL2D.call(args)[0], function=False, method=False)


def _nll_nd(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """More than two dimensions: places besides the batch."""
    shape = self._shape
    if len(shape) == 4:
        return NLL2D.call((self, target, weight, reduction, ignore_index))[0]
    wanted = (shape[0],) + shape[2:]
    if target._shape[1:] != shape[2:]:
        raise RuntimeError(f"Expected target size {list(wanted)}, got {list(target._shape)}")
    flat = (shape[0], shape[1], 1, -1) if numel(self) else (shape[0], shape[1], 0, 0)
    places = (shape[0], 1, -1) if numel(target) else (shape[0], 0, 0)
    out = NLL2D.call((self.contiguous().view(flat), target.contiguous().view(places), weight, reduction,
                      ignore_index))[0]
    return out.view(wanted) if reduction == NONE else out


ROWS.nll_nd = _nll_nd
NLL_ND: Op = composite(f"nll_loss_nd({_NLL_DEFAULT}) -> Tensor", composed.NllOf(), function=False, method=False)


# -- cross entropy ------------------------------------------------------------------------------------------------
def _class_weight(weight: Any, shape: Any, dim: int) -> Any:
    wide = [1] * len(shape)
    wide[dim] = weight._shape[0]
    return weight.view(tuple(wide))


def _probabilities(self: Any, target: Any, weight: Any, reduction: int, smoothing: float, dim: int) -> Any:
    classes = self.size(dim)
    if weight is not None and weight._shape != (classes,):
        raise RuntimeError(f"cross_entropy: weight tensor should be defined either for all {classes} classes or no "
                           f"classes but got weight tensor of shape: {list(weight._shape)}")
    logp = self.log_softmax(dim, self._dtype)
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    terms = logp * target
    if weight is not None:
        terms = terms * _class_weight(weight, self._shape, dim)
    if reduction == NONE:
        return terms.sum((dim,)).neg()
    total = terms.sum().neg()
    return total if reduction == SUM else total / (int(numel(self)) / classes if classes else 0.0)


def _smoothed(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int, smoothing: float,
              dim: int) -> Any:
    classes = self.size(dim)
    logp = self.log_softmax(dim, self._dtype)
    exact = NLL_ND.call((logp, target, weight, reduction, ignore_index))
    terms = logp if weight is None else logp * _class_weight(weight, self._shape, dim)
    ignored = target == ignore_index
    smooth = terms.sum((dim,)).neg().masked_fill(ignored, 0.0)
    if reduction == SUM:
        smooth = smooth.sum()
    elif reduction == MEAN:
        if weight is None:
            smooth = smooth.sum() / ignored.logical_not().sum()
        else:
            weights = weight.gather(0, target.masked_fill(ignored, 0).flatten())
            smooth = smooth.sum() / weights.masked_fill(ignored.flatten(), 0.0).sum()
    return exact * (1 - smoothing) + smooth * (smoothing / classes)


def _cross_entropy(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int,
                   label_smoothing: float) -> Any:
    dim = 0 if len(self._shape) == 1 else 1
    if label_smoothing < 0 or label_smoothing > 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if self._shape == target._shape:
        if not target._dtype.is_floating_point:
            raise RuntimeError("Expected floating point type for target with class probabilities, got "
                               f"{target._dtype.scalar_name}")
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _probabilities(self, target, weight, reduction, label_smoothing, dim)
    if label_smoothing > 0:
        return _smoothed(self, target, weight, reduction, ignore_index, label_smoothing, dim)
    return NLL_ND.call((self.log_softmax(dim, self._dtype), target, weight, reduction, ignore_index))


ROWS.cross_entropy = _cross_entropy
composite(f"cross_entropy_loss({_NLL_DEFAULT}, float label_smoothing=0.0) -> Tensor", composed.CrossEntropyOf(),
          function=False, method=False)


# -- distances ----------------------------------------------------------------------------------------------------
def _spread(g: Any, reduction: int, count: int) -> Any:
    """What reaches each element of a loss from the gradient of its reduction."""
    return g / count if reduction == MEAN else g


def _mse_grad_grad(g: Any, grad_output: Any, reduction: int) -> Any:
    return g * grad_output * (2.0 / max(int(numel(g)), 1) if reduction == MEAN else 2.0)


MSE_BACKWARD: Op = op(
    "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    meta=rules.PairLossBackward(), function=False, method=False,
    grad=dict(grad_output=lambda g, self, target, reduction: _scaled_total(
        g * (self - target) * 2, reduction, max(numel(g), 1)),
        self=lambda g, grad_output, reduction: _mse_grad_grad(g, grad_output, reduction),
        target=lambda g, grad_output, reduction: _mse_grad_grad(g, grad_output, reduction).neg()))
op("mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", meta=rules.PairLoss(2), out=True,
   function=False, method=False,
   grad=dict(self=lambda g, self, target, reduction: MSE_BACKWARD.call((g, self, target, reduction)),
             target=lambda g, self, target, reduction: MSE_BACKWARD.call((g, target, self, reduction))))
composite("l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
          lambda self, target, reduction: _reduced((self - target).abs(), reduction), function=False, method=False)


def _not_negative(beta: float) -> None:
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")


def _bent(self: Any, target: Any, knee: float) -> Any:
    """z * z / 2 up to the knee, knee * (z - knee / 2) from there on, for the distance z: m * (z - m / 2) with the
    smaller one of the two for m. A new tensor."""
    z = (self - target).abs_()
    m = z.clamp(max=knee)
    return z.sub_(m, alpha=0.5).mul_(m)


def _smooth_terms(self: Any, target: Any, beta: float) -> Any:
    terms = _bent(self, target, beta)
    return terms if beta == 1 else terms.div_(beta)


def _smooth_backward(grad_output: Any, self: Any, target: Any, reduction: int, beta: float) -> Any:
    x = self - target
    bent = (x if beta == 1 else x.div_(beta)).clamp_(-1, 1)
    return _spread(grad_output, reduction, numel(x)) * bent


SMOOTH_BACKWARD: Op = op(
    "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor",
    meta=rules.PairLossBackward(), function=False, method=False, kernel=_smooth_backward,
    grad=dict(grad_output=lambda g, self, target, reduction, beta: _scaled_total(
        g * ((self - target) / beta).clamp(-1, 1), reduction, numel(g)),
        self=lambda g, grad_output, self, target, reduction, beta: _smooth_second(g, grad_output, self, target,
                                                                                  reduction, beta),
        target=lambda g, grad_output, self, target, reduction, beta: _smooth_second(
            g, grad_output, self, target, reduction, beta).neg()))


def _smooth_second(g: Any, grad_output: Any, self: Any, target: Any, reduction: int, beta: float) -> Any:
    inside = (self - target).abs() < beta
    return g * _spread(grad_output, reduction, numel(g)) * inside / beta


_SMOOTH = op(
    "_smooth_l1_loss(Tensor self, Tensor target, int reduction, float beta) -> Tensor",
    meta=rules.PairLoss(2), node="SmoothL1LossBackward0", function=False, method=False,
    kernel=lambda self, target, reduction, beta: _reduced(_smooth_terms(self, target, beta), reduction),
    grad=dict(self=lambda g, self, target, reduction, beta: SMOOTH_BACKWARD.call((g, self, target, reduction, beta)),
              target=lambda g, self, target, reduction, beta: SMOOTH_BACKWARD.call((g, target, self, reduction, beta))))


def _smooth_l1(self: Any, target: Any, reduction: int, beta: float) -> Any:
    _not_negative(beta)
    if beta == 0:
        return _reduced((self - target).abs(), reduction)
    return _SMOOTH.call((self, target, reduction, beta))


composite("smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor", _smooth_l1,
          function=False, method=False)


def _huber_meta(self: Any, target: Any, reduction: int, delta: float) -> Any:
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    return rules.PairLoss(2).infer((self, target, reduction))


def _huber(self: Any, target: Any, reduction: int, delta: float) -> Any:
    return _reduced(_bent(self, target, delta), reduction)


def _huber_backward(grad_output: Any, self: Any, target: Any, reduction: int, delta: float) -> Any:
    x = self - target
    return _spread(grad_output, reduction, numel(x)) * x.clamp_(-delta, delta)


def _huber_second(g: Any, grad_output: Any, self: Any, target: Any, reduction: int, delta: float) -> Any:
    return g * _spread(grad_output, reduction, numel(g)) * ((self - target).abs() < delta)


HUBER_BACKWARD: Op = op(
    "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor",
    meta=rules.PairLossBackward(), function=False, method=False, kernel=_huber_backward,
    grad=dict(grad_output=lambda g, self, target, reduction, delta: _scaled_total(
        g * (self - target).clamp(-delta, delta), reduction, numel(g)),
        self=_huber_second,
        target=lambda g, grad_output, self, target, reduction, delta: _huber_second(
            g, grad_output, self, target, reduction, delta).neg()))
op("huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor", meta=_huber_meta,
   function=False, method=False, kernel=_huber,
   grad=dict(self=lambda g, self, target, reduction, delta: HUBER_BACKWARD.call((g, self, target, reduction, delta)),
             target=lambda g, self, target, reduction, delta: HUBER_BACKWARD.call((g, target, self, reduction, delta))))


# -- binary cross entropy -----------------------------------------------------------------------------------------
_EPSILON = 1e-12


def entropy_in_parts(self: Any, target: Any, weight: Any, reduction: int) -> Any:
    # As PyTorch, other devices are not asked: the answer would have to be waited for.
    if self._keys & CPU and numel(self) and not all_values(self.ge(0).logical_and(self.le(1))).all().item():
        raise RuntimeError(rules.NO_PROBABILITY)
    # The input comes first: the losses lie in memory as it does.
    terms = self.neg().log1p().clamp(min=-100) * (target - 1) - self.log().clamp(min=-100) * target
    return _reduced(terms if weight is None else (terms * weight).to(terms._dtype), reduction)


def _bce_backward(grad_output: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    g = grad_output * (self - target) / ((1 - self) * self).clamp(min=_EPSILON)
    if weight is not None:
        g = g * weight
    return _spread(g, reduction, numel(self))


def _bce_target(g: Any, self: Any, weight: Any, reduction: int) -> Any:
    out = g * ((1 - self).log().clamp(min=-100) - self.log().clamp(min=-100))
    return _spread(out if weight is None else out * weight, reduction, numel(self))


def _bce_second(g: Any, grad_output: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    """d/dself of (self - target) / (self (1 - self))."""
    base = ((1 - self) * self).clamp(min=_EPSILON)
    out = g * grad_output * (self * self - 2 * self * target + target) / (base * base)
    return _spread(out if weight is None else out * weight, reduction, numel(self))


def _bce_grad_output(g: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    out = g * (self - target) / ((1 - self) * self).clamp(min=_EPSILON)
    if weight is not None:
        out = out * weight
    return _scaled_total(out, reduction, numel(self))


def _bce_backward_target(g: Any, grad_output: Any, self: Any, weight: Any, reduction: int) -> Any:
    out = g * grad_output / ((1 - self) * self).clamp(min=_EPSILON)
    return _spread(out if weight is None else out * weight, reduction, numel(self)).neg()


BCE_BACKWARD: Op = op(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int "
    "reduction=Mean) -> Tensor", meta=rules.LikeSecond(), function=False, method=False, kernel=_bce_backward,
    grad=dict(grad_output=_bce_grad_output, self=_bce_second, target=_bce_backward_target))
op("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor",
   meta=rules.entropy, function=False, method=False, kernel=entropy_in_parts,
   grad=dict(self=lambda g, self, target, weight, reduction: BCE_BACKWARD.call((g, self, target, weight, reduction)),
             target=_bce_target))


def logits_entropy_in_parts(self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    log_sigmoid = self.clamp(max=0) - self.abs().neg().exp().log1p()
    if pos_weight is None:
        terms = (1 - target) * self - log_sigmoid
    else:
        terms = (1 - target) * self - log_sigmoid * ((pos_weight - 1) * target + 1)
    return _reduced(terms if weight is None else terms * weight, reduction)


def _logits_backward(g: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    if pos_weight is None:
        d = self.sigmoid() - target
    else:
        t = pos_weight * target
        d = (t + 1 - target) * self.sigmoid() - t
    d = d * g if weight is None else d * g * weight
    return _spread(d, reduction, numel(self))


def _logits_target(g: Any, self: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    if pos_weight is None:
        d = self.neg() * g
    else:
        low = self.abs().neg().exp().log1p()
        # log_sigmoid(-x) - pos_weight * log_sigmoid(x)
        d = ((self.neg().clamp(max=0) - low) - pos_weight * (self.clamp(max=0) - low)) * g
    return _spread(d if weight is None else d * weight, reduction, numel(self))


op("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
   "int reduction=0) -> Tensor", meta=rules.entropy_of_logits, method=False,
   kernel=logits_entropy_in_parts,
   grad=dict(self=_logits_backward, target=_logits_target))


def _kl_div(self: Any, target: Any, reduction: int, log_target: bool) -> Any:
    if not self._dtype.is_inexact or not target._dtype.is_inexact:
        raise RuntimeError("kl_div: Integral inputs not supported.")
    terms = target.exp() * (target - self) if log_target else target.xlogy(target) - target * self
    return _reduced(terms, reduction)


composite("kl_div(Tensor self, Tensor target, int reduction=0, *, bool log_target=False) -> Tensor", _kl_div,
          method=False)
