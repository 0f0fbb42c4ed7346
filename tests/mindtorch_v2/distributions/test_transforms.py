"""Transforms, and the registries that lead to constraints, against PyTorch; round trips and Jacobians by themselves."""

from __future__ import annotations

import pickle
from types import ModuleType
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule

D = submodule("distributions")
X = [[-1.2, 0.3, 0.9], [0.1, -0.5, 2.0]]
POSITIVE = [[0.2, 0.7, 1.9], [1.1, 3.5, 0.4]]
SQUARE = [[[0.3, -0.2], [1.0, 0.5]], [[-0.4, 0.8], [0.6, -1.0]]]


def tensor(torch: Any, values: Any) -> Any:
    return torch.tensor(values, dtype=torch.float64)


# Name, maker, input. `t` makes tensors of the library.
ROWS: list[tuple[str, Any, Any]] = [
    ("identity", lambda D, t: D.identity_transform, X),
    ("Abs", lambda D, t: D.AbsTransform(), X),
    ("Affine", lambda D, t: D.AffineTransform(t([0.5, 1.0, -2.0]), t([2.0, -0.3, 1.0])), X),
    ("Affine numbers", lambda D, t: D.AffineTransform(1.5, -2.0), X),
    ("Affine event", lambda D, t: D.AffineTransform(t([0.5, 1.0, -2.0]), t([2.0, -0.3, 1.0]), event_dim=1), X),
    ("Affine cached", lambda D, t: D.AffineTransform(0.5, 2.0, cache_size=1), X),
    ("Cat", lambda D, t: D.CatTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], dim=-1, lengths=[1, 2]), X),
    (
        "Compose",
        lambda D, t: D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 3.0), D.ExpTransform().inv]),
        X,
    ),
    ("Compose vectors", lambda D, t: D.ComposeTransform([D.TanhTransform(), D.StickBreakingTransform()]), X),
    ("Compose cached", lambda D, t: D.ComposeTransform([D.ExpTransform(), D.SigmoidTransform()], cache_size=1), X),
    ("CorrCholesky", lambda D, t: D.CorrCholeskyTransform(), X),
    ("CumulativeDistribution", lambda D, t: D.CumulativeDistributionTransform(D.Normal(t(0.3), t(1.5))), X),
    ("Exp", lambda D, t: D.ExpTransform(), X),
    ("Independent", lambda D, t: D.IndependentTransform(D.ExpTransform(), 1), X),
    ("Independent of Independent", lambda D, t: D.IndependentTransform(D.StickBreakingTransform(), 1), X),
    ("LowerCholesky", lambda D, t: D.LowerCholeskyTransform(), SQUARE),
    ("PositiveDefinite", lambda D, t: D.PositiveDefiniteTransform(), SQUARE),
    ("Power", lambda D, t: D.PowerTransform(t([0.5, 2.0, -1.0])), POSITIVE),
    ("Power number", lambda D, t: D.PowerTransform(3), POSITIVE),
    ("Reshape", lambda D, t: D.ReshapeTransform((3,), (3, 1)), X),
    ("Sigmoid", lambda D, t: D.SigmoidTransform(), X),
    ("Softmax", lambda D, t: D.SoftmaxTransform(), X),
    ("Softplus", lambda D, t: D.SoftplusTransform(), X),
    ("Stack", lambda D, t: D.StackTransform([D.ExpTransform(), D.identity_transform, D.TanhTransform()], dim=-1), X),
    ("StickBreaking", lambda D, t: D.StickBreakingTransform(), X),
    ("Tanh", lambda D, t: D.TanhTransform(), X),
]
every_row = pytest.mark.parametrize(("name", "make", "values"), ROWS, ids=[row[0] for row in ROWS])


def attempt(question: Any) -> Any:
    try:
        return question()
    except (NotImplementedError, ValueError, AssertionError, AttributeError) as error:
        return type(error).__name__, str(error).replace("mindtorch_v2", "torch")


@pytest.mark.oracle
@every_row
def test_as_the_oracle(oracle: ModuleType, name: str, make: Any, values: Any) -> None:
    found = []
    for library in (torch, oracle):
        of = lambda values, library=library: tensor(library, values)  # noqa: E731
        transform, other = (make(library.distributions, of) for _ in range(2))
        x = of(values).requires_grad_()
        y = attempt(lambda t=transform, x=x: t(x))
        back = attempt(lambda t=transform, y=y: t.inv(y))
        log = attempt(lambda t=transform, x=x, y=y: t.log_abs_det_jacobian(x, y))
        shape = tuple(x.shape)
        facts = [
            attempt(lambda t=transform: repr(t)),
            attempt(lambda t=transform: repr(t.inv)),
            *(attempt(lambda t=transform, n=n: repr(getattr(t, n))) for n in ("domain", "codomain")),
            *(attempt(lambda t=transform, n=n: getattr(t, n).event_dim) for n in ("domain", "codomain")),
            attempt(lambda t=transform: t.bijective),
            attempt(lambda t=transform: str(t.sign)),
            attempt(lambda t=transform: t.event_dim),
            attempt(lambda t=transform, s=shape: tuple(t.forward_shape(s))),
            attempt(lambda t=transform, y=y: tuple(t.inverse_shape(tuple(y.shape)))),
            attempt(lambda t=transform: t == t and t != object()),
            attempt(lambda t=transform, other=other: other == t),
            attempt(lambda t=transform: (t.with_cache(1)._cache_size, t.with_cache() is t, t.inv.inv is t)),
            attempt(lambda t=transform, y=y: t.codomain.check(y).tolist()),
            attempt(lambda t=transform, x=x: t.domain.check(x).tolist()),
        ]
        grads = [
            library.autograd.grad(v.sum(), x, retain_graph=True, allow_unused=True)[0] if v.requires_grad else None
            for v in (y, back, log)
            if not isinstance(v, tuple)
        ]
        found.append((facts, [y, back, log, *grads]))
    (facts, tensors), (their_facts, their_tensors) = found
    assert facts == their_facts
    for mine, theirs in zip(tensors, their_tensors):
        if theirs is None or isinstance(theirs, tuple):
            assert mine == theirs
        else:
            _oracle.assert_same(mine.detach(), theirs.detach(), 1e-8, 1e-9, name, stride=False)


