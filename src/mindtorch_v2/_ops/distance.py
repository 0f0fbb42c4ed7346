"""Distances, similarities and bilinear forms, in terms of other operators.

Invariant: a norm decides what its derivative is at zero; nothing here has a derivative of its own.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.keys import BACKENDS
from .._dispatch.op import Op
from .._dtype_names import cpp_name
from .._promotion import promote
from .composites.formulas import narrow, wide
from .rules.pointwise import broadcast_shapes
from .table import composite

_NORM = registry.get("linalg_vector_norm")


def _between(t: Any, p: float) -> Any:
    """The norm of differences; a count of differences has a derivative too, which is zero."""
    return _norm(t, p) + (t * 0).sum((-1,)) if p == 0 else _norm(t, p)


# From this many rows on PyTorch takes the way by a matrix product.
_MANY = 25


def _norm(t: Any, p: float, keepdim: bool = False) -> Any:
    return _NORM.call((t, p, (-1,), keepdim, None))


def _euclidean(x1: Any, x2: Any) -> Any:
    """By |a - b|^2 = |a|^2 - 2ab + |b|^2."""
    first = (x1 * x1).sum((-1,), True)
    second = (x2 * x2).sum((-1,), True)
    squares = first + second.transpose(-2, -1) - x1.matmul(x2.transpose(-2, -1)) * 2
    return squares.clamp_min(1e-30).sqrt()


_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def _check_dtype(name: str, t: Any) -> None:
    """The CPU measures distances in float32 and float64 only, as PyTorch's."""
    if t._device.type == "cpu" and t._dtype.itemsize < 4:
        raise NotImplementedError(f"\"{name}\" not implemented for '{t._dtype.scalar_name}'")


def by_product(x1: Any, x2: Any, p: float, compute_mode: str) -> bool | None:
    """Whether distances come from a matrix product; None for a mode that does not exist."""
    if compute_mode not in _MODES:
        return None
    mode = _MODES.index(compute_mode)
    return p == 2 and (mode == 1 or (mode == 0 and (x1._shape[-2] > _MANY or x2._shape[-2] > _MANY)))


def _cdist(x1: Any, x2: Any, p: float, compute_mode: str) -> Any:
    for t, name in ((x1, "X1"), (x2, "X2")):
        if not t.is_floating_point():
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {t.dtype}")
    if len(x1._shape) < 2 or len(x2._shape) < 2:
        which, t = ("X1", x1) if len(x1._shape) < 2 else ("X2", x2)
        raise RuntimeError(f"cdist only supports at least 2D tensors, {which} got: {len(t._shape)}D")
    if x1._shape[-1] != x2._shape[-1]:
        raise RuntimeError("X1 and X2 must have the same number of columns. X1: "
                           f"{x1._shape[-1]} X2: {x2._shape[-1]}")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    product = by_product(x1, x2, p, compute_mode)
    if product is None:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    rows, columns = x1._shape[-2], x2._shape[-2]
    batch = broadcast_shapes(x1._shape[:-2], x2._shape[:-2])
    if x1._shape[-1] == 0:
        return x1.new_zeros((*batch, rows, columns))
    if product:
        return _euclidean(x1, x2)
    _check_dtype("cdist", x1)
    if x1._dtype is not x2._dtype:
        raise RuntimeError(f"expected scalar type {x1._dtype.scalar_name} but found {x2._dtype.scalar_name}")
    return _between(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


composite("cdist(Tensor x1, Tensor x2, float p=2, str compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor",
          _cdist, method=False)


def _pdist(self: Any, p: float) -> Any:
    if len(self._shape) != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {len(self._shape)}D")
    if not self.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    n = self._shape[0]
    if n <= 1:
        return self.reshape((-1,)).narrow(0, 0, 0).clone()
    from .. import triu_indices

    if self._shape[1] == 0:
        return self.new_zeros((n * (n - 1) // 2,))
    _check_dtype("pdist", self)
    first, second = triu_indices(n, n, 1, device=self._device)
    return _between(self.index_select(0, first) - self.index_select(0, second), p)


composite("pdist(Tensor self, float p=2) -> Tensor", _pdist, method=False)
PAIRWISE: Op = composite(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
    lambda x1, x2, p, eps, keepdim: _norm(x1 - x2 + eps, p, keepdim), method=False)


def _cosine(x1: Any, x2: Any, dim: int, eps: float) -> Any:
    shape = broadcast_shapes(x1._shape, x2._shape)
    # A tensor alone, which nobody differentiates or watches, stays as it is.
    a = x1 if x1._shape == shape and not x1._keys & ~BACKENDS else x1.expand(shape)
    b = x2 if x2._shape == shape and not x2._keys & ~BACKENDS else x2.expand(shape)
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    dt = promote(a._dtype, b._dtype)
    if not dt.is_floating_point:
        raise RuntimeError("expected common dtype to be floating point, yet common dtype is " + dt.scalar_name)
    a, b = (t if t._dtype is dt else t.to(dt) for t in (a, b))

    def unit(t: Any) -> Any:
        length = _NORM.call((t, 2, (dim,), True, None))
        if not t._keys & ~BACKENDS:
            return t / length.clamp_min(eps)
        # The bound changes the value, not the derivative.
        return t / (length + (length.clamp_min(eps) - length).detach())

    return (unit(a) * unit(b)).sum((dim,))


COSINE: Op = composite("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", _cosine,
                       method=False)


def _bilinear(input1: Any, input2: Any, weight: Any, bias: Any) -> Any:
    operands = {"input1": input1, "input2": input2, "weight": weight}
    if bias is not None:
        operands["bias"] = bias
    if any(t._dtype is not input1._dtype for t in operands.values()):
        shown = ", ".join([f"{name}: {cpp_name(t._dtype)}" for name, t in operands.items()])
        raise RuntimeError(f"All tensors must have the same dtype, got {shown}")
    if len(input1._shape) != len(input2._shape):
        raise RuntimeError("bilinear(): input dimensions do not match: got "
                           f"{len(input1._shape)} and {len(input2._shape)}")
    for i in range(len(input1._shape) - 1):
        if input1._shape[i] != input2._shape[i]:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {input1._shape[i]} "
                               f"and {input2._shape[i]}")
    for k, t in ((1, input1), (2, input2)):
        if t.size(-1) != weight.size(k):
            raise RuntimeError(f"bilinear(): input{k} size does not match weight size: got {t._shape[-1]} but expected "
                               f"{weight._shape[k]}")
    if bias is not None and bias.size(0) != weight._shape[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias._shape[0]} but expected "
                           f"{weight._shape[0]}")
    if len(weight._shape) != 3:
        raise RuntimeError("number of dimensions must match")
    o, m, n = weight._shape
    batch, rows = input1._shape[:-1], 1
    for size in batch:
        rows *= size
    first = wide(input1).reshape((rows, m)).matmul(wide(weight).permute((1, 0, 2)).reshape((m, o * n)))
    terms = first.reshape((rows, o, n)) * wide(input2).reshape((rows, 1, n))
    out = terms.sum((-1,), dtype=terms._dtype).reshape((*batch, o))
    return narrow(out if bias is None else out + bias, input1)


composite("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", _bilinear, method=False)
