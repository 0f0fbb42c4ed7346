"""Forward and backward halves that PyTorch's functions are made of, by the names its programs have for them.

Invariant: as in `inner`, none has a kernel or a derivative of its own.
"""
from __future__ import annotations

from typing import Any

from .._dtype import int32, int64
from .._tensor_base import is_contiguous, numel
from .made_of import call, inner
from .rules.base import wrap_dim

# -- distances ----------------------------------------------------------------------------------------------------
_CDIST = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def _cdist(x1: Any, x2: Any, p: float, compute_mode: int | None) -> Any:
    mode = 0 if compute_mode is None else compute_mode
    if not 0 <= mode <= 2:
        raise RuntimeError(f"possible modes: 0, 1, 2, but was: {mode}")
    return call("cdist", x1, x2, p, _CDIST[mode])


def _pdist(self: Any, p: float) -> Any:
    if not is_contiguous(self):
        raise RuntimeError("_pdist_forward requires contiguous input")
    return call("pdist", self, p)


inner("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", _cdist, function=False)
inner("_pdist_forward(Tensor self, float p=2) -> Tensor", _pdist, function=False)


# -- log_sigmoid: PyTorch's CPU keeps exp(-|x|) ---------------------------------------------------------------------
def _log_sigmoid(self: Any) -> Any:
    return call("log_sigmoid", self), self.abs().neg().exp()


def _log_sigmoid_backward(grad_output: Any, self: Any, buffer: Any) -> Any:
    if not numel(buffer):
        return call("_log_sigmoid_backward", grad_output, self)
    part = buffer / (buffer + 1)
    return grad_output * call("where", self < 0, 1 - part, part)


inner("log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)", _log_sigmoid, function=False)
inner("log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor", _log_sigmoid_backward,
      function=False)


# -- runs of equal values ---------------------------------------------------------------------------------------------
def _consecutive(self: Any, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    values, inverse, counts = call("_unique_consecutive", self, return_inverse, return_counts, dim)
    if dim is not None:
        return values, inverse, counts
    # What nobody asked for has no elements.
    nothing = values.detach().new_empty((0,)).long()
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing.clone()


inner("unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, "
      "Tensor, Tensor)", _consecutive, function=False)
inner("unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
      "Tensor, Tensor)", lambda self, dim, inverse, counts: _consecutive(self, inverse, counts, dim), function=False)

# -- bags of rows -----------------------------------------------------------------------------------------------------
_SUM, _MEAN, _MAX = 0, 1, 2


def _bag_weight(grad: Any, indices: Any, offset2bag: Any, bag_size: Any, maximum_indices: Any, num_weights: int,
                scale_grad_by_freq: bool, mode: int, per_sample_weights: Any, padding_idx: int) -> Any:
    """The gradient of the rows: each gets that of the bags it is in."""
    if not grad._dtype.is_floating_point:
        raise RuntimeError("Expected tensor for argument #1 'grad_' to have one of the following scalar types: Half, "
                           f"BFloat16, Float, Double; but got {grad.type()} instead (while checking arguments for "
                           "embedding_bag)")
    if num_weights < 0:
        raise RuntimeError("zeros: Dimension size must be non-negative.")
    if mode not in (_SUM, _MEAN, _MAX):
        raise RuntimeError(f"embedding_bag: expected mode to be 0 (sum), 1 (mean) or 2 (max), but got {mode}")
    for t in (offset2bag, bag_size, maximum_indices):
        if t._dtype is not int32 and t._dtype is not int64:
            raise RuntimeError(f"expected scalar type Long but found {t._dtype.scalar_name}")
    total = grad.new_zeros((num_weights, grad._shape[wrap_dim(1, len(grad._shape))]))
    if mode == _MAX:
        kept = grad * (bag_size != 0).unsqueeze(1).to(grad._dtype)
        return total.scatter_add(0, maximum_indices.long(), kept)
    rows = grad.index_select(0, offset2bag)
    factor = rows.new_ones((rows._shape[0],))
    if per_sample_weights is not None:
        factor = factor * per_sample_weights
    if mode == _MEAN:
        factor = factor / bag_size.clamp_min(1).index_select(0, offset2bag).to(grad._dtype)
    if scale_grad_by_freq:
        counts = grad.new_zeros((num_weights,)).index_add(0, indices, factor.detach().new_ones((numel(indices),)))
        factor = factor / counts.index_select(0, indices)
    if padding_idx >= 0:
        factor = factor * (indices != padding_idx).to(grad._dtype)
    return total.index_add(0, indices, rows * factor.unsqueeze(1))


def _bags_of(indices: Any, offsets: Any) -> Any:
    """The bag of each index: the forward pass leaves it out where it does not need it."""
    starts = offsets.new_zeros((numel(indices) + 1,)).index_add(0, offsets, offsets.new_ones((numel(offsets),)))
    return starts.cumsum(0)[:-1] - 1


def _bag_samples(grad: Any, weight: Any, indices: Any, offsets: Any, offset2bag: Any, mode: int,
                 padding_idx: int) -> Any:
    """The gradient of the weights of samples."""
    if mode != _SUM:
        raise RuntimeError("embedding_bag_backward: per_sample_weights only supported for mode='sum'")
    if not numel(offset2bag) and offset2bag._dtype not in (indices._dtype, offsets._dtype):
        raise RuntimeError(f"index_add_(): self ({offset2bag._dtype.scalar_name}) and source "
                           f"({indices._dtype.scalar_name}) must have the same scalar type")
    bags = offset2bag if numel(offset2bag) or not numel(indices) else _bags_of(indices, offsets)
    products = (grad.index_select(0, bags) * weight.index_select(0, indices)).sum((1,))
    return products if padding_idx < 0 else products * (indices != padding_idx).to(products._dtype)


inner("_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor "
      "maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int "
      "padding_idx=-1) -> Tensor", _bag_weight, function=False)
inner("_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor "
      "offset2bag, int mode, int padding_idx=-1) -> Tensor", _bag_samples, function=False)
