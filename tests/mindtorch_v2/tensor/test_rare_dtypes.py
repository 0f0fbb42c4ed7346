"""Floating types of eight bits and half complex numbers: values, rounding, and the operators that PyTorch has for them.

Invariant: conversions are PyTorch's bit by bit, over all codes and over what lies between them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject

FLOAT8 = "float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu".split()
RARE = [*FLOAT8, "complex32"]


def codes(t: Any, name: str) -> Any:
    return t.arange(256, dtype=t.uint8).view(getattr(t, name))


def between(t: Any, name: str) -> Any:
    """Floats at, between and just beside the numbers of a type, and beyond them, of both signs."""
    known = codes(t, name).float()
    known = known[known.isfinite() & (known >= 0)].sort().values.double()
    middle = (known[1:] + known[:-1]) / 2
    points = t.cat([known, middle, middle * (1 + 2.0**-22), middle * (1 - 2.0**-22), known[-1:] * 1.01])
    rest = [0.0, 1e-45, 1e-38, 3e38, float("inf"), float("nan"), 1.5, 464.0, 480.0, 61440.0, 65536.0, 247.9, 248.0]
    points = t.cat([points, t.tensor(rest, dtype=t.float64)]).float()
    return t.cat([points, -points])


@pytest.mark.oracle
@pytest.mark.parametrize("name", FLOAT8)
def test_every_code_is_pytorchs_number(name: str) -> None:
    oracle = _oracle.load()
    mine, theirs = (codes(t, name).float().view(t.int32) for t in (subject, oracle))
    nan = codes(oracle, name).float().isnan().tolist()
    assert [n for n, m in zip(mine.tolist(), nan) if not m] == [n for n, m in zip(theirs.tolist(), nan) if not m]
    assert codes(subject, name).isnan().tolist() == nan
    assert repr(codes(subject, name).tolist()) == repr(codes(oracle, name).tolist())
    for dtype in ("float64", "float16", "bfloat16", "complex64"):
        ours, wanted = (codes(t, name).to(getattr(t, dtype)) for t in (subject, oracle))
        assert repr(ours.tolist()) == repr(wanted.tolist()), dtype


@pytest.mark.oracle
@pytest.mark.parametrize("name", FLOAT8)
def test_rounding_is_pytorchs(name: str) -> None:
    oracle = _oracle.load()
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        mine, theirs = (
            between(t, name).to(getattr(t, dtype)).to(getattr(t, name)).view(t.uint8) for t in (subject, oracle)
        )
        points = between(oracle, name).tolist()
        # The sign of a NaN is nobody's business.
        wrong = [(p, a, b) for p, a, b in zip(points, mine.tolist(), theirs.tolist()) if a != b and p == p]
        assert wrong == [], dtype


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "ones": lambda t, x: t.ones(2, dtype=x.dtype),
    "full": lambda t, x: t.full((2,), 2, dtype=x.dtype),
    "fill_": lambda t, x: x.clone().fill_(1),
    "tensor": lambda t, x: t.tensor([1.0, 2.0], dtype=x.dtype),
    "item": lambda t, x: x[0].item(),
    "repr": lambda t, x: repr(x),
    "cat": lambda t, x: t.cat([x, x]),
    "index": lambda t, x: x[t.tensor([1, 0])],
    "where": lambda t, x: t.where(t.tensor([True, False]), x, x),
    "eq": lambda t, x: x == x,
    "ne": lambda t, x: x != 2,
    "isnan": lambda t, x: x.isnan(),
    "isfinite": lambda t, x: x.isfinite(),
    "isinf": lambda t, x: x.isinf(),
    "isfinite of NaN": lambda t, x: t.tensor([float("nan")]).to(x.dtype).isfinite(),
    "repr with NaN": lambda t, x: repr(t.tensor([float("nan"), 1.0]).to(x.dtype)),
    "abs": lambda t, x: x.abs(),
    "add": lambda t, x: x + x,
    "sub": lambda t, x: x - 1.5,
    "neg": lambda t, x: -x,
    "div": lambda t, x: x / x,
    "lt": lambda t, x: x < x,
    "exp": lambda t, x: x.exp(),
    "masked_fill": lambda t, x: x.masked_fill(t.tensor([True, False]), 3),
    "copy_": lambda t, x: x.clone().copy_(t.ones(2)),
    "setitem": lambda t, x: x.clone().__setitem__(0, 1),
    "to int32": lambda t, x: x.int(),
    "to bool": lambda t, x: x.bool(),
    "numpy": lambda t, x: x.numpy(),
    "numbers": lambda t, x: [t.result_type(x, 1), t.result_type(x, 1.5)],
    "complex": lambda t, x: t.complex(t.ones(2).half(), x.half()) if not x.is_complex() else 0,
    "type": lambda t, x: x.type(),
    "repeat": lambda t, x: x.repeat(2),
    "any": lambda t, x: x.any(),
    "view": lambda t, x: x.view(t.uint8),
    "index_add": lambda t, x: x.index_add(0, t.tensor([1, 1]), x),
    "index_add of a part": lambda t, x: x.index_add(0, t.tensor([1, 1]), x, alpha=2.5),
    "index_copy": lambda t, x: x.index_copy(0, t.tensor([1]), x[:1]),
    "index_fill": lambda t, x: x.index_fill(0, t.tensor([1]), 3.0),
    "index_fill with a tensor": lambda t, x: x.index_fill(0, t.tensor([1]), x[0]),
    "index_put": lambda t, x: x.index_put((t.tensor([1]),), x[:1]),
    "index_put that adds": lambda t, x: x.index_put((t.tensor([1, 1]),), x, accumulate=True),
    "addcmul": lambda t, x: t.addcmul(x, x, x, value=2),
    "addcdiv": lambda t, x: t.addcdiv(x, x, x),
    "mm": lambda t, x: x.view(1, 2) @ x.view(2, 1),
    "mm of nothing": lambda t, x: x.view(2, 1)[:, :0] @ x.view(1, 2)[:0],
    "large mm": lambda t, x: x.repeat(100, 100) @ x.repeat(200, 50),
    "addmm": lambda t, x: t.addmm(x, x.view(2, 1), x.view(1, 2), beta=0.5, alpha=3),
    "mv": lambda t, x: x.view(1, 2) @ x,
    "dot": lambda t, x: x @ x,
    "bmm": lambda t, x: x.view(1, 1, 2) @ x.view(1, 2, 1),
    "inverse": lambda t, x: t.linalg.inv(x.repeat(2, 1)),
    "det": lambda t, x: t.linalg.det(x.repeat(2, 1)),
}


def outcome(t: Any, name: str, run: Callable[[Any, Any], Any]) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = t.tensor([1.0, 2.0]).to(getattr(t, name))
        try:
            got = run(t, x)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if isinstance(got, t.Tensor):
        return f"{got.dtype} {tuple(got.shape)} {got.tolist()}"
    return str(got)


@pytest.mark.oracle
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", RARE)
def test_operators_are_pytorchs(name: str, operator: str) -> None:
    run = OPERATORS[operator]
    assert outcome(subject, name, run) == outcome(_oracle.load(), name, run)


@pytest.mark.oracle
def test_half_complex_arithmetic() -> None:
    """Computed in single precision and rounded once, as PyTorch does."""

    def results(t: Any) -> list[Any]:
        a = t.view_as_complex((t.arange(400.0).reshape(200, 2) * 7.3 % 19 - 9).half())
        b = t.view_as_complex((t.arange(400.0).reshape(200, 2) * 3.7 % 11 - 5).half())
        found = [a + b, a - b, a * b, -a, a * (2 - 1j), a + 0.5, a.conj().resolve_conj(), a.to(t.complex64)]
        return [r.tolist() for r in [*found, a.abs(), a.real, a.imag, a == b]]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert results(subject) == results(_oracle.load())


def test_without_an_oracle() -> None:
    t = subject
    assert t.tensor([0.1, 300.0, -0.0]).to(t.float8_e4m3fnuz).tolist()[0] == 0.1015625
    assert t.tensor([3.0, 0.3]).to(t.float8_e8m0fnu).tolist() == [4.0, 0.25]
    half = t.tensor([1 + 2j], dtype=t.complex32)
    assert (half * half).tolist() == [-3 + 4j] and half.element_size() == 4 and half.real.dtype == t.float16
    assert t.tensor([1.0]).half().chalf().dtype == t.complex32 and t.promote_types(t.half, t.complex32) == t.complex32
