"""Operators that PyTorch keeps for sparse layouts and page-locked memory, asked for by name (`torch.ops.aten`).

Invariant: tensors are dense here. What PyTorch does with dense operands is done; the rest refuses.
"""

from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .table import composite

_addmm = registry.get("addmm")


def _pin_memory(self: Any, device: Any) -> Any:
    return self.pin_memory() if device is None else self.pin_memory(device)


def _reduced(self: Any, other: Any, reduce: str) -> Any:
    raise NotImplementedError(
        "Could not run 'aten::_sparse_mm_reduce_impl': it takes a sparse matrix, and tensors are dense here"
    )


composite("_pin_memory(Tensor self, Device? device=None) -> Tensor", _pin_memory, method=False)
composite(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    lambda self, mat1, mat2, beta, alpha: _addmm.call((self, mat1, mat2, beta, alpha)),
    method=False,
)
composite(
    "_sparse_mm_reduce_impl(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)",
    _reduced,
    method=False,
)
