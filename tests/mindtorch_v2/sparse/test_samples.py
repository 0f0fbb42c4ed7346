"""Operators of PyTorch's table on its samples of sparse layouts: results and gradients.

A sample of the operators runs always; `MINDTORCH_SPARSE=all` takes all of them in every dtype.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch
from ..parity import _infos
from . import _compare

pytestmark = [pytest.mark.oracle, mindtorch_only]

ALL = bool(os.environ.get("MINDTORCH_SPARSE"))
DTYPES = ("float64", "int64", "complex128", "bool", "float32") if ALL else ("float64",)
COUNT = 40 if ALL else 4
CASES = [case for i, case in enumerate(_compare.cases()) if ALL or i % 6 == 1]
# PyTorch's kernel for segments knows floats only, and ours more.
MORE = {("masked.amax", "int64"), ("masked.amin", "int64"), ("masked.mean", "complex128")}


def _function(case: _compare.Case) -> Any:
    kind, _, name = case.info.name.rpartition(".")
    return getattr(torch.masked, name) if kind == "masked" else _infos.in_subject(case.info)


def _tried(fn: Any, args: Any, kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            return error


def _gradients(library: Any, found: Any, args: Any) -> Any:
    """Gradients of a result by the arguments that want one; None where there is nothing to ask."""
    leaves = [t for t in args if isinstance(t, library.Tensor) and t.requires_grad]
    if not isinstance(found, library.Tensor) or not found.requires_grad or not leaves:
        return None
    dense = found if found.layout is library.strided else found.to_dense()
    got = _tried(library.autograd.grad, (dense.abs().sum(), leaves), {"allow_unused": True})
    return got if isinstance(got, Exception) else list(got)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
@pytest.mark.parametrize("dtype", DTYPES)
def test_results(case: _compare.Case, dtype: str) -> None:
    for number, sample in zip(range(COUNT), _compare.samples(case, dtype)):
        args, kwargs = [sample.input, *sample.args], dict(sample.kwargs)
        mine = _tried(_function(case), _compare.converted(args), _compare.converted(kwargs))
        expected = _tried(case.info.op, args, kwargs)
        where = f"{case.label} {dtype} sample {number}"
        if not isinstance(expected, Exception):
            assert not isinstance(mine, Exception), f"{where}: {mine!r}"
            _compare.assert_same(mine, expected, where, dtype)
        elif (case.info.name, dtype) not in MORE:
            assert type(mine) is type(expected), f"{where}: {mine!r}, expected {expected!r}"


# PyTorch's gradients of some sums of COO tensors are dense; ours have the layout of the tensor.
DENSE = {"sum-sparse_coo"}
GRADIENTS = [case for case in CASES if case.info.supports_autograd and case.label not in DENSE]


@pytest.mark.parametrize("case", GRADIENTS, ids=lambda case: case.label)
def test_gradients(case: _compare.Case) -> None:
    oracle = _oracle.load()
    for number, sample in zip(range(COUNT), _compare.samples(case, "float64", requires_grad=True)):
        args, kwargs = [sample.input, *sample.args], dict(sample.kwargs)
        given = _compare.converted(args)
        expected = _gradients(oracle, _tried(case.info.op, args, kwargs), args)
        if expected is None or isinstance(expected, Exception):
            continue
        where = f"{case.label} sample {number}"
        actual = _gradients(torch, _tried(_function(case), given, _compare.converted(kwargs)), given)
        assert isinstance(actual, list), f"{where}: {actual!r}"
        for a, e in zip(actual, expected):
            assert (a is None) == (e is None), where
            if e is not None:
                _compare.assert_same(a, e, where, "float64")
