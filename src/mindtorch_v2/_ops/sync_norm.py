"""The parts of batch normalization that processes exchange: statistics, their union, and both halves of the backward.

Invariant: all are sums over everything but the channels, so those of two halves of a batch make those of the whole. As
in PyTorch, the CPU has `batch_norm_update_stats` alone.
"""
from __future__ import annotations

from typing import Any

from .._dtype import bfloat16, float16, float32
from .table import composite


def _here(name: str, input: Any) -> None:
    if input._device.type == "cpu":
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend. This could be because the operator "
            "doesn't exist for this backend: synchronised batch normalization runs on accelerators, as in PyTorch.")


def _precise(t: Any) -> Any:
    """Half precision is summed up in single."""
    return t.to(float32) if t._dtype is float16 or t._dtype is bfloat16 else t


def _others(t: Any) -> tuple[int, ...]:
    return tuple(d for d in range(len(t._shape)) if d != 1)


def _along(values: Any, like: Any) -> Any:
    """One value for each channel, in a shape that broadcasts against an input."""
    return values.reshape([-1 if d == 1 else 1 for d in range(len(like._shape))])


def _move(running: Any, value: Any, momentum: float) -> None:
    if running is not None:
        running.copy_((1 - momentum) * running + momentum * value)


def _stats(input: Any, eps: float) -> Any:
    _here("batch_norm_stats", input)
    x = _precise(input)
    return x.mean(_others(x)), (x.var(_others(x), correction=0) + eps).rsqrt()


def _elemt(input: Any, weight: Any, bias: Any, mean: Any, invstd: Any, eps: float) -> Any:
    _here("batch_norm_elemt", input)
    x = (_precise(input) - _along(mean, input)) * _along(invstd, input)
    if weight is not None:
        x = x * _along(weight, input)
    if bias is not None:
        x = x + _along(bias, input)
    return x.to(input._dtype)


def _gather_counts(input: Any, mean: Any, invstd: Any, running_mean: Any, running_var: Any, momentum: float,
                   eps: float, counts: Any) -> Any:
    """Rows of `mean` and `invstd` are processes, which saw `counts` values of each channel."""
    _here("batch_norm_gather_stats_with_counts", input)
    share = counts.to(mean._dtype).reshape((-1, 1))
    total = share.sum()
    whole = (mean * share).sum((0,)) / total
    squares = ((invstd.pow(-2) - eps + (mean - whole).pow(2)) * share).sum((0,))
    _move(running_mean, whole, momentum)
    _move(running_var, squares / (total - 1), momentum)
    return whole, (squares / total + eps).rsqrt()


def _gather(input: Any, mean: Any, invstd: Any, running_mean: Any, running_var: Any, momentum: float, eps: float,
            count: int) -> Any:
    _here("batch_norm_gather_stats", input)
    if not mean._shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    counts = mean.new_full((mean._shape[0],), count)
    return _gather_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts)


def _backward_reduce(grad_out: Any, input: Any, mean: Any, invstd: Any, weight: Any, input_g: bool, weight_g: bool,
                     bias_g: bool) -> Any:
    _here("batch_norm_backward_reduce", input)
    g = _precise(grad_out)
    others = _others(input)
    sums = g.sum(others)
    moments = (g * (_precise(input) - _along(mean, input))).sum(others)
    like = weight if weight is not None else mean
    return (sums if input_g else None, moments if input_g else None,
            (moments * invstd).to(like._dtype) if weight_g else None, sums.to(like._dtype) if bias_g else None)


def _backward_elemt(grad_out: Any, input: Any, mean: Any, invstd: Any, weight: Any, sum_dy: Any, sum_dy_xmu: Any,
                    count: Any) -> Any:
    _here("batch_norm_backward_elemt", input)
    total = count.sum()
    inner = _precise(grad_out) - _along(sum_dy / total, input)
    inner = inner - (_precise(input) - _along(mean, input)) * _along(invstd.pow(2) * sum_dy_xmu / total, input)
    scale = invstd if weight is None else invstd * weight
    return (inner * _along(scale, input)).to(input._dtype)


def _update(input: Any, running_mean: Any, running_var: Any, momentum: float) -> Any:
    x = _precise(input)
    mean, var = x.mean(_others(x)), x.var(_others(x), correction=0)
    count = 1
    for d in _others(x):
        count *= x._shape[d]
    _move(running_mean, mean, momentum)
    _move(running_var, var * count / (count - 1) if count > 1 else var * float("nan"), momentum)
    return mean, var


_RUNNING = "Tensor? running_mean, Tensor? running_var, float momentum"
composite("batch_norm_stats(Tensor input, float eps) -> (Tensor, Tensor)", _stats, method=False)
composite("batch_norm_elemt(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor invstd, float eps) "
          "-> Tensor", _elemt, method=False)
composite(f"batch_norm_gather_stats(Tensor input, Tensor mean, Tensor invstd, {_RUNNING}, float eps, int count) "
          "-> (Tensor, Tensor)", _gather, method=False)
composite(f"batch_norm_gather_stats_with_counts(Tensor input, Tensor mean, Tensor invstd, {_RUNNING}, float eps, "
          "Tensor counts) -> (Tensor, Tensor)", _gather_counts, method=False)
composite("batch_norm_backward_reduce(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, "
          "bool input_g, bool weight_g, bool bias_g) -> (Tensor, Tensor, Tensor, Tensor)", _backward_reduce,
          method=False)
composite("batch_norm_backward_elemt(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, "
          "Tensor sum_dy, Tensor sum_dy_xmu, Tensor count) -> Tensor", _backward_elemt, method=False)
composite(f"batch_norm_update_stats(Tensor input, {_RUNNING}) -> (Tensor, Tensor)", _update, method=False)
