"""Recurrent layers, attention and transformers against PyTorch's own, over PyTorch's table of modules.

Invariant: weights from the same seed are equal bit by bit; results and gradients within the tolerance of their dtype,
relative to the largest of them.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import pickle
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from ..bad_calls import normalise
from . import _sequence_modules as table
from ._module_db import tensors

pytestmark = pytest.mark.oracle
FEW = 4


def close(actual: Any, expected: Any, where: str, factor: float = 1.0, stride: bool = False) -> None:
    size = max(1.0, float(expected.detach().abs().nan_to_num().max())) if expected.numel() else 1.0
    rtol, atol = (factor * size * t for t in _oracle.TOLERANCES[_oracle.dtype_name(expected.dtype)])
    _oracle.assert_same(actual.detach(), expected.detach(), rtol, atol, where, stride)


def close_all(actual: list[Any], expected: list[Any], where: str, factor: float = 1.0) -> None:
    """None stands for zeros."""
    assert len(actual) == len(expected), where
    for number, (mine, other) in enumerate(zip(actual, expected)):
        if mine is None or other is None:
            rest = mine if other is None else other
            assert rest is None or not bool(rest.any()), f"{where} {number}"
            continue
        close(mine, other, f"{where} {number}", factor)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("name", table.NAMES)
def test_module(name: str, dtype: str) -> None:
    twice = dtype == "float64"
    for sample in table.samples(name, dtype, FEW if twice else 2):
        ours, theirs = table.pair(sample)
        where = str(sample)
        assert repr(ours) == repr(theirs), where
        mine, other = ours.state_dict(), theirs.state_dict()
        assert list(mine) == list(other), where
        for key, value in other.items():
            assert _oracle.load().equal(_oracle.to_oracle(mine[key]), value), f"{where}: {key} starts otherwise"
        given = sample.made.forward_input
        args, kwargs = table.argument(given.args), table.argument(given.kwargs)
        # PyTorch's fused attention cannot be differentiated twice.
        fused = importlib.import_module("torch.nn.attention")
        with fused.sdpa_kernel(fused.SDPBackend.MATH) if twice else contextlib.nullcontext():
            expected = table.run(_oracle.load(), theirs, given.args, given.kwargs, twice)
        actual = table.run(torch, ours, args, kwargs, twice)
        assert actual.warned == expected.warned, where
        # Half precision is kept between steps where PyTorch's kernel keeps more.
        factor = 4.0 if dtype == "bfloat16" else 1.0
        for result, wanted in zip(actual.outputs, expected.outputs, strict=True):
            close(result, wanted, where, factor, stride=True)
        close_all(actual.gradients, expected.gradients, f"{where} gradient", factor)
        close_all(actual.second, expected.second, f"{where} second gradient", 10.0)
        for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
            assert repr(again) == repr(ours) and again.training is ours.training
            found = table.run(torch, again, args, kwargs)
            assert all(torch.equal(a, b) for a, b in zip(found.outputs, actual.outputs, strict=True)), where


def on_meta(module: Any, args: Any, kwargs: Any) -> Any:
    """Results without data, of a module of either library; None where values are asked for."""
    library = _oracle.load() if isinstance(module, _oracle.load().nn.Module) else torch
    moved = _oracle.tree_map(lambda t: t.to("meta"), (args, kwargs), lambda v: isinstance(v, library.Tensor))
    try:
        with library.no_grad():
            return tensors(module.to("meta")(*moved[0], **moved[1]), library.Tensor)
    except RuntimeError as error:
        assert "meta" in str(error).lower(), error
        return None


@pytest.mark.parametrize("name", table.NAMES)
def test_under_no_grad_and_without_data(name: str) -> None:
    """Where nothing is recorded PyTorch takes faster ways; on the meta device shapes alone are computed."""
    oracle = _oracle.load()
    for sample in table.samples(name, "float32", FEW):
        ours, theirs = table.pair(sample)
        given = sample.made.forward_input
        args, kwargs = table.argument(given.args), table.argument(given.kwargs)
        with torch.no_grad(), oracle.no_grad():
            expected = table.run(oracle, theirs, given.args, given.kwargs)
            actual = table.run(torch, ours, args, kwargs)
        assert actual.warned == expected.warned, sample
        for result, wanted in zip(actual.outputs, expected.outputs, strict=True):
            close(result, wanted, str(sample), stride=True)
        wanted = on_meta(theirs, given.args, given.kwargs)
        if wanted is not None:
            found = on_meta(ours, args, kwargs)
            assert found is not None and list(map(_oracle.layout, found)) == list(map(_oracle.layout, wanted)), sample


@pytest.mark.parametrize("name", [n for n in table.NAMES if n in "RNN LSTM GRU RNNCell LSTMCell GRUCell".split()])
def test_wrong_inputs_of_the_table(name: str) -> None:
    oracle, info = _oracle.load(), table.entries()[name]
    for wrong in info.module_error_inputs_func(info, "cpu", oracle.float32, False, True):
        found = []
        for library, convert in ((oracle, lambda v: v), (torch, table.argument)):
            made, given = wrong.module_error_input.constructor_input, wrong.module_error_input.forward_input
            try:
                module = getattr(library.nn, name)(*convert(made.args), **convert(made.kwargs))
                module(*convert(given.args), **convert(given.kwargs))
            except Exception as error:
                found.append((type(error).__name__, normalise(str(error))))
        assert len(found) == 2 and found[0] == found[1], found
