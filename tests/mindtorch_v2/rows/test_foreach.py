"""`torch._foreach_*` against PyTorch: lists, numbers, a number for each, one tensor; in place too."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

pytestmark = pytest.mark.oracle

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal "
    "round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
BINARY = "add sub mul div pow maximum minimum clamp_min clamp_max".split()


def tensors(t: Any, start: float = 0.25) -> list[Any]:
    return [t.linspace(start, 0.75, 5), t.full((2, 3), 0.5).mul(start), t.tensor(0.5)]


def calls() -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in UNARY:
        out[name] = (name, lambda t: ())
    for name in BINARY:
        out[name + "-list"] = (name, lambda t: (tensors(t, 0.1),))
        out[name + "-number"] = (name, lambda t: (2.0,))
        out[name + "-numbers"] = (name, lambda t: ([1.0, 2.0, 0.5],))
    for name in ("add", "mul", "div"):
        out[name + "-tensor"] = (name, lambda t: (t.tensor(3.0),))
    for name in ("addcmul", "addcdiv"):
        out[name] = (name, lambda t: (tensors(t, 0.3), tensors(t, 0.2)))
        out[name + "-number"] = (name, lambda t: (tensors(t, 0.3), tensors(t, 0.2), 0.5))
        out[name + "-numbers"] = (name, lambda t: (tensors(t, 0.3), tensors(t, 0.2), [0.5, 1.0, 2.0]))
        out[name + "-tensor"] = (name, lambda t: (tensors(t, 0.3), tensors(t, 0.2), t.tensor([0.5, 1.0, 2.0])))
    out["lerp-list"] = ("lerp", lambda t: (tensors(t, 0.1), tensors(t, 0.2)))
    out["lerp-number"] = ("lerp", lambda t: (tensors(t, 0.1), 0.3))
    out["lerp-numbers"] = ("lerp", lambda t: (tensors(t, 0.1), [0.3, 0.4, 0.5]))
    return out


CALLS = calls()
ONLY_INPLACE: dict[str, Any] = {"zero": ("zero", lambda t: ()), "copy": ("copy", lambda t: (tensors(t, 0.1),))}


@pytest.mark.parametrize("case", CALLS)
def test_functional(case: str) -> None:
    name, rest = CALLS[case]
    oracle = _oracle.load()
    got = getattr(torch, f"_foreach_{name}")(tensors(torch), *rest(torch))
    wanted = getattr(oracle, f"_foreach_{name}")(tensors(oracle), *rest(oracle))
    _oracle.assert_same(list(got), list(wanted), where=case)


@pytest.mark.parametrize("case", [*CALLS, *ONLY_INPLACE])
def test_inplace(case: str) -> None:
    name, rest = CALLS.get(case) or ONLY_INPLACE[case]
    oracle = _oracle.load()
    mine, theirs = tensors(torch), tensors(oracle)
    assert getattr(torch, f"_foreach_{name}_")(mine, *rest(torch)) is mine
    getattr(oracle, f"_foreach_{name}_")(theirs, *rest(oracle))
    assert [t._version for t in mine] == [t._version for t in theirs]
    _oracle.assert_same(mine, theirs, where=case)


def test_alpha() -> None:
    oracle = _oracle.load()
    for name in ("add", "sub"):
        got, wanted = (getattr(t, f"_foreach_{name}")(tensors(t), tensors(t, 0.1), alpha=3) for t in (torch, oracle))
        _oracle.assert_same(list(got), list(wanted), where=name)


def test_norm_and_max() -> None:
    oracle = _oracle.load()
    for order in (1, 2, float("inf")):
        got, wanted = (t._foreach_norm(tensors(t), order) for t in (torch, oracle))
        _oracle.assert_same(list(got), list(wanted), where=f"norm {order}")
    _oracle.assert_same(list(torch._foreach_max(tensors(torch))), list(oracle._foreach_max(tensors(oracle))))


def test_gradient() -> None:
    def run(t: Any) -> list[Any]:
        x = [p.requires_grad_() for p in tensors(t)]
        sum(p.sum() for p in t._foreach_mul(x, x)).backward()
        return [p.grad for p in x]

    _oracle.assert_same(run(torch), run(_oracle.load()))


@pytest.mark.parametrize("rest", [([],), ([1.0],)])
def test_lengths_are_checked(rest: Any) -> None:
    with pytest.raises(RuntimeError):
        torch._foreach_add(tensors(torch), *rest)
    with pytest.raises(RuntimeError):
        torch._foreach_add(tensors(torch), tensors(torch)[:2])
    with pytest.raises(RuntimeError):
        torch._foreach_exp([])
