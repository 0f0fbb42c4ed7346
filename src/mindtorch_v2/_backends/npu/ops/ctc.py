"""NPU lines of connectionist temporal classification.

Invariant: the vendor has a loss for each sequence, also an infinite one; what is made of them is decided here.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dtype import int32, int64
from ..lines import accepts_dtype, call, fused, npu

_NONE, _MEAN = 0, 1


def _fits(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: int,
          zero_infinity: bool) -> bool:
    if (len(log_probs._shape) != 3 or 0 in log_probs._shape or not accepts_dtype("aclnnCtcLoss", log_probs)
            or log_probs._dtype.itemsize < 4 or targets._dtype not in (int32, int64)):
        return False
    steps, batch, classes = log_probs._shape
    longest = max(target_lengths, default=0)
    shaped = (len(targets._shape) == 2 and targets._shape[0] == batch and targets._shape[1] >= longest) or (
        len(targets._shape) == 1 and targets._shape[0] == sum(target_lengths))
    return (shaped and len(input_lengths) == len(target_lengths) == batch and 0 <= blank < classes
            and all(0 < n <= steps for n in input_lengths) and all(n > 0 for n in target_lengths))


def _ctc(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: int,
         zero_infinity: bool) -> Any:
    steps, batch, _ = log_probs._shape
    losses = log_probs.new_empty((batch,))
    alpha = log_probs.new_empty((batch, steps, 2 * max(target_lengths) + 1))
    call("aclnnCtcLoss", "ctc_loss", log_probs, targets, tuple(input_lengths), tuple(target_lengths), blank,
         zero_infinity, losses, alpha)
    shown = losses.masked_fill(losses == math.inf, 0) if zero_infinity else losses
    if reduction == _MEAN:
        return (shown / _counts(losses, target_lengths)).mean(), (losses, alpha)
    return (shown.clone() if reduction == _NONE else shown.sum()), (losses, alpha)


def _counts(losses: Any, target_lengths: Any) -> Any:
    from .... import tensor

    return tensor([float(max(n, 1)) for n in target_lengths], dtype=losses._dtype, device=losses._device)


def _back(grad: Any, needs: Any, args: Any, kept: Any) -> Any:
    log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity = args
    losses, alpha = kept
    batch = losses._shape[0]
    each = grad.expand((batch,)) if reduction != _NONE else grad
    if reduction == _MEAN:
        each = each / (_counts(losses, target_lengths) * batch)
    out = log_probs.new_empty(log_probs._shape)
    call("aclnnCtcLossBackward", "ctc_loss_backward", each.contiguous(), log_probs, targets, tuple(input_lengths),
         tuple(target_lengths), losses, alpha, blank, zero_infinity, out)
    return out, None, None, None, None, None, None


npu("ctc_loss.IntList", fused(("aclnnCtcLoss", "aclnnCtcLossBackward"), _fits, _ctc, _back))
