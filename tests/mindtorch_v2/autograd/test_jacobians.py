"""The deprecated Jacobians of `torch.autograd.gradcheck`: PyTorch's values, flags, warnings and refusals."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject


def checks(t: Any) -> Any:
    """The module: `torch.autograd.gradcheck` is the function."""
    return importlib.import_module(f"{t.__name__}.autograd.gradcheck")


def numbers(t: Any, dtype: str = "float64") -> Any:
    return (t.arange(6.0) * 0.37 - 1).reshape(2, 3).to(getattr(t, dtype)).requires_grad_()


def complex_numbers(t: Any) -> Any:
    return t.complex(numbers(t).detach(), numbers(t).detach() * 2 + 1).requires_grad_()


def numerical(t: Any, fn: Callable[[Any], Any], inputs: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return checks(t).get_numerical_jacobian(fn, inputs, **options)


def analytical(t: Any, inputs: Any, output: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jacobians, *flags = checks(t).get_analytical_jacobian(inputs, output, **options)
    return [*jacobians, flags]


def _moved(t: Any) -> Any:
    x, target = numbers(t), numbers(t)
    return numerical(t, lambda inputs: (inputs[0] * target).sum(0), (x,), target=(target,), eps=1e-2)


def _of_one_input(t: Any) -> Any:
    x, y = numbers(t), numbers(t)
    function = checks(t).get_numerical_jacobian_wrt_specific_input
    return function(lambda a, b: (a * b, b.sum()), 1, (x, y), (x * y, y.sum()), 1e-4)


def _unused(t: Any) -> Any:
    x, y = numbers(t), numbers(t)
    return analytical(t, (x, y, 3), (x * 2).tanh())


CASES: dict[str, Callable[[Any], Any]] = {
    "numerical": lambda t: numerical(t, lambda i: i[0].sin() * i[1].sum(), (numbers(t), numbers(t)), eps=1e-5),
    "first output": lambda t: numerical(t, lambda i: (i[0].exp(), i[0] * 2), (numbers(t),)),
    "float32": lambda t: numerical(t, lambda i: i[0] ** 2, (numbers(t, "float32"),), eps=0.25),
    "another target": _moved,
    "complex input": lambda t: numerical(t, lambda i: i[0].abs(), (complex_numbers(t),), eps=1e-5),
    "complex output": lambda t: numerical(t, lambda i: i[0] * 1j, (numbers(t),)),
    "grad_out": lambda t: numerical(t, lambda i: i[0], (numbers(t),), grad_out=2.0),
    "one input": _of_one_input,
    "no gradient": lambda t: checks(t).get_numerical_jacobian_wrt_specific_input(
        lambda a: a, 0, (t.ones(2),), (t.ones(2),), 1e-3
    ),
    "analytical": lambda t: analytical(t, (x := numbers(t),), x.exp() * x),
    "analytical of a complex input": lambda t: analytical(t, (x := complex_numbers(t),), x.abs()),
    "analytical, not used": _unused,
    "analytical of complex numbers": lambda t: analytical(t, (x := complex_numbers(t),), x * 2),
    "analytical grad_out": lambda t: analytical(t, (x := numbers(t),), x * 2, grad_out=3.0),
}


def outcome(t: Any, run: Callable[[Any], Any]) -> Any:
    try:
        found = run(t)
    except Exception as error:
        return type(error).__name__, str(error)
    return [(str(j.dtype), tuple(j.shape), j.tolist()) if isinstance(j, t.Tensor) else j for j in found]


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_equals_the_oracles(case: str) -> None:
    mine, theirs = (outcome(t, CASES[case]) for t in (subject, _oracle.load()))
    if isinstance(theirs, tuple):
        assert mine == theirs
        return
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs):
        if isinstance(b, tuple):
            assert a[:2] == b[:2]
            assert subject.allclose(subject.tensor(a[2]), subject.tensor(b[2]), rtol=1e-5, atol=1e-6)
        else:
            assert a == b


def test_they_are_deprecated() -> None:
    x = numbers(subject)
    with pytest.warns(FutureWarning, match="`get_numerical_jacobian` was part of PyTorch's private API"):
        (found,) = checks(subject).get_numerical_jacobian(lambda i: i[0] * 3, (x,))
    assert subject.allclose(found, 3 * subject.eye(6, dtype=subject.float64), atol=1e-6)
    with pytest.warns(FutureWarning, match="`get_analytical_jacobian` was part of"):
        jacobians, *flags = checks(subject).get_analytical_jacobian((x,), x * 3)
    assert flags == [True, True, True] and subject.allclose(jacobians[0], found)
