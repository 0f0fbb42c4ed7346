"""Weights as a direction and a length: `_weight_norm` and the norms it divides by.

Invariant: the norms are those over all dimensions but one; the fused row takes the first or the last dimension as that
one, everything else is a composition.
"""
from __future__ import annotations

from typing import Any

from .._dispatch.op import Spec
from .._dispatch.state import differentiated
from .._dtype import bfloat16, float16, float32
from .composites.formulas import narrow, wide
from .rules.base import like, of_tensor
from .table import composite, op


def _norm_except_dim(v: Any, pow: int, dim: int) -> Any:
    rank = len(v._shape)
    if dim == -1:
        return v.norm(pow)
    if rank == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if dim == 0:
        return v.contiguous().view((v.size(0), -1)).norm(pow, 1).view((v.size(0), *(1,) * (rank - 1)))
    if dim == rank - 1:
        return v.contiguous().view((-1, v.size(dim))).norm(pow, 0).view((*(1,) * (rank - 1), v.size(dim)))
    return _norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)


def _others(v: Any, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(len(v._shape)) if d != dim)


def _interface_meta(v: Any, g: Any, dim: int) -> list[Spec]:
    rank = len(v._shape)
    if rank == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if dim not in (0, rank - 1):
        raise RuntimeError("_weight_norm_interface: fused kernels can only be applied for first or last dim")
    if not v._dtype.is_floating_point:
        raise NotImplementedError(f"\"weight_norm_kernel\" not implemented for '{v._dtype.scalar_name}'")
    if v._dtype is not g._dtype:
        raise RuntimeError(f"expected scalar type {v._dtype.scalar_name} but found {g._dtype.scalar_name}")
    if tuple(g._shape) != tuple(s if d == dim else 1 for d, s in enumerate(v._shape)):
        raise RuntimeError(f"_weight_norm_interface: g has shape {list(g._shape)}; for v of shape {list(v._shape)} and "
                           f"dim {dim} it needs one element per slice")
    norms = of_tensor(g)
    wanted = float32 if g._dtype in (bfloat16, float16) else g._dtype
    return [like(v), Spec(norms.shape, norms.stride, wanted, wanted, norms.device)]


def _interface(v: Any, g: Any, dim: int) -> Any:
    norms = wide(v).square().sum(_others(v, dim), True).sqrt()
    return narrow(wide(v) * (wide(g) / norms), v), norms


def _interface_backward(grads: Any, needs: Any, v: Any, g: Any, dim: int, result1: Any) -> Any:
    # To be differentiated again the norms have to be functions of v.
    norms = _norm_except_dim(v, 2, dim) if differentiated() else result1
    wide_grad, wide_v = wide(grads[0]), wide(v)
    sums = (wide_grad * wide_v).sum(_others(v, dim), True)
    into_v = narrow((wide(g) / norms) * (wide_grad - wide_v * (sums / (norms * norms))), v) if needs[0] else None
    return into_v, narrow(sums / norms, g) if needs[1] else None


FUSED = op("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor result0, Tensor result1)",
           meta=_interface_meta, kernel=_interface, method=False, nondiff=("result1",),
           grad={("v", "g"): _interface_backward})


def _weight_norm(v: Any, g: Any, dim: int) -> Any:
    if v._device != g._device:
        raise RuntimeError(f"weight_norm: expected v_in and g_in to be on the same device, but v_in is on {v._device} "
                           f"and g_in is on {g._device}")
    v, g = v.contiguous(), g.contiguous()
    if dim in (0, len(v._shape) - 1):
        return FUSED.call((v, g, dim))[0]
    return v * (g / _norm_except_dim(v, 2, dim))


composite("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", _norm_except_dim, method=False)
composite("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", _weight_norm, method=False)
