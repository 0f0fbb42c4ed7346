"""Reductions of masked tensors: `torch.masked`'s function; an element counts if one that it is made of does."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .. import _ops
from .core import is_masked_tensor, not_implemented
from .creation import as_masked_tensor, masked_tensor

__all__: list[str] = []

REDUCE_NAMES = "sum mean amin amax argmin argmax prod all norm var std".split()
_BY_FUNCTION: dict[Any, str] = {}
for _home in (torch.ops.aten, torch, torch.Tensor):
    _BY_FUNCTION.update({getattr(_home, name): name for name in REDUCE_NAMES})
REDUCE_FNS = list(_BY_FUNCTION)


def _all(data: Any, dim: Any = None, keepdim: bool = False, mask: Any = None) -> Any:
    """Whether all elements that count are true."""
    if mask is not None:
        data = data.masked_fill(~mask, True)
    return data.all() if dim is None else torch.all(data, dim=dim, keepdim=keepdim)


def _function(name: str) -> Any:
    return _all if name == "all" else getattr(_ops, name)


def _first_of_sparse(name: str, data: Any, mask: Any) -> Any:
    """Where in the whole tensor the extreme of a COO tensor's values stands."""
    found = _function(name)(data.values(), mask=mask).to(dtype=torch.int)
    at = data.indices().unbind(1)[int(found)]
    steps = data.size().numel() / torch.tensor(data.size(), device=data.device).cumprod(0)
    return torch.sum(at * steps)


def _whole(name: str, self: Any) -> Any:
    """A reduction over all dimensions."""
    data = self.get_data()
    mask = self.get_mask().values() if self.is_sparse else self.get_mask()
    if name == "all":
        result = _all(data, mask=mask)
    elif name in ("argmin", "argmax") and self.is_sparse_coo():
        result = _first_of_sparse(name, data, mask)
    elif self.is_sparse:
        result = _function(name)(masked_tensor(data.values(), mask))
    else:
        result = _function(name)(self, mask=mask)
    return as_masked_tensor(result, torch.any(mask))


def _along(name: str, self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """A reduction over some dimensions."""
    if self.is_sparse:
        return not_implemented(f"The sparse version of {name} is not implemented in reductions.")
    if not is_masked_tensor(self):
        raise TypeError("Input to reduce_dim must be a MaskedTensor")
    mask = self.get_mask()
    if name == "all":
        result = _all(self.get_data(), dim=dim, keepdim=keepdim, mask=mask)
    else:
        result = _function(name)(self, dim=dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return as_masked_tensor(result, _any_along(mask, dim, keepdim))


def _norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The vector norm; a matrix has no other here."""
    if isinstance(p, str) and p != "fro":
        raise NotImplementedError(f"norm(): argument 'p' must be a number or 'fro' for a MaskedTensor, got '{p}'")
    dims = tuple(range(input.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    order = 2 if p is None or isinstance(p, str) else p
    mask = input.get_mask()
    result = _ops.norm(input, order, dims, keepdim=keepdim, dtype=dtype, mask=mask)
    return as_masked_tensor(result, _any_along(mask, dims, keepdim))


def _any_along(mask: Any, dim: Any, keepdim: bool) -> Any:
    for d in sorted((dim,) if isinstance(dim, int) else dim, reverse=True):
        mask = torch.any(mask, dim=d, keepdim=keepdim)
    return mask


def _is_reduction(fn: Any) -> bool:
    return fn in _BY_FUNCTION


def _reduce_dim_args(input: Any, dim: Any, keepdim: bool = False, dtype: Any = None) -> tuple[Any, Any, bool, Any]:
    return input, dim, keepdim, dtype


def _apply_reduction(fn: Any, *args: Any, **kwargs: Any) -> Any:
    name = _BY_FUNCTION.get(fn)
    if name is None:
        return NotImplemented
    if len(args) == 1 and not kwargs:
        return _whole(name, args[0])
    if name == "norm":
        return _norm(*args, **kwargs)
    return _along(name, *_reduce_dim_args(*args, **kwargs))
