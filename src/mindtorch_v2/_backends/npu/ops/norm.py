"""NPU lines of layer norm and RMS norm.

Invariant: parameters wider than the input are never rounded to it: the computation is done in theirs.
"""
from __future__ import annotations

from typing import Any

from ...._dispatch import registry
from ...._dtype import float32
from ...._ops.norm import rms_eps
from ...._tensor_base import numel
from .. import quirks
from ..helpers import mixed, mixed_backward
from ..lines import accepts_dtype, call, choose, fused, line, npu, parts

_layer_norm = registry.get("native_layer_norm")
_layer_norm_backward = registry.get("native_layer_norm_backward")

# -- layer norm -----------------------------------------------------------------------------------------------------
def _normalized(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Of dtypes that the vendor does not normalize."""
    dims = tuple(range(-len(normalized_shape), 0))
    mean = input.mean(dims, True)
    centred = input - mean
    rstd = (centred * centred).mean(dims, True).add(eps).rsqrt()
    out = centred * rstd
    if weight is not None:
        out = out * weight
    return (out if bias is None else out + bias), mean, rstd


def _normalized_wide(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    wide = (weight if weight is not None else bias)._dtype
    out, mean, rstd = _layer_norm.call((input.to(wide), normalized_shape, weight, bias, eps))
    return out.to(input._dtype), mean, rstd


def _backward(grad_out: Any, input: Any, normalized_shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any,
              output_mask: Any) -> Any:
    """Of dtypes that the vendor does not normalize."""
    dims = tuple(range(-len(normalized_shape), 0))
    rest = tuple(range(len(input._shape) - len(normalized_shape)))
    hat = (input - mean) * rstd
    nothing = input.new_empty((0,))
    grads = [nothing, nothing, nothing]
    if output_mask[0]:
        g = grad_out if weight is None else grad_out * weight
        grads[0] = (g - g.mean(dims, True) - hat * (g * hat).mean(dims, True)) * rstd
    if output_mask[1]:
        grads[1] = (grad_out * hat).sum(rest) if rest else grad_out * hat
    if output_mask[2]:
        grads[2] = grad_out.sum(rest) if rest else grad_out.clone()
    return tuple(grads)


def _backward_wide(grad_out: Any, input: Any, normalized_shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any,
                   output_mask: Any) -> Any:
    wide = mean._dtype
    got = _layer_norm_backward.call((grad_out.to(wide), input.to(wide), normalized_shape, mean, rstd, weight, bias,
                                     output_mask))
    return (got[0].to(input._dtype), *got[1:])


npu("native_layer_norm", choose(mixed, {
    False: line("aclnnLayerNorm(input, normalized_shape, weight, bias, eps, out0, out1, out2)", cast=("input",),
                otherwise=parts(_normalized)),
    True: parts(_normalized_wide)}))
npu("_layer_norm_output", choose(mixed, {
    False: line("aclnnLayerNorm(input, normalized_shape, weight, bias, eps, out, none, none)", cast=("input",),
                otherwise=parts(lambda *args: _normalized(*args)[0])),
    True: parts(lambda *args: _normalized_wide(*args)[0])}))
npu("native_layer_norm_backward", choose(mixed_backward, {
    False: line("aclnnLayerNormBackward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask, "
                "out0, out1, out2)", cast=("grad_out", "input"), empty=0, otherwise=parts(_backward)),
    True: parts(_backward_wide)}))


# -- RMS norm -------------------------------------------------------------------------------------------------------
_RMS = ("aclnnRmsNorm", "aclnnRmsNormGrad")


def _rms_fits(input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> bool:
    n = len(normalized_shape)
    return (accepts_dtype("aclnnRmsNorm", input) and 0 < n < len(input._shape) <= 8 and numel(input) > 0
            and input._shape[-1] * int(input._dtype.itemsize) >= quirks.shortest_row()
            and tuple(input._shape[-n:]) == tuple(normalized_shape) and (weight is None or (
                tuple(weight._shape) == tuple(normalized_shape) and weight._dtype is input._dtype)))


def _rms_norm(input: Any, normalized_shape: Any, weight: Any, eps: float | None) -> Any:
    gamma = input.new_ones(normalized_shape) if weight is None else weight
    n = len(input._shape) - len(normalized_shape)
    out = input.new_empty(input._shape)
    rstd = input.new_empty((*input._shape[:n], *(1 for _ in normalized_shape)), dtype=float32)
    call("aclnnRmsNorm", "rms_norm", input, gamma, rms_eps(input._dtype) if eps is None else eps, out, rstd)
    return out, (rstd, gamma)


def _rms_back(grad: Any, needs: Any, args: Any, kept: Any) -> Any:
    input, weight = args[0], args[2]
    rstd, gamma = kept
    of_input = input.new_empty(input._shape)
    of_gamma = gamma.new_empty(gamma._shape, dtype=float32)
    call("aclnnRmsNormGrad", "rms_norm_backward", grad, input, rstd.reshape((-1,)), gamma, of_input, of_gamma)
    return of_input if needs[0] else None, None, of_gamma.to(weight._dtype) if needs[2] else None, None


npu("rms_norm", fused(_RMS, _rms_fits, _rms_norm, _rms_back))
