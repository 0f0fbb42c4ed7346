"""NPU lines of losses.

Invariant: a mean over nothing is NaN and a sum over nothing 0, as PyTorch has them: the vendor is not asked.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dtype import int64
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase, alias, is_contiguous, numel
from ...common.runtime import empty
from .. import creation
from ..lines import Chosen, accepts_dtype, call, choose, fused, helper, line, npu, parts

NONE, MEAN, SUM = 0, 1, 2


def reduced(text: str, **options: Any) -> Chosen:
    """A loss: what it is of no elements depends on the reduction."""
    return choose("reduction", {NONE: line(text, **options), MEAN: line(text, empty=math.nan, **options),
                                SUM: line(text, empty=0, **options)})


@helper
def spread(weight: Any, self: Any) -> Any:
    """A weight in the shape of what it weighs."""
    if weight is None or not isinstance(weight, TensorBase) or weight._shape == self._shape:
        return weight
    return alias(weight, self._shape, expand_strides(weight, self._shape), weight._offset)


# -- distances ------------------------------------------------------------------------------------------------------
def _mean_or_sum(terms: Any, reduction: int) -> Any:
    return terms if reduction == NONE else terms.mean() if reduction == MEAN else terms.sum()


def _mse(self: Any, target: Any, reduction: int) -> Any:
    return _mean_or_sum((self - target).square(), reduction)


def _mse_backward(grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    apart = self - target
    return apart * grad_output * (2 / max(int(numel(apart)), 1) if reduction == MEAN else 2)


_PAIR = ("self", "target")
_WITH_GRAD = ("grad_output", "self", "target")
npu("mse_loss", reduced("aclnnMseLoss(self, target, reduction_of(self, target, reduction), out)", cast=_PAIR,
                        otherwise=parts(_mse)))
npu("mse_loss_backward", "aclnnMseLossBackward(grad_output, self, target, reduction, out)", cast=_WITH_GRAD,
    absent=parts(_mse_backward))
npu("_smooth_l1_loss", reduced("aclnnSmoothL1Loss(self, target, reduction_of(self, target, reduction), beta, out)",
                               cast=_PAIR))
npu("smooth_l1_loss_backward", "aclnnSmoothL1LossBackward(grad_output, self, target, reduction, beta, out)",
    cast=_WITH_GRAD)

def _alike(self: Any, target: Any, reduction: int, *rest: Any) -> bool:
    """What the vendor's losses with a gradient take: two tensors of one float dtype and shape, with elements, and
    row-major where that decides the layout of the result."""
    return (accepts_dtype("aclnnL1LossBackward", self) and target._dtype is self._dtype and target._shape == self._shape
            and 0 < len(self._shape) <= 8 and numel(self) > 0 and (reduction in (MEAN, SUM) or (
                reduction == NONE and is_contiguous(self) and is_contiguous(target))))


def _pair_loss(function: str, op: str) -> Any:
    def kernel(self: Any, target: Any, reduction: int, *rest: Any) -> Any:
        out = self.new_empty(self._shape if reduction == NONE else ())
        call(function, op, self, target, reduction, *rest, out)
        return out, ()

    return kernel


def _pair_back(op: str, of_self: str, of_target: str | None) -> Any:
    """Without a function for the target, its gradient is that of the other with the sign turned."""
    def kernel(grad: Any, needs: Any, args: Any, kept: Any) -> Any:
        self, target, reduction, *rest = args
        found: list[Any] = [None, None]
        for i, function in enumerate((of_self, of_target)):
            if needs[i]:
                found[i] = self.new_empty(self._shape)
                pair = (self, target) if function is not None else (target, self)
                call(function or of_self, f"{op}_backward", grad, *pair, reduction, *rest, found[i])
        return (*found, None, *(None for _ in rest))

    return kernel


npu("l1_loss", fused(("aclnnL1Loss", "aclnnL1LossBackward"), _alike, _pair_loss("aclnnL1Loss", "l1_loss"),
                     _pair_back("l1_loss", "aclnnL1LossBackward", None)))
npu("kl_div", fused(("aclnnKlDiv", "aclnnKlDivBackward", "aclnnKlDivTargetBackward"), _alike,
                    _pair_loss("aclnnKlDiv", "kl_div"),
                    _pair_back("kl_div", "aclnnKlDivBackward", "aclnnKlDivTargetBackward")))

# -- binary cross entropy -------------------------------------------------------------------------------------------
npu("binary_cross_entropy", reduced("aclnnBinaryCrossEntropy(self, target, spread(weight, self), reduction, out)",
                                    cast=_PAIR))
npu("binary_cross_entropy_backward",
    "aclnnBinaryCrossEntropyBackward(grad_output, self, target, spread(weight, self), reduction, out)",
    cast=_WITH_GRAD)
npu("binary_cross_entropy_with_logits", reduced(
    "aclnnBinaryCrossEntropyWithLogits(self, target, spread(weight, self), spread(pos_weight, self), "
    "reduction_of(self, target, reduction), out)", cast=_PAIR))


# -- negative log likelihood ----------------------------------------------------------------------------------------
@helper
def class_weight(self: Any, weight: Any) -> Any:
    """The weights of the classes, which the vendor always wants."""
    if weight is not None:
        return weight
    out = empty((self._shape[-1 if len(self._shape) < 2 else 1],), (1,), self._dtype, self._device)
    creation.fill(out, 1)
    return out


def _places(self: Any, target: Any, weight: Any, ignore_index: int) -> Any:
    """Classes as a dimension of one element, what is kept, and each place's weight."""
    d = 1 if len(self._shape) > 1 else 0
    classes = target.to(int64)
    if len(self._shape) == 1:
        classes = classes.reshape(())
    kept = classes != ignore_index
    at = classes.where(kept, 0).unsqueeze(d)
    w = kept.to(self._dtype) if weight is None else weight.take(at.squeeze(d)) * kept
    return d, at, w


def _nll(self: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    d, at, w = _places(self, target, weight, ignore_index)
    terms = -self.gather(d, at).squeeze(d) * w
    if reduction == NONE:
        return terms, self.new_zeros(())
    total = w.sum()
    return (terms.sum() / total if reduction == MEAN else terms.sum()), total


def _nll_backward(grad_output: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: int,
                  total_weight: Any) -> Any:
    d, at, w = _places(self, target, weight, ignore_index)
    g = -w * grad_output
    return self.new_zeros(self._shape).scatter(d, at, (g / total_weight if reduction == MEAN else g).unsqueeze(d))


for _forward, _vendor in (("nll_loss", "NLLLoss"), ("nll_loss2d", "NLLLoss2d")):
    npu(f"{_forward}_forward", choose(lambda self, target, *rest: bool(numel(self)), {
        True: line(f"aclnn{_vendor}(self, target, class_weight(self, weight), reduction_of_rows(self, reduction), "
                   "ignore_index, out0, out1)", cast=("self",), otherwise=parts(_nll)),
        False: parts(_nll)}))
    npu(f"{_forward}_backward",
        f"aclnn{_vendor}Backward(grad_output, self, target, class_weight(self, weight), "
        "reduction_of_rows(self, reduction), ignore_index, total_weight, out)", cast=("grad_output", "self"),
        otherwise=parts(_nll_backward))
