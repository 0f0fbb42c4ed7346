"""Every distribution against PyTorch: samples for a seed, densities, moments, gradients, expansion, text."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from types import ModuleType
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule
from ._both import Pair
from ._table import ROWS, Numbers, Row

D = submodule("distributions")
every_row = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


@pytest.mark.oracle
@every_row
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_as_the_oracle(oracle: ModuleType, row: Row, dtype: str) -> None:
    pair = Pair(row, dtype, grad=True)
    pair.same("repr", lambda t, d: repr(d))
    pair.same("shapes", lambda t, d: (tuple(d.batch_shape), tuple(d.event_shape)))
    pair.same("flags", lambda t, d: (d.has_rsample, d.has_enumerate_support))
    pair.same("constraints", lambda t, d: {name: repr(c) for name, c in d.arg_constraints.items()})
    pair.same("support", lambda t, d: (repr(d.support), d.support.event_dim, d.support.is_discrete))
    for name in ("mean", "mode", "variance", "stddev"):
        pair.same(name, lambda t, d, name=name: getattr(d, name))
    pair.same("entropy", lambda t, d: d.entropy())
    pair.same("perplexity", lambda t, d: d.perplexity())
    pair.same("support's values", lambda t, d: d.enumerate_support())
    pair.same("support's values, not expanded", lambda t, d: d.enumerate_support(False))
    sample = pair.same("sample", lambda t, d: d.sample((4,)))
    pair.same("one sample", lambda t, d: d.sample())
    if not row.name.startswith("Wishart"):
        # Wishart's samples have no gradient in PyTorch, whose backward complains about the mask of new attempts.
        pair.same("rsample", lambda t, d: d.rsample((2, 3)))
    value = pair.value(sample)
    pair.same("log_prob", lambda t, d: d.log_prob(value[t]))
    pair.same("cdf", lambda t, d: d.cdf(value[t]))
    quantiles = pair.value(oracle.tensor([[0.1], [0.7]], dtype=getattr(oracle, dtype)))
    pair.same("icdf", lambda t, d: d.icdf(quantiles[t].expand(2, (*d.batch_shape, 1)[-1] if d.batch_shape else 1)))


@pytest.mark.oracle
@every_row
def test_expanded_as_the_oracle(oracle: ModuleType, row: Row) -> None:
    pair = Pair(row, grad=True)
    pair.same("repr", lambda t, d: repr(d.expand((2, *d.batch_shape))))
    pair.same("kind", lambda t, d: type(d.expand((2, *d.batch_shape))) is type(d))
    sample = pair.same("sample", lambda t, d: d.expand((2, *d.batch_shape)).sample((3,)))
    value = pair.value(sample)
    pair.same("log_prob", lambda t, d: d.expand((2, *d.batch_shape)).log_prob(value[t]))
    pair.same("mean", lambda t, d: d.expand((2, *d.batch_shape)).mean)
    if not row.name.startswith("Multinomial"):  # PyTorch's forgets the binomial it needs
        pair.same("entropy", lambda t, d: d.expand((2, *d.batch_shape)).entropy())


@pytest.mark.oracle
@every_row
def test_values_outside_are_refused_as_by_the_oracle(oracle: ModuleType, row: Row) -> None:
    pair = Pair(row)
    nan = float("nan")
    shape = lambda d: tuple(d.batch_shape + d.event_shape)  # noqa: E731
    pair.same("NaN", lambda t, d: d.log_prob(t.full((2, *shape(d)), nan, dtype=t.float64)))
    pair.same("shape", lambda t, d: d.log_prob(t.full((*shape(d), 7), 0.5, dtype=t.float64)))
    pair.same("no tensor", lambda t, d: d.log_prob("x"))
    pair.same("unvalidated", lambda t, d: d._validate_args)


@pytest.mark.oracle
def test_signatures_are_the_oracles(oracle: ModuleType) -> None:
    def described(function: Any) -> list[tuple[str, Any]]:
        found = inspect.signature(function).parameters.values()
        return [(p.name, p.kind, None if isinstance(p.default, tuple) else p.default) for p in found]

    theirs = oracle.distributions
    assert set(theirs.__all__) == set(D.__all__)
    for name in theirs.__all__:
        mine = getattr(D, name)
        assert mine.__module__.rpartition(".")[2] in (getattr(theirs, name).__module__.rpartition(".")[2], "_composed")
        if not inspect.isclass(mine):
            continue
        assert described(mine.__init__) == described(getattr(theirs, name).__init__), name
        for attribute, function in vars(getattr(theirs, name)).items():
            public = not attribute.startswith("_") or attribute in ("__call__",)
            if public:
                assert hasattr(mine, attribute), f"{name}.{attribute}"
            if public and inspect.isfunction(function):
                wanted = [p[:2] for p in described(function)]
                assert [p[:2] for p in described(getattr(mine, attribute))] == wanted, f"{name}.{attribute}"


@pytest.mark.oracle
def test_submodules_have_the_oracles_names(oracle: ModuleType) -> None:
    for name in dir(oracle.distributions):
        theirs = getattr(oracle.distributions, name)
        if inspect.ismodule(theirs):
            mine = getattr(D, name)
            assert set(theirs.__all__) <= set(dir(mine)), name
            assert sorted(mine.__all__) == sorted(theirs.__all__), name
            assert name in dir(D)


@every_row
def test_copies_and_pickles(row: Row) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = row.make(D, Numbers(torch))
        for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            torch.manual_seed(1)
            first = made.sample((2,))
            torch.manual_seed(1)
            if row.name != "Gumbel":  # its inverse transforms do not survive copying, in PyTorch neither
                assert torch.equal(again.sample((2,)), first)
            assert type(again) is type(made) and repr(again) == repr(made)


@every_row
def test_subclasses_expand_by_their_own_rules(row: Row) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = row.make(D, Numbers(torch))
        plain = type("Plain", (type(made),), {})
        again = copy.copy(made)
        again.__class__ = plain
        assert type(again.expand((2, *made.batch_shape))) is plain
        if type(made).__name__ == "VonMises":
            return  # makes a new object with the constructor
        own = type("Own", (type(made),), {"__init__": lambda self: None})
        again.__class__ = own
        with pytest.raises(NotImplementedError, match="that defines a custom __init__ method must also define"):
            again.expand((2, *made.batch_shape))


def test_validation_can_be_turned_off() -> None:
    wrong = torch.tensor([-1.0])
    with pytest.raises(ValueError, match="Expected parameter scale"):
        D.Normal(0.0, wrong)
    D.Normal(0.0, wrong, validate_args=False)
    try:
        D.Distribution.set_default_validate_args(False)
        assert D.Normal(0.0, wrong).scale is wrong
        with pytest.raises(ValueError):
            D.Normal(0.0, wrong, validate_args=True)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError):
        D.Distribution.set_default_validate_args("yes")


def test_sample_n_warns() -> None:
    with pytest.warns(FutureWarning, match=r"`sample_n\(n\)` will be deprecated. Use `sample\(\(n,\)\)` instead."):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)


def test_a_distribution_that_says_little_warns() -> None:
    class Bare(D.Distribution):
        def log_prob(self, value: Any) -> Any:
            self._validate_sample(value)
            return value

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        bare = Bare()
    with pytest.warns(UserWarning, match="does not define `support` to enable sample validation"):
        bare.log_prob(torch.zeros(()))
    with pytest.raises(NotImplementedError, match="does not implement mode"):
        _ = bare.mode


def test_an_expanded_multinomial_has_an_entropy() -> None:
    made = D.Multinomial(3, torch.tensor([0.2, 0.8]))
    assert torch.allclose(made.expand((4,)).entropy(), made.entropy().expand(4))


def test_parameters_are_not_copied() -> None:
    loc, probs = torch.zeros(3), torch.full((2,), 0.5)
    assert D.Normal(loc, 1.0).loc is loc
    bernoulli = D.Bernoulli(probs)
    assert bernoulli.probs is probs and "logits" not in vars(bernoulli)
    logits = bernoulli.logits
    assert bernoulli.logits is logits and bernoulli.param_shape == (2,)
    expanded = bernoulli.expand((5, 2))
    assert expanded.probs.data_ptr() == probs.data_ptr() and expanded._param is expanded.logits
    assert bernoulli._new((2,)).dtype is probs.dtype
    assert isinstance(D.Bernoulli.probs, property)
