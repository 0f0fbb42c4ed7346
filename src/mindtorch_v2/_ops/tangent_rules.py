"""How tangents go through operators, where that is simpler than what their derivative formulas say.

Invariant: only rows that need one have a rule here. A row without one is served by its formulas: elementwise rows by
the formula itself, all others by its transpose (`_autograd/forward`). A rule gets the operator, its arguments, a
tangent for each (None where there is none; a tuple for a list) and the result, and returns a tangent for each result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch.op import Op
from .._dispatch.registry import get
from .._dtype import float32
from .composites.formulas import zeros_like

Rule = Callable[[Op, tuple[Any, ...], list[Any], Any], Any]


def _positions(o: Op) -> list[int]:
    """The differentiable arguments."""
    derivative: Any = o.derivative
    found: list[int] = (derivative if hasattr(derivative, "positions") else derivative.formulas).positions
    return found


def _sum(terms: list[Any], result: Any) -> Any:
    total: Any = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return zeros_like(result) if total is None else total


# -- linear operators -----------------------------------------------------------------------------------------------
def _linear(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """Linear in all its differentiable arguments together: the operator itself, on the tangents."""
    given = list(args)
    for i in _positions(o):
        given[i] = _tangent_or_zero(o, i, args[i], tangents[i])
    return o.call(tuple(given))


def _tangent_or_zero(o: Op, i: int, arg: Any, tangent: Any) -> Any:
    if isinstance(arg, (tuple, list)):
        return tuple(zeros_like(a) if t is None else t for a, t in zip(arg, tangent))
    if tangent is not None or arg is None:
        return tangent
    return 0 if o.numbers >> i & 1 else zeros_like(arg)


def _multilinear(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """Linear in each of its differentiable arguments: the operator with one tangent at a time, summed."""
    terms = [o.call((*args[:i], tangents[i], *args[i + 1 :])) for i in _positions(o) if tangents[i] is not None]
    return _sum(terms, result)


def _copy(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    source = tangents[1]
    if source is None:
        return zeros_like(result)
    return source if source._device == result._device else source.to(result._device)


# -- matrices -------------------------------------------------------------------------------------------------------
def _addmm(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """beta * self + alpha * (a @ b), of matrices or a matrix and a vector."""
    a, b, beta, alpha = args[1:5]
    self, first, second = tangents[:3]
    return _sum(
        [
            None if self is None or beta == 0 else _scaled(self, beta),
            None if first is None else _scaled(first.matmul(b), alpha),
            None if second is None else _scaled(a.matmul(second), alpha),
        ],
        result,
    )


def _scaled(t: Any, by: Any) -> Any:
    return t if by == 1 else t * by


def _cholesky(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """dL = L phi(inv(L) dA inv(L)^H), where phi takes the lower triangle and half of the diagonal."""
    from .. import linalg as lib

    linalg: Any = lib
    upper = args[1]
    L, dA = result[0].mH if upper else result[0], tangents[0]
    inner = linalg.solve_triangular(L.mH, linalg.solve_triangular(L, dA, upper=False), upper=True, left=False)
    dL = L @ (inner.tril() - inner.diagonal(0, -2, -1).diag_embed() * 0.5)
    return (dL.mH if upper else dL), None


def _eigh(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """With dX = V^H dA V: dL is the real diagonal of dX, dV = V (what is beside it / (L_j - L_i)). The whole of dA is
    read, as in PyTorch, though only a triangle of A is."""
    L, V = result if args[2] else o.call((args[0], args[1], True))
    dX = V.mH @ tangents[0] @ V
    diagonal = dX.diagonal(0, -2, -1)
    dL = diagonal.real if dX._dtype.is_complex else diagonal
    if not args[2]:
        return dL, None
    E = L.unsqueeze(-2) - L.unsqueeze(-1) + zeros_like(L).add(1).diag_embed()
    return dL, V @ ((dX - diagonal.diag_embed()) / E)


def _svd(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """With dX = U^H dA V: dS is the real diagonal of dX, and with what is left of dX, E = S_j^2 - S_i^2 beside the
    diagonal, dU = U (dX S + its transpose) / E and dV = V (S dX + its transpose) / E. The phases of singular vectors
    are free: both take half of the imaginary diagonal, as in PyTorch. Vectors beyond the values turn along."""
    from .linalg import SVD

    dA, full = tangents[0], args[1]
    U, S, Vh = result if args[2] else SVD.call((args[0], False, True, None))
    k = S._shape[-1]
    first, others = U.narrow(-1, 0, k), U.narrow(-1, k, U._shape[-1] - k)
    firsth, othersh = Vh.narrow(-2, 0, k), Vh.narrow(-2, k, Vh._shape[-2] - k)
    dX = first.mH @ dA @ firsth.mH
    dS = dX.diagonal(0, -2, -1).real
    if not args[2]:
        return None, dS, None
    dX = dX - dS.to(dX._dtype).diag_embed()
    squares = S * S
    E = squares.unsqueeze(-2) - squares.unsqueeze(-1)
    E = E + zeros_like(S).add(1).diag_embed()
    left, right = dX * S.unsqueeze(-2), S.unsqueeze(-1) * dX
    P, Q = (left + left.mH) / E, (right + right.mH) / E
    if dX._dtype.is_complex:
        phase = (dX.diagonal(0, -2, -1) / (S * 2)).diag_embed()
        P, Q = P + phase, Q - phase
    dU, dVh = first @ P, Q.mH @ firsth
    if U._shape[-2] > k:
        part = dA @ firsth.mH / S.unsqueeze(-2)
        dU = dU + part - first @ (first.mH @ part)
    if Vh._shape[-1] > k:
        part = first.mH @ dA / S.unsqueeze(-1)
        dVh = dVh + part - (part @ firsth.mH) @ firsth
    if full and U._shape[-1] > k:
        dU = get("cat").call(((dU, -first @ (dU.mH @ others)), -1))
    if full and Vh._shape[-2] > k:
        dVh = get("cat").call(((dVh, -(othersh @ dVh.mH) @ firsth), -2))
    return dU, dS, dVh


def _householder(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    from .householder import product_tangent

    return product_tangent(*args, *(zeros_like(a) if t is None else t for a, t in zip(args, tangents)))


# -- reductions -----------------------------------------------------------------------------------------------------
def _logcumsumexp(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """The sum of t exp(x - result) so far, by its logarithm: that of a negative tangent is taken apart."""
    x, t = args[0], tangents[0]
    if len(x._shape) == 0:
        return t
    if t._dtype.is_complex:
        return (o.call((x + t.log(), args[1])) - result).exp()
    up, down = (part.clamp(min=0).log() for part in (t, -t))
    return (o.call((x + up, args[1])) - result).exp() - (o.call((x + down, args[1])) - result).exp()


def _logsumexp(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """The mean of the tangents, weighted by exp(x): divided by their sum, weights lose nothing to a large result."""
    x, t = args[0], tangents[0]
    dim, keepdim = args[1], args[2]
    if not x._dtype.is_floating_point and not x._dtype.is_complex:
        x = x.to(result._dtype)
    if 0 not in x._shape:
        x = x - (x.real if x._dtype.is_complex else x).amax(dim, True)
    weights = x.exp()
    return (weights * t).sum(dim, keepdim) / weights.sum(dim, keepdim)


def _log_softmax(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """From the argument: the result may be written to, and is not needed."""
    t = tangents[0] if tangents[0]._dtype is result._dtype else tangents[0].to(result._dtype)
    if not result._shape:
        return t - t
    return t - _logsumexp(o, (args[0], [args[1]], True), [t], result)


def _prod(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """From the factors alone, as the result may be written to."""
    from .reduce import other_factors

    x, dim, keepdim = args[:3]
    x, t = (v if v._dtype is result._dtype else v.to(result._dtype) for v in (x, tangents[0]))
    if not x._shape:
        return t.clone()
    if dim is None:
        return (other_factors(x.reshape((-1,)), 0) * t.reshape((-1,))).sum()
    return (other_factors(x, dim) * t).sum(dim, keepdim)


def _extreme(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """The mean of the tangents where the extreme is reached; found again, as the result may be written to."""
    x, dim, keepdim = args[:3]
    if not x._shape:
        return tangents[0].clone()
    reached = x == o.call((x, dim, True))
    return tangents[0].where(reached, 0).sum(dim, keepdim) / reached.sum(dim, keepdim)


def _layer_norm(o: Op, args: tuple[Any, ...], tangents: list[Any], result: Any) -> Any:
    """From the argument: mean and deviation among the results have no history, and depend on it."""
    x, shape, weight, _, eps = args
    t, into_weight, into_bias = tangents[0], tangents[2], tangents[3]
    out: Any = None
    if t is not None or into_weight is not None:
        dims = tuple(range(-len(shape), 0))
        # Two bytes hold too little for a mean of squares.
        x = x.to(float32) if x._dtype.itemsize == 2 else x
        centred = x - x.mean(dims, True)
        scale = (centred * centred).mean(dims, True).add(eps).rsqrt()
        normal = centred * scale
        if t is not None:
            t = t.to(x._dtype) if t._dtype is not x._dtype else t
            moved = t - t.mean(dims, True)
            out = (moved - normal * (normal * moved).mean(dims, True)) * scale
            out = out if weight is None else out * weight
        if into_weight is not None:
            out = normal * into_weight if out is None else out + normal * into_weight
    if into_bias is not None:
        out = into_bias.expand(result[0]._shape) if out is None else out + into_bias
    return (out if out._dtype is result[0]._dtype else out.to(result[0]._dtype)), None, None


_RULES: dict[str, Rule] = {
    **dict.fromkeys(
        "add sub rsub neg positive sum mean clone to_copy cat cumsum flip roll index_select gather _unsafe_view tril "
        "triu max_unpool2d max_unpool3d stack repeat avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d "
        "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
        "_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d upsample_trilinear3d "
        "pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d "
        "replication_pad2d replication_pad3d take diag_embed trace im2col col2im _fft_c2c _fft_r2c _fft_c2r index "
        "embedding "
        "scatter_add scatter.src index_add index_copy index_put masked_scatter slice_scatter select_scatter "
        "diagonal_scatter unfold_backward slice_backward select_backward diagonal_backward".split(),
        _linear,
    ),
    **dict.fromkeys("mul mm bmm mv dot outer linalg_cross".split(), _multilinear),
    **dict.fromkeys("amax amin".split(), _extreme),
    "native_layer_norm": _layer_norm,
    **dict.fromkeys("addmm addmv".split(), _addmm),
    "copy": _copy,
    "_linalg_eigh": _eigh,
    "_linalg_svd": _svd,
    "linalg_cholesky_ex": _cholesky,
    "linalg_householder_product": _householder,
    "logcumsumexp": _logcumsumexp,
    "logsumexp": _logsumexp,
    "_log_softmax": _log_softmax,
    "prod": _prod,
}


def rule_for(o: Op) -> Rule | None:
    """The rule of a row; None where its formulas serve."""
    return _RULES.get(o.name)
