"""NPU lines of batch and group normalization.

Invariant: the vendor normalizes operands of one dtype; what is mixed, or missing where its documents do not say that it
may be, is composed of other operators.
"""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ..lines import choose, helper, line, npu


def _alike(*tensors: Any) -> bool:
    return all(t is not None and t._dtype is tensors[0]._dtype for t in tensors)


def _whole_batch(input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
                 momentum: float, eps: float) -> bool:
    given = [t for t in (input, weight, bias, running_mean, running_var) if t is not None]
    return _alike(*given) and (training or (running_mean is not None and running_var is not None))


def _whole_batch_backward(grad_out: Any, input: Any, weight: Any, running_mean: Any, running_var: Any, save_mean: Any,
                          save_invstd: Any, train: bool, eps: float, output_mask: Any) -> bool:
    saved = (save_mean, save_invstd) if train else ()
    return _alike(input, grad_out, weight, running_mean, running_var, *saved)


@helper
def given(parameter: Any, input: Any, channels: int, value: int) -> Any:
    """A parameter that the vendor wants even where there is none."""
    return input.new_full((channels,), value) if parameter is None else parameter


def _whole_group(input: Any, weight: Any, bias: Any, *rest: Any) -> bool:
    return _alike(*[t for t in (input, weight, bias) if t is not None])


def _whole_group_backward(grad_out: Any, input: Any, mean: Any, rstd: Any, weight: Any, N: int, C: int, HxW: int,
                          group: int, output_mask: Any) -> bool:
    return all(output_mask) and _alike(input, grad_out, mean, rstd, weight)


def _serve(name: str, question: Any, text: str) -> None:
    composed = registry.get(name).row.fallback
    npu(name, choose(question, {True: line(text, absent=composed), False: composed}))


_serve("native_batch_norm", _whole_batch, "aclnnBatchNorm(input, weight, bias, running_mean, running_var, training, "
       "momentum, eps, out0, out1, out2)")
_serve("native_batch_norm_backward", _whole_batch_backward,
       "aclnnBatchNormBackward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, "
       "output_mask, out0, out1, out2)")
_serve("native_group_norm", _whole_group,
       "aclnnGroupNorm(input, given(weight, input, C, 1), given(bias, input, C, 0), N, C, HxW, group, eps, out0, out1, "
       "out2)")
_serve("native_group_norm_backward", _whole_group_backward,
       "aclnnGroupNormBackward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask, out0, out1, out2)")
