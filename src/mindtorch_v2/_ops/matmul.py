"""Matrix products: mm and its batched, vector and added forms; matmul, linear, outer, inner, tensordot, einsum.

Invariant: products of any rank end in the rows mm, mv, dot, bmm, addmm, baddbmm; only those have kernels.
"""
from __future__ import annotations

from typing import Any

from .._backends.common import transfer
from .._backends.common import view as views
from .._backends.common.lazy import PHYSICAL, Factors, Shorter
from .._backends.common.overlap import ALONE
from .._dispatch import registry
from .._dispatch.keys import CONJUGATE
from .._dispatch.op import Op, Spec
from .._dtype import bool as bool_
from .._sizes import numel_of
from .composites import matmul as composed
from .composites.formulas import conj
from .composites.matmul import batch_turn, mat1_grad, mat2_grad, scaled
from .composites.rows import ROWS
from .rules import matmul as rules
from .rules.base import like, wrap_dim
from .rules.dtype_checks import check_number
from .rules.layout import ordered_strides
from .rules.pointwise import promoted
from .table import composite, op

# -- products with kernels ----------------------------------------------------------------------------------------
MM: Op = op("mm(Tensor self, Tensor mat2) -> Tensor", meta=rules.Mm(), out=True,
        grad=dict(self=lambda g, mat2, self_shape, self_stride: mat1_grad(g, mat2, self_shape, self_stride, 1),
                  mat2=lambda g, self, mat2_shape, mat2_stride: mat2_grad(g, self, mat2_shape, mat2_stride, 1)))
ADDMM: Op = op("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
           meta=rules.Addmm(), inplace=True, overlap=ALONE, out=True,
           grad=dict(self=lambda g, beta: scaled(g, beta),
                     mat1=lambda g, mat2, mat1_shape, mat1_stride, alpha: mat1_grad(g, mat2, mat1_shape, mat1_stride,
                                                                                    alpha),
                     mat2=lambda g, mat1, mat2_shape, mat2_stride, alpha: mat2_grad(g, mat1, mat2_shape, mat2_stride,
                                                                                    alpha)))
BMM: Op = op("bmm(Tensor self, Tensor mat2) -> Tensor", meta=rules.Bmm(False, False), out=True,
         grad=dict(self=lambda g, mat2: BMM.call((g, batch_turn(mat2))),
                   mat2=lambda g, self: BMM.call((batch_turn(self), g))))
BADDBMM: Op = op("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
   meta=rules.Bmm(True, False), inplace=True, overlap=ALONE, out=True,
   grad=dict(self=lambda g, beta: scaled(g, beta),
             batch1=lambda g, batch2, alpha: scaled(BMM.call((g, batch_turn(batch2))), alpha),
             batch2=lambda g, batch1, alpha: scaled(BMM.call((batch_turn(batch1), g)), alpha)))