@every_row
def test_the_inverse_leads_back(name: str, make: Any, values: Any) -> None:
    transform = make(D, lambda v: tensor(torch, v))
    x = tensor(torch, values)
    y = transform(x)
    if transform.bijective:
        assert torch.allclose(transform.inv(y), x, atol=1e-6), name
    elif name != "Abs":
        assert torch.allclose(transform(transform.inv(y)), y, atol=1e-6), name
    again = pickle.loads(pickle.dumps(transform))
    if "Compose" not in name:  # with an inverse inside, which forgets what it inverts, in PyTorch too
        assert torch.equal(again(x), y)


@every_row
def test_the_jacobian_is_that_of_autograd(name: str, make: Any, values: Any) -> None:
    transform = make(D, lambda v: tensor(torch, v))
    square = transform.bijective and name not in ("CorrCholesky", "Reshape", "Independent of Independent")
    if not square or "StickBreaking" in name or name == "Compose vectors":
        return
    x = tensor(torch, values)[0]
    jacobian = torch.autograd.functional.jacobian(transform, x)
    whole = transform.log_abs_det_jacobian(x, transform(x)).sum()
    assert torch.allclose(torch.linalg.slogdet(jacobian).logabsdet, whole), name


def test_the_jacobian_of_stick_breaking() -> None:
    transform, x = D.StickBreakingTransform(), tensor(torch, X[0])
    jacobian = torch.autograd.functional.jacobian(lambda v: transform(v)[:-1], x)
    expected = torch.linalg.slogdet(jacobian).logabsdet
    assert torch.allclose(transform.log_abs_det_jacobian(x, transform(x)), expected)


def test_a_cache_remembers_the_last_pair() -> None:
    calls: list[str] = []

    class Counted(D.ExpTransform):
        def _call(self, x: Any) -> Any:
            calls.append("call")
            return super()._call(x)

        def _inverse(self, y: Any) -> Any:
            calls.append("inverse")
            return super()._inverse(y)

    x = tensor(torch, X)
    cached = Counted(cache_size=1)
    y = cached(x)
    assert cached(x) is y and cached.inv(y) is x and calls == ["call"]
    plain = cached.with_cache(0)
    assert type(plain) is Counted and plain(x) is not y
    assert Counted() == D.ExpTransform() and D.ExpTransform() == Counted() and D.ExpTransform() != D.AbsTransform()


CONSTRAINTS: list[Any] = [
    lambda c, t: c.real,
    lambda c, t: c.positive,
    lambda c, t: c.nonnegative,
    lambda c, t: c.greater_than(t([1.0, -2.0, 0.5])),
    lambda c, t: c.greater_than_eq(-3.0),
    lambda c, t: c.less_than(2.5),
    lambda c, t: c.unit_interval,
    lambda c, t: c.interval(-1.0, 4.0),
    lambda c, t: c.half_open_interval(0.5, 2.0),
    lambda c, t: c.interval(t([0.0, 1.0, 2.0]), t([1.0, 5.0, 2.5])),
    lambda c, t: c.simplex,
    lambda c, t: c.lower_cholesky,
    lambda c, t: c.positive_definite,
    lambda c, t: c.positive_semidefinite,
    lambda c, t: c.corr_cholesky,
    lambda c, t: c.independent(c.positive, 1),
    lambda c, t: c.real_vector,
    lambda c, t: c.cat([c.positive, c.interval(0.0, 2.0)], -1, [1, 2]),
    lambda c, t: c.stack([c.positive, c.real, c.less_than(1.0)], -1),
    lambda c, t: c.boolean,
    lambda c, t: c.dependent,
]


@pytest.mark.oracle
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("which", range(len(CONSTRAINTS)))
def test_registries_as_the_oracle(oracle: ModuleType, registry: str, which: int) -> None:
    found = []
    for library in (torch, oracle):
        make = lambda v, library=library: tensor(library, v)  # noqa: E731
        constraint = CONSTRAINTS[which](library.distributions.constraints, make)
        transform = attempt(lambda c=constraint, t=library: getattr(t.distributions, registry)(c))
        if isinstance(transform, tuple):
            found.append((transform, None))
            continue
        matrix = constraint.event_dim == 2 and which != 14
        y = transform(make(SQUARE if matrix else X))
        assert bool(constraint.check(y).all())
        found.append((repr(transform), y))
    assert found[0][0] == found[1][0]
    if found[1][1] is not None:
        _oracle.assert_same(found[0][1], found[1][1], 1e-9, 1e-9, stride=False)
