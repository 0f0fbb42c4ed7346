"""CPU lines of Householder reflections and symmetric factorizations: LAPACK through SciPy."""
from __future__ import annotations

from typing import Any

from ...._ops.householder import check_ldl
from ..kernels.linalg import lapack, places
from ..lines import cpu, into
from ..numpy_view import np_view


def _product(out: Any, input: Any, tau: Any) -> None:
    result, a, t = np_view(out), np_view(input), np_view(tau)
    if not result.size:
        return
    (orgqr,) = lapack(("ungqr" if a.dtype.kind == "c" else "orgqr",), a)
    for at in places(a.shape[:-2]):
        result[at] = orgqr(a[at], t[at], lwork=64 * a.shape[-1])[0]


def _ormqr(out: Any, self: Any, input2: Any, input3: Any, left: bool, transpose: bool) -> None:
    result, a, t, c = np_view(out), np_view(self), np_view(input2), np_view(input3)
    if not result.size:
        return
    count = t.shape[-1]
    if not count:
        result[...] = c
        return
    is_complex = a.dtype.kind == "c"
    (ormqr,) = lapack(("unmqr" if is_complex else "ormqr",), a)
    turned = "N" if not transpose else "C" if is_complex else "T"
    for at in places(a.shape[:-2]):
        result[at] = ormqr("L" if left else "R", turned, a[at][:, :count], t[at], c[at], 64 * max(c.shape[-2:]))[0]


def _ldl(outs: Any, self: Any, hermitian: bool, check_errors: bool) -> None:
    import numpy

    LD, pivots, info = (np_view(o) for o in outs)
    a = np_view(self)
    info[...] = 0
    if not a.size:
        return
    (trf,) = lapack(("hetrf" if hermitian and a.dtype.kind == "c" else "sytrf",), a)
    for at in places(a.shape[:-2]):
        packed, pivots[at], info[at] = trf(a[at], lower=1, lwork=64 * a.shape[-1])
        LD[at] = numpy.tril(packed)
    if check_errors:
        check_ldl("torch.linalg.ldl_factor_ex", outs[2])


def _check_pivots(pivots: Any, size: int) -> None:
    """LAPACK takes a pivot for a row of the right side, and a negative one for the first or second of a pair."""
    import numpy

    if not pivots.size:
        return
    wide = pivots.astype("int64")
    least, most = numpy.abs(wide).min(initial=1), numpy.abs(wide).max(initial=1)
    if least < 1 or (wide < -(2**31 - 1)).any():
        words = "all satisfy |pivot| >= 1"
    elif most > max(size, 1):
        words = "all satisfy |pivot| <= LD.size(-2)"
    else:
        # Runs of negative pivots have an even length.
        flat = wide.reshape(-1, size) < 0
        odd = numpy.zeros(len(flat), bool)
        for k in range(size):
            if (odd & ~flat[:, k]).any():
                break
            odd = flat[:, k] & ~odd
        else:
            if not odd.any():
                return
        words = "be negative in pairs"
    raise RuntimeError(f"Pivots given to ldl_solve must {words}. Did you properly pass the result of ldl_factor?")


def _ldl_solve(out: Any, LD: Any, pivots: Any, B: Any, hermitian: bool) -> None:
    import numpy

    result, a, b = np_view(out), np_view(LD), np_view(B)
    given = np_view(pivots).astype("int32")  # a copy: nobody changes it after the check
    _check_pivots(given, a.shape[-1])
    if not result.size:
        return
    batch = result.shape[:-2]
    a = numpy.broadcast_to(a, (*batch, *a.shape[-2:]))
    p = numpy.broadcast_to(given, (*batch, a.shape[-1]))
    b = numpy.broadcast_to(b, result.shape)
    (trs,) = lapack(("hetrs" if hermitian and a.dtype.kind == "c" else "sytrs",), a)
    for at in places(batch):
        result[at] = trs(a[at], p[at], b[at], lower=1)[0]


cpu("linalg_householder_product", into(_product))
cpu("ormqr", into(_ormqr))
cpu("linalg_ldl_factor_ex", into(_ldl))
cpu("linalg_ldl_solve", into(_ldl_solve))
