"""The cross entropy of a linear layer's output, whole or a few rows at a time.

Invariant: both ways give the same loss; with options no tensor holds the scores of more rows than one piece has, in the
forward pass or in the backward pass, which computes them again.
"""

import math
import warnings
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ._losses import cross_entropy
from ._rows import here

if TYPE_CHECKING:
    from ..modules.linear_cross_entropy_options import LinearCrossEntropyOptions

__all__ = ["linear_cross_entropy"]

_HALVES = (torch.float16, torch.bfloat16)


def _piece(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    ignore_index: int,
    dtype: Any,
) -> Tensor:
    """The losses of some rows."""
    scores = input.to(dtype) @ linear_weight.to(dtype).t()
    if linear_bias is not None:
        scores = scores + linear_bias.to(dtype)
    weight = None if weight is None else weight.to(dtype)
    return cross_entropy(scores, target, weight=weight, ignore_index=ignore_index, reduction="none")


def _in_pieces(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    options: "LinearCrossEntropyOptions",
) -> Tensor:
    from ...utils.checkpoint import checkpoint

    for t in (input, linear_weight):
        if t.layout is not torch.strided:
            from ..._sparse.refusals import refused

            raise refused("expand" if t is linear_weight and t.layout is torch.sparse_coo else "as_strided", [t])
    batch, features = input.shape
    rows = options._rows(batch, features, linear_weight.shape[0], input.dtype in _HALVES)
    dtype = options._computed_in(input.dtype)
    losses = [
        checkpoint(
            _piece,
            input[start : start + rows],
            linear_weight,
            target[start : start + rows],
            linear_bias,
            weight,
            ignore_index,
            dtype,
            use_reentrant=False,
            preserve_rng_state=False,
        )
        for start in range(0, batch, rows)
    ]
    loss: Tensor = torch.cat(losses) if losses else input.new_zeros((0,), dtype=dtype)
    if reduction != "none":
        loss = loss.sum()
    if reduction == "mean":
        counted = target != ignore_index
        if weight is None:
            loss = loss / counted.sum()
        else:
            chosen = weight.to(dtype)[torch.where(counted, target, 0)]
            loss = loss / torch.where(counted, chosen, 0).sum()
    return loss.to(input.dtype)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: "LinearCrossEntropyOptions | None" = None,
) -> Tensor:
    """`cross_entropy(linear(input, linear_weight, linear_bias), target, ...)`; `options` save memory."""
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    features, classes = input.shape[-1], linear_weight.shape[0]
    places = tuple(linear_weight.shape[1:-1])
    if features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {features} and {linear_weight.shape[-1]}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *places):
        raise RuntimeError(f"expected linear_bias shape {(classes, *places)}, got {tuple(linear_bias.shape)}")
    if places and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    shape = (*input.shape[:-1], classes, *places)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        if reduction in ("mean", "sum", "none") and not label_smoothing and target.dtype == torch.int64 and not places:
            if input.dim() == 2:
                return _in_pieces(input, linear_weight, target, linear_bias, weight, reduction, ignored, options)
            loss = _in_pieces(
                input[None], linear_weight, target[None], linear_bias, weight, reduction, ignored, options
            )
            return loss.squeeze(0)
        warnings.warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, "
            "label_smoothing == 0, target.dtype == int64, out_features == (). Got "
            f"reduction={reduction!r}, label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
            f"out_features={places}, tracing=False, linear_bias.shape="
            f"{tuple(linear_bias.shape) if linear_bias is not None else None}.",
            stacklevel=2,
        )
    if places:
        rows = math.prod(places, start=classes)
        linear_weight = linear_weight.reshape((rows, features))
        linear_bias = None if linear_bias is None else linear_bias.reshape((rows,))
    scores = here("linear")(input, linear_weight, linear_bias).reshape(shape)
    return cross_entropy(
        scores, target, weight=weight, reduction=reduction, ignore_index=ignored, label_smoothing=label_smoothing
    )
