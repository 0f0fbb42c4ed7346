"""Derivatives that PyTorch has operators for, by their names: the formulas of the rows they belong to.

Invariant: as in `inner`, none has a kernel or a derivative of its own.
"""
from __future__ import annotations

import math
from typing import Any

from .._sizes import LONG_MAX
from .._tensor_base import numel
from .activation_lazy import _noised_backward
from .fractional import _back as _fractional
from .made_of import Ints, call, inner
from .special import _logit_grad


def _masked_scatter(grad_output: Any, mask: Any, sizes: Ints) -> Any:
    taken = call("masked_select", grad_output, mask)
    total = math.prod(sizes)
    if total < numel(taken) or total > LONG_MAX:
        raise RuntimeError(f"shape '{list(sizes)}' is invalid for input of size {numel(taken)}")
    return call("cat", (taken, taken.new_zeros((total - numel(taken),))), 0).view(sizes)


def _masked_select(grad: Any, input: Any, mask: Any) -> Any:
    shape = call("mul", input.detach(), mask)._shape if input._shape != mask._shape else input._shape
    return grad.new_zeros(shape).masked_scatter(mask.expand(shape), grad)


def _gather(grad: Any, self: Any, dim: int, index: Any, sparse_grad: bool) -> Any:
    if sparse_grad:
        raise NotImplementedError("gather_backward with sparse_grad=True: use gather and its derivative")
    return grad.new_zeros(self._shape).scatter_add(dim, index, grad)


inner("logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor", _logit_grad, function=False)
inner("masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor", _masked_scatter,
      function=False)
inner("masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor", _masked_select, function=False)
inner("gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor", _gather,
      function=False)
inner("index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
      lambda grad, self_sizes, dim, index: grad.new_zeros(self_sizes).index_add(dim, index, grad), function=False)
inner("rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool "
      "training, bool self_is_result) -> Tensor", _noised_backward, function=False)


def _declare_fractional(rank: int) -> None:
    name = f"fractional_max_pool{rank}d_backward"

    def run(grad_output: Any, self: Any, kernel_size: Ints, output_size: Ints, indices: Any) -> Any:
        if (*self._shape[:-rank], *output_size) != tuple(grad_output._shape):
            raise RuntimeError(f"{name}(): gradOutput sizes unexpected")
        return _fractional(rank, grad_output, indices, tuple(self._shape))

    inner(f"{name}(Tensor grad_output, Tensor self, int[{rank}] kernel_size, int[{rank}] output_size, Tensor indices) "
          "-> Tensor", run, function=False)


_declare_fractional(2)
_declare_fractional(3)