def _addbmm(self: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    """Matrix by matrix, each sum rounded, as PyTorch does it."""
    n = batch1._shape[0]
    if n == 0:
        shape = (batch1._shape[1], batch2._shape[2])
        return (self * beta).expand(shape).clone() if beta != 0 else self.new_zeros(shape)
    out = self
    for i in range(n):
        out = ADDMM.call((out, batch1.select(0, i), batch2.select(0, i), 1 if i else beta, alpha))
    return out


def _batched(g: Any, n: int) -> Any:
    return g.unsqueeze(0).expand((n,) + g._shape)


op("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
   meta=rules.Bmm(True, True), inplace=True, overlap=ALONE, out=True, kernel=_addbmm,
   grad=dict(self=lambda g, beta: scaled(g, beta),
             batch1=lambda g, batch2, alpha: scaled(BMM.call((_batched(g, batch2._shape[0]), batch_turn(batch2))),
                                                    alpha),
             batch2=lambda g, batch1, alpha: scaled(BMM.call((batch_turn(batch1), _batched(g, batch1._shape[0]))),
                                                    alpha)))
MV: Op = op("mv(Tensor self, Tensor vec) -> Tensor", meta=rules.Mv(False), out=True,
        grad=dict(self=lambda g, vec: _outer(g, conj(vec)), vec=lambda g, self: MV.call((conj(self.t()), g))))
ADDMV: Op = op("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
   meta=rules.Mv(True), inplace="function", overlap=ALONE, out=True,
   grad=dict(self=lambda g, beta: scaled(g, beta), mat=lambda g, vec, alpha: scaled(_outer(g, conj(vec)), alpha),
             vec=lambda g, mat, alpha: scaled(MV.call((conj(mat.t()), g)), alpha)))
DOT: Op = op("dot(Tensor self, Tensor tensor) -> Tensor", meta=rules.Dot("dot"), out=True,
         grad=dict(self=lambda g, tensor: g * conj(tensor), tensor=lambda g, self: g * conj(self)))
VDOT: Op = op("vdot(Tensor self, Tensor other) -> Tensor", meta=rules.Dot("dot"), out=True,
              kernel=lambda self, other: DOT.call((_conj_physical(self), other)),
              grad=dict(self=lambda g, other: conj(g) * other, other=lambda g, self: g * self))


def _conj_physical(t: Any) -> Any:
    return PHYSICAL.conjugate.call((t,)) if t._dtype.is_complex else t


def _lazy_dot(self: Any, other: Any) -> Any:
    """Of conjugates: `vdot` conjugates one factor by itself, and of two it is the result that is conjugated."""
    mine, yours = self._keys & CONJUGATE, other._keys & CONJUGATE
    if mine and yours:
        return conj(DOT.call((conj(self), conj(other))))
    return VDOT.call((conj(self), other) if mine else (conj(other), self))


def _lazy_vdot(self: Any, other: Any) -> Any:
    mine, yours = self._keys & CONJUGATE, other._keys & CONJUGATE
    if mine:
        return VDOT.call((conj(other), conj(self))) if yours else DOT.call((conj(self), other))
    return conj(DOT.call((self, conj(other))))


DOT.lazily, VDOT.lazily = Shorter(_lazy_dot), Shorter(_lazy_vdot)
MM.lazily = BMM.lazily = MV.lazily = Factors(0)
ADDMM.lazily = BADDBMM.lazily = ADDMV.lazily = Factors(1)


def _vector(name: str, argument: str, t: Any) -> None:
    if len(t._shape) != 1:
        raise RuntimeError(f"{name}: Expected 1-D argument {argument}, but got {len(t._shape)}-D")


_UNSQUEEZE: Op = registry.get("unsqueeze")


def _outer(self: Any, vec2: Any) -> Any:
    return _UNSQUEEZE.call((self, 1)) * vec2


def _checked_outer(self: Any, vec2: Any) -> Any:
    _vector("outer", "self", self)
    _vector("outer", "vec2", vec2)
    return ROWS.reshape.call((self, (self._shape[0], 1))) * vec2


composite("outer(Tensor self, Tensor vec2) -> Tensor", _checked_outer, out=True)
composite("ger(Tensor self, Tensor vec2) -> Tensor", _checked_outer, out=True)


def _addr_meta(self: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Spec:
    _vector("addr", "vec1", vec1)
    _vector("addr", "vec2", vec2)
    shape = (vec1._shape[0], vec2._shape[0])
    rules.check_expand(self, shape)
    dt = promoted(self._dtype, promoted(vec1._dtype, vec2._dtype))
    for name, factor in (("beta", beta), ("alpha", alpha)):
        if type(factor) is int and factor == 1:
            continue
        if isinstance(factor, bool) and dt.name != "bool":
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if isinstance(factor, (float, complex)) and not dt.is_inexact:
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
        check_number(factor, dt)
    return Spec(shape, ordered_strides(shape, [self]), dt, dt, self._device)


def _addr(self: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    dt = self._dtype
    if dt.is_inexact and dt is vec1._dtype and dt is vec2._dtype and _is_one(beta) and _is_one(alpha):
        return self + _outer(vec1, vec2)
    dt = promoted(dt, promoted(vec1._dtype, vec2._dtype))
    if dt is bool_:
        product = _outer(vec1, vec2) if alpha else self.new_zeros((vec1._shape[0], vec2._shape[0]))
        return product.logical_or(self) if beta else product
    if dt.itemsize == 2 and dt.is_floating_point:
        # PyTorch rounds the factors, and every step, to the narrow type.
        one = self.detach().to(dt)
        beta, alpha = (x if x in (0, 1) else one.new_full((), x) for x in (beta, alpha))
    product = _outer(vec1.to(dt) if _is_one(alpha) else vec1.to(dt) * alpha, vec2.to(dt))
    if isinstance(beta, (int, float)) and beta == 0:
        return product
    return (self.to(dt) if _is_one(beta) else self.to(dt) * beta) + product


def _is_one(x: Any) -> bool:
    return isinstance(x, (int, float, complex)) and x == 1


op("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", meta=_addr_meta,
   inplace=True, out=True, kernel=_addr,
   grad=dict(self=lambda g, beta: scaled(g, beta),
             vec1=lambda g, vec2, alpha: scaled(MV.call((g, conj(vec2))), alpha),
             vec2=lambda g, vec1, alpha: scaled(MV.call((g.t(), conj(vec1))), alpha)))

# -- products of any rank -----------------------------------------------------------------------------------------
# The one row of a product of a vector and a matrix; PyTorch squeezes it in place, so it is no view of the matrix.
_ROW = op("_squeeze_row(Tensor self, int[] size) -> Tensor", function=False, method=False, node="SqueezeBackward4",
          meta=lambda self, size: like(self, size), grad=dict(self=lambda g: g.unsqueeze(0)))
transfer.everywhere(_ROW, views.UNSAFE_VIEW)

for _field, _row in (("mm", "mm"), ("bmm", "bmm"), ("mv", "mv"), ("dot", "dot"), ("addmm", "addmm"), ("t", "t"),
                     ("transpose", "transpose"), ("view", "view"), ("unsafe_view", "_unsafe_view"),
                     ("reshape", "reshape"), ("expand", "expand"), ("squeeze", "squeeze.dim"),
                     ("row_of", "_squeeze_row"), ("unsqueeze", "unsqueeze"), ("add", "add"),
                     ("mul", "mul"), ("conj", "conj"), ("clone", "clone")):
    setattr(ROWS, _field, registry.get(_row))

MATMUL: Op = composite("matmul(Tensor self, Tensor other) -> Tensor", composed.MATMUL, out=True)
composite("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", composed.LINEAR, out=True, function=False)


def _tensordot(self: Any, other: Any, dims_self: tuple[int, ...], dims_other: tuple[int, ...]) -> Any:
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if self._dtype is not other._dtype:
        raise RuntimeError("both inputs should have same dtype")
    first = [wrap_dim(d, len(self._shape)) for d in dims_self]
    second = [wrap_dim(d, len(other._shape)) for d in dims_other]
    inner = 1
    for i, (p, q) in enumerate(zip(first, second)):
        a, b = self._shape[p], other._shape[q]
        if a == b:
            inner *= a
        elif a == 1:
            other = other.sum((q,), True, dtype=other._dtype)
        elif b == 1:
            self = self.sum((p,), True, dtype=self._dtype)
        else:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a} in dim {dims_self[i]} and second has "
                f"size {b} in dim {dims_other[i]}")
    for chosen in (first, second):
        for i, d in enumerate(chosen):
            if d in chosen[:i]:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    left = [d for d in range(len(self._shape)) if d not in first]
    right = [d for d in range(len(other._shape)) if d not in second]
    shape = tuple(self._shape[d] for d in left) + tuple(other._shape[d] for d in right)
    a2 = self.permute(tuple(left + first))
    b2 = other.permute(tuple(second + right))
    if not left and not right:
        return DOT.call((a2.reshape((inner,)), b2.reshape((inner,)))).view(())
    if all(n == 1 for n in shape):
        # One element: PyTorch makes no matrices of it, which autocast can tell.
        a2, b2 = a2.squeeze(), b2.squeeze()
        if len(a2._shape) == 1:
            return DOT.call((a2, b2)).view(shape)
        return (a2 * b2).sum(dtype=self._dtype).view(shape)
    return MM.call((a2.reshape((-1, inner) if inner else (numel_of(tuple(self._shape[d] for d in left)), 0)),
                    b2.reshape((inner, -1) if inner else (0, numel_of(tuple(other._shape[d] for d in right)))))
                   ).reshape(shape)


TENSORDOT: Op = composite("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
                          _tensordot, out=True, function=False, method=False)


def _inner(self: Any, other: Any) -> Any:
    if not self._shape or not other._shape:
        return self * other
    if self._shape[-1] != other._shape[-1]:
        raise RuntimeError("inner() the last dimension must match on both input tensors but got shapes "
                           f"{list(self._shape)} and {list(other._shape)}")
    if len(self._shape) == 1 == len(other._shape) and self._dtype is other._dtype:
        return DOT.call((self, other)).view(())
    return TENSORDOT.call((self, other, (-1,), (-1,)))


composite("inner(Tensor self, Tensor other) -> Tensor", _inner, out=True)
