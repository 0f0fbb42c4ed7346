"""CPU lines of connectionist temporal classification.

Invariant: the native module has a loss for each sequence, also an infinite one; what is made of them is decided here.
"""
from __future__ import annotations

import math
from typing import Any

from .... import _native
from ...._dispatch import registry
from ...._dispatch.keys import AUTOGRAD, CPU
from ...._dispatch.op import FnKernel
from ...._dtype import int64
from ...._from_data import tensor
from ...._tensor_base import numel
from ...recorded import Whole, recorder
from ..kernels.dense import dense_as, fresh
from ..lines import cpu

_CTC = registry.get("ctc_loss.IntList")
_NONE, _MEAN = 0, 1


def _fits(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: int,
          zero_infinity: bool) -> bool:
    """Whether there is nothing to refuse; the parts say what is wrong with the rest."""
    if len(log_probs._shape) != 3 or log_probs._dtype.name not in ("float32", "float64"):
        return False
    steps, batch, classes = log_probs._shape
    if targets._device is not log_probs._device or not targets._dtype.is_integer:
        return False
    if steps == 0 or batch == 0 or not 0 <= blank < classes:
        return False
    longest = max(target_lengths, default=0)
    shaped = (len(targets._shape) == 2 and targets._shape[0] == batch and targets._shape[1] >= longest) or (
        len(targets._shape) == 1 and targets._shape[0] == sum(target_lengths))
    return (shaped and len(input_lengths) == len(target_lengths) == batch and min(target_lengths) >= 0
            and min(input_lengths) >= 0 and max(input_lengths) <= steps)


def _given(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int) -> tuple[Any, ...]:
    """What both calls begin with."""
    x, labels = dense_as(log_probs, log_probs._dtype), dense_as(targets, int64)
    lengths, starts, at = tuple(target_lengths), [], 0
    for i, n in enumerate(lengths):
        starts.append(i * labels._shape[1] if len(labels._shape) == 2 else at)
        at += n
    return (x._storage, int(x._offset), labels._storage, int(labels._offset), numel(labels), x._dtype.code,
            (*x._shape, max(lengths)), tuple(starts), tuple(input_lengths), lengths, blank)


def _no_class(log_probs: Any, targets: Any, target_lengths: Any) -> RuntimeError:
    """The error for labels that the native module refused: the words of the parts, which gather by them."""
    classes = log_probs._shape[2]
    flat = len(targets._shape) == 1
    used = targets.tolist() if flat else [n for row, k in zip(targets.tolist(), target_lengths) for n in row[:k]]
    wrong = next((n for n in used if not 0 <= n < classes), "of a label")
    return RuntimeError(f"index {wrong} is out of bounds for dimension 1 with size {classes}")


def _ctc(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: int,
         zero_infinity: bool) -> Any:
    (steps, batch, _), dt = log_probs._shape, log_probs._dtype
    losses, alpha = fresh((batch,), dt), fresh((batch, steps, 2 * max(target_lengths) + 1), dt)
    given = _given(log_probs, targets, input_lengths, target_lengths, blank)
    if not _native.ctc(*given, alpha._storage, 0, losses._storage, 0):
        raise _no_class(log_probs, targets, target_lengths)
    shown: Any = losses
    if zero_infinity:
        shown = shown.masked_fill(shown == math.inf, 0)
    if reduction == _MEAN:
        return (shown / _counts(dt, target_lengths)).mean(), (losses, alpha)
    return (shown.clone() if reduction == _NONE else shown.sum()), (losses, alpha)


def _counts(dt: Any, target_lengths: Any) -> Any:
    return tensor([float(max(n, 1)) for n in target_lengths], dtype=dt)


def _back(grad: Any, needs: Any, args: Any, kept: Any) -> Any:
    log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity = args
    losses, alpha = kept
    batch, dt = losses._shape[0], log_probs._dtype
    each = grad.expand((batch,)) if reduction != _NONE else grad
    if reduction == _MEAN:
        each = each / (_counts(dt, target_lengths) * batch)
    by, out = dense_as(each, dt), fresh(log_probs._shape, dt)
    given = _given(log_probs, targets, input_lengths, target_lengths, blank)
    if not _native.ctc_backward(by._storage, int(by._offset), *given, alpha._storage, int(alpha._offset),
                                losses._storage, int(losses._offset), zero_infinity, out._storage, 0):
        raise _no_class(log_probs, targets, target_lengths)
    return out, None, None, None, None, None, None


_WHOLE = Whole(_CTC, int(CPU), _fits, _ctc, _back)
cpu("ctc_loss.IntList", FnKernel(_WHOLE))
_CTC.kernels[int(CPU | AUTOGRAD)] = FnKernel(recorder(_WHOLE))
