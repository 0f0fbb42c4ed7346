"""Connectionist temporal classification.

Invariant: the recursion over time runs in logarithms with a very small number in place of minus infinity, so that
derivatives stay finite; what no path reaches is infinite only in the result.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op
from .._dtype import int64
from .composites.formulas import narrow, wide
from .table import composite

_WHERE = registry.get("where")
_STACK = registry.get("stack")
_CAT = registry.get("cat")
_LOW = -1e30


def _labels(targets: Any, lengths: list[int], batch: int) -> Any:
    """(batch, longest) labels; what is behind a row's end is not read."""
    longest = max(lengths, default=0)
    if len(targets._shape) == 2:
        return targets.to(int64).narrow(1, 0, longest)
    rows, at = [], 0
    for n in lengths:
        row = targets.narrow(0, at, n).to(int64)
        rows.append(_CAT.call(((row, row.new_zeros((longest - n,))), 0)) if n < longest else row)
        at += n
    return _STACK.call((tuple(rows), 0)) if rows else targets.new_zeros((batch, 0), dtype=int64)


def _check(log_probs: Any, targets: Any, inputs: list[int], lengths: list[int], blank: int) -> None:
    if not log_probs.is_floating_point():
        raise RuntimeError("log_probs tensor must have a floating point dtype")
    steps, batch, classes = log_probs._shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if len(inputs) != batch:
        raise RuntimeError("input_lengths must be of size batch_size")
    if len(lengths) != batch:
        raise RuntimeError("target_lengths must be of size batch_size")
    for n in inputs:
        if n < 0 or n > steps:
            bound = "least 0" if n < 0 else f"most {steps}"
            raise RuntimeError(f"Expected input_lengths to have value at {bound}, but got value {n} (while checking "
                               "arguments for ctc_loss_allocate_outputs)")
    for n in lengths:
        if n < 0:
            raise RuntimeError(f"Expected target_lengths to have value at least 0, but got value {n} (while checking "
                               "arguments for ctc_loss_allocate_outputs)")
    if len(targets._shape) == 1 and targets._shape[0] != sum(lengths):
        raise RuntimeError(f"Expected tensor to have size {sum(lengths)} at dimension 0, but got size "
                           f"{targets._shape[0]} for argument #2 'targets' (while checking arguments for "
                           "ctc_loss_allocate_outputs)")
    if len(targets._shape) == 2 and targets._shape[1] < max(lengths, default=0):
        raise RuntimeError(f"Expected tensor to have size at least {max(lengths)} at dimension 1, but got size "
                           f"{targets._shape[1]} for argument #2 'targets' (while checking arguments for "
                           "ctc_loss_allocate_outputs)")


def _negative_log(log_probs: Any, targets: Any, inputs: list[int], lengths: list[int], blank: int) -> Any:
    """One loss for each sequence."""
    from .. import tensor

    steps, batch, _ = log_probs._shape
    labels = _labels(targets, lengths, batch)
    longest = labels._shape[1]
    states = 2 * longest + 1
    dev = log_probs._device
    # Blanks around and between the labels.
    path = labels.new_full((batch, states), blank)
    if longest:
        path = path.index_copy(1, tensor(list(range(1, states, 2)), dtype=int64, device=dev), labels)
    # A state may be reached from two before it unless that is a blank or the same label.
    skip = path.new_zeros((batch, states), dtype=log_probs._dtype).bool()
    if states > 2:
        other = (path.narrow(1, 2, states - 2) != path.narrow(1, 0, states - 2)).logical_and(
            path.narrow(1, 2, states - 2) != blank)
        skip = _CAT.call(((skip.narrow(1, 0, 2), other), 1))
    low = log_probs.new_full((), _LOW)
    first = log_probs[0].gather(1, path)
    alpha = _CAT.call(((first.narrow(1, 0, min(2, states)),
                        log_probs.new_full((batch, max(states - 2, 0)), _LOW)), 1))
    ends = tensor(inputs, dtype=int64, device=dev).unsqueeze(1)
    for t in range(1, steps):
        parts = [alpha, _shifted(alpha, 1, low), _WHERE.call((skip, _shifted(alpha, 2, low), low))]
        new = _STACK.call((tuple(parts), 0)).logsumexp((0,)) + log_probs[t].gather(1, path)
        alpha = _WHERE.call((ends > t, new.clamp_min(_LOW), alpha))
    last = tensor([2 * n for n in lengths], dtype=int64, device=dev).unsqueeze(1)
    final = alpha.gather(1, last)
    before = _WHERE.call((last > 0, alpha.gather(1, (last - 1).clamp_min(0)), low))
    loss = -_CAT.call(((final, before), 1)).logsumexp((1,))
    # Without a step only an empty target is possible, and certain.
    for b, n in enumerate(inputs):
        if n == 0:
            value = log_probs.new_full((), 0.0 if lengths[b] == 0 else -2 * _LOW)
            here = tensor([i == b for i in range(batch)], device=dev)
            loss = _WHERE.call((here, value, loss))
    return _WHERE.call((loss > -_LOW / 2, loss.new_full((), float("inf")), loss))


