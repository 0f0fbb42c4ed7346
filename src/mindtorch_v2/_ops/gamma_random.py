"""Random numbers of the gamma family, and how they move with their parameters.

Invariant: as many numbers are drawn as PyTorch draws, in its order, so that a seed gives its samples.
"""
from __future__ import annotations

from typing import Any

from .._dispatch.op import Op, Spec
from .rules.base import like
from .rules.pointwise import broadcast_shapes
from .table import op


def _check(kernel: str, tensors: tuple[Any, ...]) -> None:
    first = tensors[0]._dtype
    for t in tensors[1:]:
        if t._dtype is not first:
            raise RuntimeError(f"Found dtype {t._dtype.scalar_name} but expected {first.scalar_name}")
    if first.name not in ("float32", "float64"):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{first.scalar_name}'")


def _placed(tensors: tuple[Any, ...]) -> Any:
    """One that says where the result is: a scalar of the CPU goes with tensors of any device."""
    return next((t for t in tensors if t._device.type != "cpu"), tensors[0])


def _gamma_meta(self: Any, generator: Any) -> Spec:
    _check("gamma_cpu", (self,))
    return like(self)


def _gamma_grad_meta(self: Any, output: Any) -> Spec:
    shape = broadcast_shapes(self._shape, output._shape)
    _check("_standard_gamma_grad_cpu", (self, output))
    return like(_placed((self, output)), shape)


def _dirichlet_meta(self: Any, generator: Any) -> Spec:
    _check("dirichlet", (self,))
    return like(self)


def _dirichlet_grad_meta(x: Any, alpha: Any, total: Any) -> Spec:
    shape = broadcast_shapes(x._shape, broadcast_shapes(alpha._shape, total._shape))
    _check("_dirichlet_grad_cpu", (x, alpha, total))
    return like(_placed((x, alpha, total)), shape)


def _underived(name: str) -> Any:
    raise RuntimeError(f"derivative for aten::{name} is not implemented")


def _gamma_grad_underived() -> Any:
    raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")


_GAMMA_GRAD: Op = op("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor", meta=_gamma_grad_meta, method=False,
                     grad=dict(self=lambda g: _gamma_grad_underived(), output=lambda g: _gamma_grad_underived()))
op("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor", meta=_gamma_meta, method=False,
   grad=dict(self=lambda g, self, result: g * _GAMMA_GRAD.call((self, result))))
op("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor", meta=_dirichlet_meta, method=False,
   node="NotImplemented", grad=dict(self=lambda g: _underived("_sample_dirichlet")))
op("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor", meta=_dirichlet_grad_meta, method=False,
   node="NotImplemented", grad=dict(x=lambda g: _underived("_dirichlet_grad"),
                                    alpha=lambda g: _underived("_dirichlet_grad"),
                                    total=lambda g: _underived("_dirichlet_grad")))
