"""Rows of products of Householder reflections, and of symmetric factorizations that may be indefinite.

Invariant: reflection `i` is I - tau[i] v v^H with v = column `i` below the diagonal, a one on it, and zeros above; what
stands elsewhere in the matrix is never read, so its gradient is zero.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import int32
from .._tensor_base import all_values, numel
from .linalg import H, check_float, check_square, columns
from .rules.base import like
from .rules.pointwise import broadcast_shapes
from .table import composite, op

_cat = registry.get("cat")
_eye = registry.get("eye")


# -- reflections ----------------------------------------------------------------------------------------------------
def _vectors(packed: Any, count: int) -> Any:
    """The vectors of the first reflections, as columns."""
    below = packed.narrow(-1, 0, count).tril(-1)
    rows = packed._shape[-2]
    return below + _eye.call((rows, count, packed._dtype, None, packed._device, None))


def _tau(tau: Any, i: int) -> Any:
    return tau.narrow(-1, i, 1).unsqueeze(-1)


def reflected(packed: Any, tau: Any, x: Any, adjoint: bool) -> Any:
    """Q x, or Q^H x, one reflection after the other."""
    count = tau._shape[-1]
    v = _vectors(packed, count)
    for i in range(count) if adjoint else reversed(range(count)):
        one, t = v.narrow(-1, i, 1), _tau(tau, i)
        x = x - (t.conj() if adjoint else t) * (one @ (H(one) @ x))
    return x


def _reflection_grads(K: Any, packed: Any, tau: Any) -> tuple[Any, Any]:
    """Gradients of the packed matrix and of tau, for K = Q g^H where g is the gradient of Q.

    With reflections R1 R2 ..., the gradient of Ri is what stands around it, turned: it needs Ri^-1 Ri+1^-1 ... of K
    from one side and R1 R2 ... Ri-1 from the other.
    """
    if not numel(packed) or not numel(tau):
        return None, None
    count = tau._shape[-1]
    v = _vectors(packed, count)
    columns_, taus = [], []
    for i in range(count):
        one, t = v.narrow(-1, i, 1), _tau(tau, i)
        back = t / (t * (one * one.conj()).sum((-2,), True) - 1)
        K = K - back * (one @ (H(one) @ K))
        right, left = K @ one, H(one) @ K
        taus.append(-(left @ one).conj().squeeze(-1))
        columns_.append(-(t.conj() * H(left)) - t * right)
        K = K - (t * right) @ H(one)
    g = _cat.call((tuple(columns_), -1)).tril(-1)
    rest = packed._shape[-1] - count
    if rest:
        g = _cat.call(((g, g.new_zeros((*g._shape[:-1], rest))), -1))
    return g, _cat.call((tuple(taus), -1))


def _check_dims(name: str, input: Any, tau: Any) -> None:
    if tau.dim() != input.dim() - 1:
        raise RuntimeError(f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to "
                           f"{tau.dim()} and input.ndim is equal to {input.dim()}")
    if tau._shape[:-1] != input._shape[:-2]:
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
                           f"{list(tau._shape[:-1])}")


def _check_kernel(t: Any, kernel: str) -> None:
    if not t._dtype.is_inexact or t._dtype.itemsize < 4:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{t._dtype.scalar_name}'")


def _product_meta(input: Any, tau: Any) -> Spec:
    name = "torch.linalg.householder_product"
    if input.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input._shape[-2] < input._shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if not tau.dim():
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if input._shape[-1] < tau._shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    _check_dims(name, input, tau)
    if tau._dtype is not input._dtype:
        raise RuntimeError(f"{name}: tau dtype {tau._dtype.scalar_name} does not match input dtype "
                           f"{input._dtype.scalar_name}")
    _check_kernel(input, "orgqr_cpu")
    return columns(input, input._shape)


def _product(input: Any, tau: Any) -> Any:
    m, n = input._shape[-2:]
    eye = _eye.call((m, n, input._dtype, None, input._device, None))
    return reflected(input, tau, eye.expand(input._shape), False)


def _product_grads(g: Any, input: Any, tau: Any, result: Any, needs: tuple[bool, bool]) -> tuple[Any, Any]:
    return _reflection_grads(result @ H(g), input, tau)


def product_tangent(input: Any, tau: Any, input_t: Any, tau_t: Any) -> Any:
    """Reflection by reflection, from the last: (I - t v v^H) Q changes with v, t and Q."""
    m, n = input._shape[-2:]
    count = tau._shape[-1]
    Q: Any = _eye.call((m, n, input._dtype, None, input._device, None)).expand(input._shape)
    dQ = Q * 0
    vectors, along = _vectors(input, count), input_t.narrow(-1, 0, count).tril(-1)
    for i in reversed(range(count)):
        v, d, t, s = vectors.narrow(-1, i, 1), along.narrow(-1, i, 1), _tau(tau, i), _tau(tau_t, i)
        inner = H(v) @ Q
        dQ = dQ - v @ (s * inner + t * (H(v) @ dQ + H(d) @ Q)) - d @ (t * inner)
        Q = Q - v @ (t * inner)
    return dQ


PRODUCT: Op = op("linalg_householder_product(Tensor input, Tensor tau) -> Tensor", meta=_product_meta, out=True,
                 kernel=_product, grad={("input", "tau"): _product_grads}, function=False, method=False)
composite("orgqr(Tensor self, Tensor input2) -> Tensor", lambda self, input2: PRODUCT.call((self, input2)), out=True)


def _ormqr_meta(self: Any, input2: Any, input3: Any, left: bool, transpose: bool) -> Spec:
    name = "torch.ormqr"
    if self.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input3.dim() < 2:
        raise RuntimeError(f"{name}: other must have at least 2 dimensions.")
    at = -2 if left else -1
    if input3._shape[at] != self._shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{at}] must be equal to input.shape[-2]")
    if input2.dim() and input2._shape[-1] != min(input3._shape[at], self._shape[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{at}], input.shape[-1])")
    if input2.dim() != self.dim() - 1:
        _check_dims(name, self, input2)
    if input3.dim() != self.dim():
        raise RuntimeError(f"{name}: Expected other to have the same number of dimensions as input, but got other.ndim "
                           f"equal to {input3.dim()} and input.ndim is equal to {self.dim()}")
    _check_dims(name, self, input2)
    if input3._shape[:-2] != self._shape[:-2]:
        raise RuntimeError(f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
                           f"{list(input3._shape[:-2])}")
    for other, what in ((input2, "tau"), (input3, "other")):
        if other._dtype is not self._dtype:
            raise RuntimeError(f"{name}: Expected input and {what} to have the same dtype, but input has dtype"
                               f"{self._dtype.scalar_name} and {what} has dtype {other._dtype.scalar_name}")
    _check_kernel(self, "ormqr_cpu")
    return columns(input3, input3._shape)


def _ormqr(self: Any, input2: Any, input3: Any, left: bool, transpose: bool) -> Any:
    if left:
        return reflected(self, input2, input3, transpose)
    return H(reflected(self, input2, H(input3), not transpose))


def _ormqr_grads(g: Any, self: Any, input2: Any, input3: Any, left: bool, transpose: bool,
                 needs: tuple[bool, bool, bool]) -> tuple[Any, Any, Any]:
    packed = tau = None
    if needs[0] or needs[1]:
        # The gradient of Q, turned: the result is Q c, Q^H c, c Q or c Q^H.
        if left:
            turned = g @ H(input3) if transpose else input3 @ H(g)
        else:
            turned = H(input3) @ g if transpose else H(g) @ input3
        packed, tau = _reflection_grads(ORMQR.call((self, input2, turned, True, False)), self, input2)
    return packed, tau, ORMQR.call((self, input2, g, left, not transpose)) if needs[2] else None


ORMQR: Op = op("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
               meta=_ormqr_meta, out=True, kernel=_ormqr, grad={("self", "input2", "input3"): _ormqr_grads})


# -- L D L^T ----------------------------------------------------------------------------------------------------------
def _ldl_meta(self: Any, hermitian: bool, check_errors: bool) -> list[Spec]:
    check_square(self, "torch.linalg.ldl_factor_ex")
    check_float(self, "torch.linalg.ldl_factor_ex", "ldl_factor_kernel_cpu")
    return [columns(self, self._shape), like(self, self._shape[:-1], int32), like(self, self._shape[:-2], int32)]


def check_ldl(name: str, info: Any) -> None:
    """PyTorch has no words of its own for a D with a zero block."""
    if info._device.type == "meta":
        return
    for code in all_values(info).reshape((-1,)).tolist():
        if code:
            raise RuntimeError(f"{name}: Unknown error code: {code}.")


LDL: Op = op("linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) "
             "-> (Tensor LD, Tensor pivots, Tensor info)", meta=_ldl_meta, out=True, nondifferentiable=True,
             function=False, method=False)


def _ldl_factor(self: Any, hermitian: bool) -> tuple[Any, Any]:
    LD, pivots, info = LDL.call((self, hermitian, False))
    check_ldl("torch.linalg.ldl_factor", info)
    return LD, pivots


composite("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)", _ldl_factor,
          out=True, function=False, method=False)


def _ldl_solve_meta(LD: Any, pivots: Any, B: Any, hermitian: bool) -> Spec:
    name = "torch.linalg.ldl_solve"
    check_square(LD, name)
    if not LD._dtype.is_inexact:
        check_float(LD, name)
    if B.dim() < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-max(B.dim(), 1)}, "
                         f"{max(B.dim(), 1) - 1}], but got -2)")
    if LD._dtype is not B._dtype:
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {B._dtype.scalar_name} and "
                           f"A of type {LD._dtype.scalar_name} instead.")
    n = LD._shape[-1]
    if B._shape[-2] != n:
        raise RuntimeError(f"Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is "
                           f"{B._shape[-2]} by {B._shape[-1]}")
    if pivots._shape != LD._shape[:-1]:
        raise RuntimeError(f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
                           f"{list(pivots._shape)} instead")
    if not pivots._dtype.is_integer:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots._dtype.scalar_name}")
    _check_kernel(LD, "ldl_solve_kernel_cpu")
    return columns(B, (*broadcast_shapes(tuple(B._shape[:-2]), tuple(LD._shape[:-2])), *B._shape[-2:]))


op("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor", meta=_ldl_solve_meta,
   out=True, nondifferentiable=True, function=False, method=False)
