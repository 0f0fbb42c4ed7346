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
from ._place import CPU, Place

DTYPES = ("float64", "complex128", "float32")
# Relative and absolute, by operator and dtype, where the ordinary ones do not do.
TOLERANCES = {
    # The tangent of an inverse goes with its square, which an ill-conditioned sample shows in the fourth digit.
    ("linalg.pinv-hermitian", "float32"): (2e-4, 1e-4),
    # Tangents of these samples reach 2e2 to 2e5, and elements beside the largest have its error. Against float64 both
    # libraries are off by the same share of the largest: cov 5e-5 with its weights of float32, the others below 3e-6.
    ("cov", "float64"): (1e-6, 1e-6),
    ("cov", "complex128"): (1e-5, 1e-6),
    ("nn.functional.conv_transpose3d", "float32"): (5e-4, 1e-4),
    ("linalg.lstsq-grad_oriented", "float32"): (1e-4, 1e-4),
    ("matrix_exp", "float32"): (1e-4, 1e-4),
    # Differences that cancel: both are within 2e-7 of the largest tangent in float64.
    ("native_group_norm", "float32"): (1e-5, 1e-5),
}
# Where elements beside the largest have its error, and some are nothing else: allowed as a share of the largest of all
# results. cov has float32 weights beside float64 numbers, on which it does not depend for two observations. Of
# householder_product ours is within 8e-7 of float64's, PyTorch's within 4e-3.
SHARES = {("cov", "float64"): 1e-5, ("linalg.householder_product", "float32"): 1e-3}
# Operators with other tangents than PyTorch's, and why.
OTHERS = {
    "cholesky_inverse": "PyTorch's formula differs from finite differences where the factor is not well conditioned",
    "logcumsumexp": "PyTorch's loses up to half of the digits, and is NaN for large complex values",
    "triangular_solve": "PyTorch's reads the triangle of the matrix's tangent that the operator does not read",
}
# The same for tangents of gradients.
OTHERS_TWICE = {
    **OTHERS,
    **dict.fromkeys(
        ("linalg.solve", "linalg.solve_ex", "linalg.tensorsolve"),
        "PyTorch's differs from finite differences where the right side is a vector",
    ),
    **dict.fromkeys(
        ("cumprod", "linalg.det", "linalg.slogdet", "logdet", "prod"),
        "PyTorch's leaves terms out while nothing is recorded, and differs from finite differences: prod and cumprod "
        "where several factors are zero, the others everywhere",
    ),
}


def covered() -> list[_infos.Covered]:
    """Operators whose forward-mode derivatives PyTorch says it has."""
    return [case for case in _infos.covered() if case.info.supports_forward_ad and case.row not in _own.RANDOM_ROWS]


def twice() -> list[_infos.Covered]:
    """Operators whose gradients PyTorch differentiates in forward mode."""
    return [case for case in covered() if case.info.supports_fwgrad_bwgrad and case.row not in _own.OTHER_GRADIENTS]


def is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad")


def tangents_for(value: Any) -> list[Any]:
    oracle = _oracle.load()
    found: list[Any] = []

    def add(t: Any) -> Any:
        if t.requires_grad:
            found.append(oracle.randn_like(t.detach()))
        return t

    _oracle.tree_map(add, value, _oracle.is_oracle_tensor)
    return found


class Side:
    """One of the two libraries: makes duals, calls, and takes results apart."""

    def __init__(self, library: Any, module: Any, place: Place | None) -> None:
        self.library = library
        self.module = module
        self.place = place

    def duals(self, value: Any, tangents: Iterator[Any], grad: bool) -> tuple[Any, list[Any]]:
        """Arguments with a tangent for each tensor that requires grad; those again in a list."""
        made: list[Any] = []

        def dual(t: Any) -> Any:
            if not t.requires_grad:
                return t
            made.append(self.module.make_dual(t.detach().requires_grad_(grad), next(tangents)))
            return made[-1]

        return _oracle.tree_map(dual, value, is_tensor), made

    def tensors(self, value: Any) -> list[Any]:
        found: list[Any] = []
        _oracle.tree_map(found.append, [value], lambda x: isinstance(x, self.library.Tensor))
        return found

    def unpacked(self, t: Any) -> tuple[Any, Any]:
        """A result, and its tangent; on the CPU."""
        pair = tuple(self.module.unpack_dual(t)) if t is not None else (None, None)
        if self.place is None:
            return pair[0], pair[1]
        fetch = self.place.fetch
        return (None if pair[0] is None else fetch(pair[0].detach())), (
            None if pair[1] is None else fetch(pair[1].detach())
        )

    def push(self, function: Callable[..., Any], args: Any, kwargs: Any, tangents: list[Any]) -> Any:
        """The results of a call with their tangents; or a Failure."""
        with self.module.dual_level():
            (args, kwargs), _ = self.duals((args, kwargs), iter(tangents), False)
            result = self.run(function, args, kwargs)
            return result if isinstance(result, _infos.Failure) else list(map(self.unpacked, self.tensors(result)))

    def pull(self, function: Callable[..., Any], args: Any, kwargs: Any, tangents: list[Any], weights: Any) -> Any:
        """The gradients of a call with their tangents; `weights` makes those of the results. Or a Failure."""
        with self.module.dual_level():
            (args, kwargs), inputs = self.duals((args, kwargs), iter(tangents), True)
            result = self.run(function, args, kwargs)
            if isinstance(result, _infos.Failure):
                return result
            outputs = [t for t in self.tensors(result) if t.requires_grad]
            if not outputs:
                return []
            found = _infos.attempt(
                self.library.autograd.grad, (outputs, inputs, weights(outputs)), {"allow_unused": True}
            )
            return found if isinstance(found, _infos.Failure) else list(map(self.unpacked, found))

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self.library.manual_seed(0)
        return _infos.attempt(function, args, kwargs) if self.place is None else self.place.run(function, args, kwargs)