def _shifted(alpha: Any, by: int, low: Any) -> Any:
    batch, states = alpha._shape
    if states <= by:
        return low.expand((batch, states))
    return _CAT.call(((low.expand((batch, by)), alpha.narrow(1, 0, states - by)), 1))


def _normalizer(log_probs: Any, inputs: list[int]) -> Any:
    """Zero, with the probabilities as derivative: PyTorch's gradient is that of the scores in front of log_softmax."""
    from .. import tensor

    steps, batch, _ = log_probs._shape
    ends = tensor(inputs, dtype=int64, device=log_probs._device)
    times = tensor(list(range(steps)), dtype=int64, device=log_probs._device).unsqueeze(1)
    live = (times < ends).to(log_probs._dtype).unsqueeze(2)
    total = (log_probs.exp() * live).sum((0, 2))
    return total - total.detach()


def _lengths(value: Any, name: str) -> list[int]:
    if isinstance(value, (list, tuple)):
        if not all(isinstance(v, int) for v in value):
            raise RuntimeError(f"{name} must be integral")
        return [int(v) for v in value]
    if value._dtype.is_inexact:
        raise RuntimeError(f"{name} must be integral")
    return [int(v) for v in value.reshape((-1,)).tolist()]


def _ctc(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: int,
         zero_infinity: bool) -> Any:
    batched = len(log_probs._shape) == 3
    if len(log_probs._shape) == 0:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if len(log_probs._shape) not in (2, 3):
        raise RuntimeError("ctc_loss: expected log_probs of shape (T, N, C) or (T, C), got "
                           f"{list(log_probs._shape)}")
    if log_probs.numel() == 0:
        raise RuntimeError("log_probs tensor must not be empty")
    inputs, lengths = _lengths(input_lengths, "input_lengths"), _lengths(target_lengths, "target_lengths")
    x = wide(log_probs if batched else log_probs.unsqueeze(1))
    if not targets._dtype.is_integer:
        targets = targets.to(int64)
    t = targets if batched or len(targets._shape) == 2 else targets.unsqueeze(0)
    _check(x, t, inputs, lengths, blank)
    loss = _negative_log(x, t, inputs, lengths, blank)
    finite = loss.detach() != float("inf")
    loss = _WHERE.call((finite, loss + _normalizer(x, inputs), loss))
    if zero_infinity:
        loss = _WHERE.call((finite, loss, loss.new_zeros(())))
    if reduction == 1:
        from .. import tensor

        counts = tensor([max(n, 1) for n in lengths], dtype=loss._dtype, device=loss._device)
        loss = (loss / counts).mean()
    elif reduction == 2:
        loss = loss.sum()
    elif not batched:
        loss = loss.squeeze(0)
    return narrow(loss, log_probs)


_REST = "int blank=0, int reduction=0, bool zero_infinity=False) -> Tensor"
_LISTED: Op = composite("ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
                        f"{_REST}", _ctc, method=False)


def _by_tensors(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *rest: Any) -> Any:
    lengths = tuple(_lengths(input_lengths, "input_lengths")), tuple(_lengths(target_lengths, "target_lengths"))
    return _LISTED.call((log_probs, targets, *lengths, *rest))


composite(f"ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, {_REST}",
          _by_tensors, method=False)
