"""`loss_parallel`: cross entropy of scores that are split along the classes, without bringing them together.

Invariant: inside the context only numbers per row are exchanged: the greatest score, the sum of exponentials, the score
of the target.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ... import _functional_collectives as funcol
from .._dispatch import BESIDE, SERVED, run
from .._dtensor_spec import DTensorSpec, TensorMeta, local_box
from .._redistribute import redistributed
from ..placement_types import Replicate

__all__ = ["loss_parallel"]


def _split_along(t: Any, dim: int, mesh: Any) -> bool:
    """Whether the mesh, which has one dimension, splits a tensor along `dim`."""
    return bool(mesh.ndim == 1 and t._spec.placements[0].is_shard(dim % max(t.dim(), 1)))


def _made(cls: Any, local: Any, like: Any, placements: Any, shape: Any, stride: Any) -> Any:
    meta = TensorMeta(shape, stride, local.dtype)
    return cls(local, DTensorSpec(like._spec.mesh, placements, meta), requires_grad=False)


def _log_softmax(op: Any, given: tuple[Any, ...], mesh: Any, cls: Any) -> Any:
    x, dim = given[0], given[1]
    if not _split_along(x, dim, mesh):
        return run(op, given, mesh, cls)
    from .... import float32

    group = mesh.get_group(0)
    local = x._local_tensor.to(float32) if given[2] else x._local_tensor
    top = funcol.all_reduce(local.amax(dim, True), "max", group)
    shifted = local - top
    total = funcol.all_reduce(shifted.exp().sum(dim, True), "sum", group)
    return _made(cls, shifted - total.log(), x, x._spec.placements, x.shape, x._spec.stride)


def _log_softmax_backward(op: Any, given: tuple[Any, ...], mesh: Any, cls: Any) -> Any:
    grad, out, dim, dtype = given
    if not _split_along(out, dim, mesh):
        return run(op, given, mesh, cls)
    local = redistributed(grad._local_tensor, grad._spec, out._spec.placements)
    total = funcol.all_reduce(local.sum(dim, True), "sum", mesh.get_group(0))
    found = (local - out._local_tensor.exp() * total).to(dtype)
    return _made(cls, found, out, out._spec.placements, out.shape, out._spec.stride)


def _targets(x: Any, target: Any, weight: Any, ignore: int, mesh: Any) -> tuple[Any, Any, Any]:
    """For each row: the place of its target in this rank's part, whether it is there, and its weight."""
    whole = redistributed(target._local_tensor, target._spec, (Replicate(),))
    valid = whole != ignore
    safe = whole.masked_fill(~valid, 0)
    dim = 1 if x.dim() > 1 else 0
    sizes, starts = local_box(x.shape, mesh, x._spec.placements)
    here = (safe >= starts[dim]) & (safe < starts[dim] + sizes[dim]) & valid
    place = (safe - starts[dim]).masked_fill(~here, 0)
    if weight is None:
        weights = valid.to(x.dtype)
    else:
        weights = redistributed(weight._local_tensor, weight._spec, (Replicate(),))[safe] * valid
    return place.unsqueeze(dim), here.unsqueeze(dim), weights


def _nll_forward(op: Any, given: tuple[Any, ...], mesh: Any, cls: Any) -> Any:
    x, target, weight, reduction, ignore = given
    dim = 1 if x.dim() > 1 else 0
    if not _split_along(x, dim, mesh):
        return run(op, given, mesh, cls)
    place, here, weights = _targets(x, target, weight, ignore, mesh)
    picked = x._local_tensor.gather(dim, place).masked_fill(~here, 0).squeeze(dim)
    picked = -funcol.all_reduce(picked, "sum", mesh.get_group(0)) * weights
    total = weights.sum()
    if reduction == 0:
        loss, total = picked, picked.new_zeros(())
    else:
        loss = picked.sum() / total if reduction == 1 else picked.sum()
    whole = (Replicate(),)
    return tuple(_made(cls, each, x, whole, each.shape, tuple(each.stride())) for each in (loss, total))


def _nll_backward(op: Any, given: tuple[Any, ...], mesh: Any, cls: Any) -> Any:
    grad, x, target, weight, reduction, ignore, total = given
    dim = 1 if x.dim() > 1 else 0
    if not _split_along(x, dim, mesh):
        return run(op, given, mesh, cls)
    place, here, weights = _targets(x, target, weight, ignore, mesh)
    whole = (Replicate(),)
    share = redistributed(grad._local_tensor, grad._spec, whole)
    if reduction == 1:
        share = share / redistributed(total._local_tensor, total._spec, whole)
    values = -(weights * share).unsqueeze(dim) * here
    found = x._local_tensor.new_zeros(x._local_tensor.shape).scatter(dim, place, values.to(x.dtype))
    return _made(cls, found, x, x._spec.placements, x.shape, x._spec.stride)


_INSIDE = {
    "_log_softmax": _log_softmax,
    "_log_softmax_backward_data": _log_softmax_backward,
    "nll_loss_forward": _nll_forward,
    "nll_loss_backward": _nll_backward,
    "nll_loss2d_forward": _nll_forward,
    "nll_loss2d_backward": _nll_backward,
}


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """Inside, `cross_entropy` of scores that lie as `Shard(1)` (and its backward) works on the parts; targets may be
    plain tensors, the same on every rank."""
    SERVED.update(_INSIDE)
    BESIDE.update(_INSIDE)
    try:
        yield
    finally:
        BESIDE.difference_update(_INSIDE)
        for name in _INSIDE:
            del SERVED[name]