def sides(place: Place) -> tuple[Side, Side]:
    oracle = _oracle.load()
    return Side(oracle, oracle.autograd.forward_ad, None), Side(torch, submodule("autograd.forward_ad"), place)


def verdicts(case: _infos.Covered, dtype: str, count: int, place: Place = CPU) -> Iterator[str]:
    """For each sample, called as a function and in place, "" or what differs; without samples that PyTorch refuses."""
    info = case.info
    oracle, subject = sides(place)
    calls = [(_infos.in_oracle(info), _infos.in_subject(info), "")]
    method = getattr(torch.Tensor, info.name.rpartition(".")[2] + "_", None)
    if info.inplace_variant is not None and method is not None:
        calls.append((_in_place(info.inplace_variant), _in_place(method), " in place"))
    for sample in _infos.samples(info, dtype, requires_grad=True, count=count):
        args, kwargs = _infos.arguments(sample)
        for theirs, ours, form in calls:
            if form and (sample.broadcasts_input or not isinstance(args[0], oracle.library.Tensor)):
                continue
            tangents = tangents_for([args, kwargs])
            expected = oracle.push(theirs, *_infos.fresh([args, kwargs]), tangents)
            if isinstance(expected, _infos.Failure) or all(tangent is None for _, tangent in expected):
                continue
            given = place.arguments(case, args), place.convert(kwargs)
            actual = subject.push(ours, *given, [place.convert(t) for t in tangents])
            if not place.refused(actual):
                where = f"{case.label}{form} {dtype} {_infos.describe(sample)}"
                yield difference(case, actual, expected, where, dtype)


def verdicts_over_reverse(case: _infos.Covered, dtype: str, count: int) -> Iterator[str]:
    """The same for gradients, whose tangents are second derivatives."""
    info = case.info
    oracle, subject = sides(CPU)
    for sample in _infos.samples(info, dtype, requires_grad=True, count=count):
        args, kwargs = _infos.arguments(sample)
        tangents = tangents_for([args, kwargs])
        kept: list[Any] = []

        def weights(outputs: list[Any], kept: list[Any] = kept) -> list[Any]:
            kept.extend(oracle.library.randn_like(t.detach()) for t in outputs)
            return kept

        expected = oracle.pull(_infos.in_oracle(info), *_infos.fresh([args, kwargs]), tangents, weights)
        if isinstance(expected, _infos.Failure) or not expected:
            continue
        converted = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        mine = [_oracle.from_oracle(t) for t in tangents]
        actual = subject.pull(
            _infos.in_subject(info), *converted, mine, lambda _, kept=kept: [_oracle.from_oracle(w) for w in kept]
        )
        yield difference(case, actual, expected, f"{case.label} {dtype} {_infos.describe(sample)} gradient", dtype)


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
    rtol, atol = TOLERANCES.get((case.label, dtype), (None, None))
    share = SHARES.get((case.label, dtype))
    if share is not None:
        largest = max([float(t.abs().max()) for _, t in expected if t is not None and t.numel()], default=0.0)
        rtol, atol = rtol or 1e-6, max(atol or 0.0, share * largest)
    for position, ((_, mine), (_, theirs)) in enumerate(zip(actual, expected)):
        if mine is None and theirs is None:
            continue
        if theirs is None:
            theirs = _oracle.load().zeros(tuple(mine.shape), dtype=_oracle.dtype_in(_oracle.load(), mine.dtype))
        if mine is None:
            mine = _oracle.from_oracle(_oracle.load().zeros_like(theirs))
        mine, theirs = _infos.comparable(case.row, [mine]), _infos.comparable(case.row, [theirs.detach()])
        try:
            _oracle.assert_same(mine, theirs, rtol, atol, f"{where} tangent {position}", False)
        except AssertionError as error:
            return " ".join(str(error).split())
    return ""
