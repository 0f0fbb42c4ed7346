"""Forward-mode derivatives of a call in either library, along the same tangents.

Invariant: every tensor that a sample wants gradients of is dual, with a tangent that both libraries get alike; a result
without a tangent counts as one whose tangent is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule
from . import _infos, _own

DTYPES = ("float64", "complex128", "float32")
# Operators with other tangents than PyTorch's, and why.
OTHERS = {
    "cholesky_inverse": "PyTorch's formula differs from finite differences where the factor is not well conditioned",
    "logcumsumexp": "PyTorch's loses up to half of the digits, and is NaN for large complex values",
    "triangular_solve": "PyTorch's reads the triangle of the matrix's tangent that the operator does not read",
}


def covered() -> list[_infos.Covered]:
    """Operators whose forward-mode derivatives PyTorch says it has."""
    return [case for case in _infos.covered() if case.info.supports_forward_ad and case.row not in _own.RANDOM_ROWS]


def duals(module: Any, value: Any, tangents: Iterator[Any]) -> Any:
    """Arguments with a tangent for each tensor that requires grad."""

    def dual(t: Any) -> Any:
        if not t.requires_grad:
            return t
        return module.make_dual(t.detach(), next(tangents))

    return _oracle.tree_map(dual, value, lambda x: hasattr(x, "requires_grad"))


def tangents_for(value: Any) -> list[Any]:
    oracle = _oracle.load()
    found: list[Any] = []

    def add(t: Any) -> Any:
        if t.requires_grad:
            found.append(oracle.randn_like(t.detach()))
        return t

    _oracle.tree_map(add, value, _oracle.is_oracle_tensor)
    return found


def unpacked(module: Any, result: Any, kind: Any) -> list[tuple[Any, Any]]:
    """Every tensor of a result with its tangent."""
    found: list[tuple[Any, Any]] = []
    _oracle.tree_map(lambda t: found.append(tuple(module.unpack_dual(t))), [result], lambda x: isinstance(x, kind))
    return found


def pushed(library: Any, module: Any, function: Callable[..., Any], args: Any, kwargs: Any, tangents: Any) -> Any:
    """What a call returns, as pairs of values and tangents; or a Failure."""
    with module.dual_level():
        given = iter(tangents)
        made = duals(module, args, given), duals(module, kwargs, given)
        library.manual_seed(0)
        result = _infos.attempt(function, *made)
        return result if isinstance(result, _infos.Failure) else unpacked(module, result, library.Tensor)


def verdicts(case: _infos.Covered, dtype: str, count: int) -> Iterator[str]:
    """For each sample "" or what differs; samples that PyTorch refuses are left out."""
    oracle = _oracle.load()
    info = case.info
    calls = [(_infos.in_oracle(info), _infos.in_subject(info), "")]
    method = getattr(torch.Tensor, info.name.rpartition(".")[2] + "_", None)
    if info.inplace_variant is not None and method is not None:
        calls.append((_in_place(info.inplace_variant), _in_place(method), " in place"))
    for sample in _infos.samples(info, dtype, requires_grad=True, count=count):
        args, kwargs = _infos.arguments(sample)
        for theirs, ours, form in calls:
            if form and (sample.broadcasts_input or not isinstance(args[0], oracle.Tensor)):
                continue
            tangents = tangents_for([args, kwargs])
            expected = pushed(oracle, oracle.autograd.forward_ad, theirs, *_infos.fresh([args, kwargs]), tangents)
            if isinstance(expected, _infos.Failure) or all(tangent is None for _, tangent in expected):
                continue
            mine = [_oracle.from_oracle(t) for t in tangents]
            converted = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
            actual = pushed(torch, submodule("autograd.forward_ad"), ours, *converted, mine)
            where = f"{case.label}{form} {dtype} {_infos.describe(sample)}"
            yield difference(case, actual, expected, where, dtype)


def _in_place(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method on a copy of its first argument, so that no leaf is written to."""

    def call(first: Any, *args: Any, **kwargs: Any) -> Any:
        return method(first.clone(), *args, **kwargs)

    return call


def difference(case: _infos.Covered, actual: Any, expected: Any, where: str, dtype: str) -> str:
    if isinstance(actual, _infos.Failure):
        return f"{where}: {actual.kind}: {actual.text.splitlines()[0] if actual.text else ''}"
    if len(actual) != len(expected):
        return f"{where}: {len(actual)} results, expected {len(expected)}"
    for position, ((_, mine), (value, theirs)) in enumerate(zip(actual, expected)):
        if theirs is None:
            theirs = _oracle.load().zeros_like(value)
            if mine is None:
                continue
        if mine is None:
            mine = _oracle.from_oracle(_oracle.load().zeros_like(theirs))
        mine, theirs = _infos.comparable(case.row, [mine]), _infos.comparable(case.row, [theirs])
        try:
            _oracle.assert_same(mine, theirs, where=f"{where} tangent {position}", stride=False, computed_in=dtype)
        except AssertionError as error:
            return " ".join(str(error).split())
    return ""
