"""CPU lines of losses."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dispatch.op import PartsKernel
from ...._ops.loss import entropy_in_parts, logits_entropy_in_parts
from ..kernels.base import need_float
from ..kernels.dense import deliver, dense, is_last, lies_last, target
from ..kernels.loss import Bent, Entropy, Mse, MseBackward, Nll, NllBackward
from ..lines import cpu, into

_Operand = tuple[Any, int, tuple[int, ...], int]


def _planes(t: Any) -> _Operand:
    """Storage, offset, strides and dtype of dense images as (image, place, class)."""
    _, c, h, w = t._shape
    strides = (c * h * w, c, 1) if lies_last(t) else (c * h * w, 1, h * w)
    return t._storage, int(t._offset), strides, t._dtype.code


def _line(t: Any, one: bool) -> _Operand:
    """Those of a dense tensor as one run, or of one number."""
    return t._storage, int(t._offset), () if one else (1,), t._dtype.code


def _weights(weight: Any, code: int) -> _Operand:
    return (None, 0, (), code) if weight is None else _line(dense(weight), True)


def _rows(t: Any) -> tuple[tuple[int, int], int]:
    n, c, h, w = t._shape
    return (n, h * w), c


def _nll2d(outs: Any, self: Any, target_: Any, weight: Any, reduction: int, ignore_index: int) -> None:
    need_float("nll_loss2d_forward_out_frame", self._dtype)
    scores = self if is_last(self) else dense(self)
    losses, total = (target(o, o._dtype) for o in outs)
    _native.nll_loss(*_planes(scores), *_line(dense(target_), False), *_weights(weight, self._dtype.code),
                     *_line(losses, reduction != 0), *_line(total, True), *_rows(self), reduction, ignore_index)
    for o, made in zip(outs, (losses, total)):
        deliver(o, made)


def _nll2d_backward(out: Any, grad_output: Any, self: Any, target_: Any, weight: Any, reduction: int, ignore_index: int,
                    total_weight: Any) -> None:
    need_float("nll_loss2d_backward_out_frame", self._dtype)
    result = out if is_last(out) else target(out, out._dtype)
    _native.nll_loss_backward(
        *_line(dense(grad_output), reduction != 0), *_line(dense(target_), False), *_weights(weight, self._dtype.code),
        *_line(dense(total_weight), True), *_planes(result), *_rows(self), reduction, ignore_index)
    deliver(out, result)


cpu("nll_loss2d_forward", into(_nll2d))
cpu("nll_loss2d_backward", into(_nll2d_backward))

cpu("binary_cross_entropy", Entropy(PartsKernel(entropy_in_parts), False))
cpu("binary_cross_entropy_with_logits", Entropy(PartsKernel(logits_entropy_in_parts), True))
cpu("nll_loss_forward", Nll())
cpu("nll_loss_backward", NllBackward())
cpu("mse_loss", Mse())
cpu("mse_loss_backward", MseBackward())
cpu("_smooth_l1_loss", Bent(_native.SMOOTH_L1, "smooth_l1_cpu"))
cpu("huber_loss", Bent(_native.HUBER, "huber_cpu"))
