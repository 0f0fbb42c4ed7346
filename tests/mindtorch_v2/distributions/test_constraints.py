"""Constraints and helpers against PyTorch: what they accept, how they print, what they know of themselves."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule

D = submodule("distributions")
NAN, INF = float("nan"), float("inf")

ROWS: list[tuple[str, Any, list[Any]]] = [
    ("boolean", lambda c, t: c.boolean, [[0.0, 1.0, 2.0, NAN]]),
    ("one_hot", lambda c, t: c.one_hot, [[0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]]),
    ("nonnegative_integer", lambda c, t: c.nonnegative_integer, [[-1.0, 0.0, 2.0, 2.5]]),
    ("positive_integer", lambda c, t: c.positive_integer, [[0.0, 1.0, 1.5]]),
    ("integer_interval", lambda c, t: c.integer_interval(1, t([2.0, 3.0, 9.0])), [[2.0, 4.0, 3.5]]),
    ("real", lambda c, t: c.real, [[-1.0, NAN, INF]]),
    ("real_vector", lambda c, t: c.real_vector, [[1.0, 2.0], [NAN, 1.0]]),
    ("positive", lambda c, t: c.positive, [[0.0, 1e-9, -1.0]]),
    ("nonnegative", lambda c, t: c.nonnegative, [[0.0, 1e-9, -1.0]]),
    ("greater_than", lambda c, t: c.greater_than(t([0.5, 1.0])), [[1.0, 1.0]]),
    ("greater_than_eq", lambda c, t: c.greater_than_eq(1), [[1.0, 0.9]]),
    ("less_than", lambda c, t: c.less_than(1.5), [[1.5, 1.4]]),
    ("multinomial", lambda c, t: c.multinomial(3), [[1.0, 2.0], [2.0, 2.0], [-1.0, 1.0]]),
    ("unit_interval", lambda c, t: c.unit_interval, [[0.0, 1.0, 1.1]]),
    ("interval", lambda c, t: c.interval(-1.0, t([1.0, 2.0])), [[1.0, 2.5]]),
    ("half_open_interval", lambda c, t: c.half_open_interval(0.0, 1.0), [[0.0, 1.0]]),
    ("simplex", lambda c, t: c.simplex, [[0.2, 0.8], [0.5, 0.6], [-0.5, 1.5]]),
    ("lower_triangular", lambda c, t: c.lower_triangular, [[1.0, 0.0], [2.0, -3.0]]),
    ("lower_cholesky", lambda c, t: c.lower_cholesky, [[[1.0, 0.0], [2.0, 3.0]], [[1.0, 0.0], [2.0, -3.0]]]),
    ("corr_cholesky", lambda c, t: c.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.7]]]),
    ("square", lambda c, t: c.square, [[1.0, 2.0]]),
    ("symmetric", lambda c, t: c.symmetric, [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [3.0, 1.0]]]),
    (
        "positive_semidefinite",
        lambda c, t: c.positive_semidefinite,
        [[[1.0, 2.0], [2.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]],
    ),
    ("positive_definite", lambda c, t: c.positive_definite, [[[1.0, 2.0], [2.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]]]),
    ("independent", lambda c, t: c.independent(c.positive, 1), [[1.0, 2.0], [1.0, -1.0]]),
    ("cat", lambda c, t: c.cat([c.positive, c.real], -1, [1, 2]), [[1.0, -2.0, 1.0], [-1.0, NAN, 3.0]]),
    ("stack", lambda c, t: c.stack([c.positive, c.boolean], -1), [[1.0, 1.0], [-1.0, 3.0]]),
    ("mixture", lambda c, t: c.MixtureSameFamilyConstraint(c.interval(t([0.0, 1.0]), t([2.0, 3.0]))), [1.5, 0.5]),
    ("dependent", lambda c, t: c.dependent(event_dim=1), [[1.0]]),
    ("dependent twice", lambda c, t: c.dependent(event_dim=1)(is_discrete=True), [[1.0]]),
]


def attempt(question: Any) -> Any:
    try:
        return question()
    except Exception as error:
        return type(error).__name__, str(error)


def described(torch: Any, make: Any, values: Any) -> list[Any]:
    of = lambda v: torch.tensor(v, dtype=torch.float64)  # noqa: E731
    constraint = make(torch.distributions.constraints, of)
    return [
        attempt(lambda: repr(constraint)),
        attempt(lambda: constraint.event_dim),
        attempt(lambda: constraint.is_discrete),
        attempt(lambda: constraint.check(of(values)).tolist()),
        torch.distributions.constraints.is_dependent(constraint),
    ]


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "make", "values"), ROWS, ids=[row[0] for row in ROWS])
def test_as_the_oracle(oracle: ModuleType, name: str, make: Any, values: Any) -> None:
    assert described(torch, make, values) == described(oracle, make, values)


def test_checks() -> None:
    c = D.constraints
    assert c.positive.check(torch.tensor([0.0, 1.0])).tolist() == [False, True]
    assert c.simplex.check(torch.tensor([[0.5, 0.5], [0.5, 0.6]])).tolist() == [True, False]
    assert c.is_dependent(D.Uniform.support) and not c.is_dependent(D.Uniform(0.0, 1.0).support)
    assert D.Uniform.support.event_dim == 0 and not D.Uniform.support.is_discrete
    with pytest.raises(NotImplementedError, match="event_dim cannot be determined statically"):
        _ = D.Independent.support.event_dim


@pytest.mark.oracle
def test_helpers_as_the_oracle(oracle: ModuleType) -> None:
    found = []
    for library in (torch, oracle):
        u = library.distributions.utils
        probs = library.tensor([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
        vec = library.arange(6.0)
        a, b, c = u.broadcast_all(library.ones(2, 1), 3, library.zeros(3, dtype=library.float64))
        found.append(
            [
                *(u.probs_to_logits(probs, binary) for binary in (True, False)),
                *(u.logits_to_probs(probs, binary) for binary in (True, False)),
                u.clamp_probs(probs),
                *(u.vec_to_tril_matrix(vec, diag) for diag in (0, -1)),
                *(u.tril_matrix_to_vec(u.vec_to_tril_matrix(vec, -1), diag) for diag in (0, -1, -2, 2)),
                *(a, b, c),
                *u.broadcast_all(1, True),
                u._sum_rightmost(probs, 2),
            ]
        )
    for mine, theirs in zip(*found):
        _oracle.assert_same(mine, theirs)


def test_lazy_property() -> None:
    class Lazy:
        calls = 0

        @D.utils.lazy_property
        def answer(self) -> Any:
            """It is computed once."""
            self.calls += 1
            return torch.is_grad_enabled()

    made = Lazy()
    with torch.no_grad():
        assert made.answer and made.answer and made.calls == 1
    assert vars(made)["answer"] is True
    assert isinstance(Lazy.answer, property) and Lazy.answer.__doc__ == "It is computed once."
