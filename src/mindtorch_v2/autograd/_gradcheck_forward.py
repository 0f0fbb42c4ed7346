"""Comparing forward-mode derivatives with finite differences: what `gradcheck(check_forward_ad=True)` adds.

Invariant: as in `gradcheck`, complex tensors are pairs of reals; a row of a Jacobian is a derivative along one real
component of an input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mindtorch_v2 as torch

from .._tensor_base import TensorBase
from . import forward_ad
from .gradcheck import (
    _FAST,
    _FAST_ONLY,
    GradcheckError,
    _as_tuple,
    _check_inputs,
    _moved,
    _numerical,
    _random_like,
    _reals,
    _unit,
)

_MISMATCH = "Jacobian computed with forward mode mismatch for output {0} with respect to input {1}"


def check_forward(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    check_dtypes: bool,
    fast: bool,
    batched: bool,
) -> None:
    """Raise where derivatives along the inputs differ from finite differences."""
    _check_inputs(args)
    every = tuple(o for o in _as_tuple(func(*args)) if isinstance(o, TensorBase))
    if fast:
        _compare_directions(func, args, every, eps, atol, rtol, check_dtypes)
    else:
        numerical = _numerical(func, args, every, eps)
        for k, o in enumerate(every):
            if _can_have(o):
                for j, n in enumerate(numerical[k]):
                    _compare(_jacobian(func, args, j, k, o, check_dtypes), n, k, j, _wanted(args)[j], o, rtol, atol)
    if batched:
        _check_batched(func, args)


def _can_have(o: Any) -> bool:
    return bool(o.is_floating_point() or o.is_complex())


def _wanted(args: tuple[Any, ...]) -> list[Any]:
    return [x for x in args if isinstance(x, TensorBase) and x.requires_grad]


def _dual(a: Any, tangent: Any) -> Any:
    """An argument with a tangent, zeros if not given, where it has a derivative."""
    if not isinstance(a, TensorBase) or not a.requires_grad:
        return a
    whole: Any = a
    plain = whole.detach()
    return forward_ad.make_dual(plain, torch.zeros_like(plain) if tangent is None else tangent)


def _along(func: Callable[..., Any], args: tuple[Any, ...], j: int, tangent: Any) -> tuple[Any, ...]:
    """The tangents of the outputs along one of the inputs; nothing is recorded for backward beside."""
    x = _wanted(args)[j]
    with forward_ad.dual_level():
        given = tuple(_dual(a, tangent if a is x else None) for a in args)
        outputs = [o for o in _as_tuple(func(*given)) if isinstance(o, TensorBase)]
        return tuple(forward_ad.unpack_dual(o).tangent for o in outputs)


def _as_array(o: Any, tangent: Any, check_dtypes: bool) -> Any:
    """A tangent as an array of reals, zeros where an output does not depend on the input."""
    if tangent is None:
        return np.zeros(o.numel() * (2 if o.dtype.is_complex else 1))
    if check_dtypes and tangent.dtype != o.dtype:
        raise GradcheckError("Forward AD gradient has dtype mismatch.")
    return _reals(tangent)


def _jacobian(func: Callable[..., Any], args: tuple[Any, ...], j: int, k: int, o: Any, check_dtypes: bool) -> Any:
    x = _wanted(args)[j]
    rows = []
    for index in np.ndindex(*tuple(x.shape)):
        for unit in (1, 1j) if x.dtype.is_complex else (1,):
            tangent = torch.zeros(tuple(x.shape), dtype=x.dtype, device=x.device)
            tangent[index] = unit
            rows.append(_as_array(o, _along(func, args, j, tangent)[k], check_dtypes))
    width = o.numel() * (2 if o.dtype.is_complex else 1)
    return np.array(rows, dtype=np.float64).reshape(len(rows), width)


def _compare(a: Any, n: Any, output: int, given: int, x: Any, o: Any, rtol: float, atol: float) -> None:
    # Rows of a complex input alternate between its real and its imaginary part.
    parts = (("imaginary", 1), ("real", 0)) if x.dtype.is_complex else (("", 0),)
    for name, start in parts:
        step = len(parts)
        mine, theirs = a[start::step], n[start::step]
        if not np.allclose(mine, theirs, rtol=rtol, atol=atol):
            prefix = f"While considering the {name} part of complex inputs only, " if name else ""
            raise GradcheckError(
                f"{prefix}{_MISMATCH.format(output, given)},\nnumerical:{_shown(theirs, o)}\n"
                f"analytical:{_shown(mine, o)}\n"
            )


def _shown(rows: Any, o: Any) -> Any:
    values = np.ascontiguousarray(rows)
    if o.dtype.is_complex:
        values = values.view(np.complex128)
    return torch.tensor(values.tolist(), dtype=torch.complex128 if o.dtype.is_complex else torch.float64)


def _compare_directions(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    every: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    check_dtypes: bool,
) -> None:
    """Compare the derivatives along a random unit vector for each input."""
    generator = np.random.default_rng()
    for j, x in enumerate(_wanted(args)):
        u = _unit(generator, x)
        moved = _moved(func, args, every, x, u, eps)
        values = u.view(np.complex128) if x.dtype.is_complex else u
        tangent = torch.tensor(values.tolist(), dtype=x.dtype, device=x.device).reshape(x.shape)
        tangents = _along(func, args, j, tangent)
        for k, o in enumerate(every):
            if not _can_have(o):
                continue
            a, n = _as_array(o, tangents[k], check_dtypes), moved[k]
            if not np.all(np.abs(a - n) <= atol * float(u.sum()) + rtol * np.abs(n)):
                raise GradcheckError(
                    f"{_MISMATCH.format(k, j)},\nnumerical:{_shown(n, o)}\nanalytical:{_shown(a, o)}\n"
                    + _in_full(func, args, every, k, j, eps, atol, rtol)
                )


def _in_full(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    every: tuple[Any, ...],
    k: int,
    j: int,
    eps: float,
    atol: float,
    rtol: float,
) -> str:
    """The Jacobians behind a difference found in fast mode."""
    o = every[k]
    n = _numerical(func, args, every, eps)[k][j]
    a = _jacobian(func, args, j, k, o, False)
    text = (
        f"{_FAST}Numerical:\n {_shown(n, o)}\nAnalytical:\n{_shown(a, o)}\n\nThe max per-element difference (slow "
        f"mode) is: {float(np.max(np.abs(n - a))) if n.size else 0.0}.\n"
    )
    return text + _FAST_ONLY if np.allclose(a, n, rtol=rtol, atol=atol) else text


def _check_batched(func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Derivatives along two tangents of an input, mapped over them, are those of one after the other."""
    from ..func import vmap

    for j, x in enumerate(_wanted(args)):
        rows = [_random_like(x, False).detach() for _ in range(2)]

        def push(tangent: Any, j: int = j) -> Any:
            return tuple(t for t in _along(func, args, j, tangent) if t is not None)

        single = [push(row) for row in rows]
        if not single[0]:
            continue
        try:
            together = vmap(push)(torch.stack(rows))
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}") from error
        for i, (found, *expected) in enumerate(zip(together, *single)):
            if not torch.allclose(found, torch.stack(expected)):
                raise GradcheckError(
                    f"For input {j} and output {i}:\n\ngot:\n{found}\n\nExpected:\n{torch.stack(expected)}\n"
                )
