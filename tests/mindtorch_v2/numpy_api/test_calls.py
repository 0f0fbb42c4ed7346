"""The NumPy API over tensors: each call answers as PyTorch's copy of the API does."""

from __future__ import annotations

import importlib
import re
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest

from .._subject import subject, submodule

FAMILIES: dict[str, list[str]] = {}
for _line in (Path(__file__).parent / "calls.txt").read_text().splitlines():
    if _line.startswith("["):
        FAMILIES[_line.strip("[]")] = _calls = []
    elif _line and not _line.startswith("#"):
        _calls.append(_line)


def _said(library: Any, call: str) -> str:
    space = {
        "torch": library,
        "tnp": importlib.import_module(f"{library.__name__}._numpy"),
        "_util": importlib.import_module(f"{library.__name__}._numpy._util"),
        "np": numpy,
    }
    try:
        result = eval(call, space)
        said = f"{result!r} {getattr(getattr(result, 'dtype', None), 'name', '')}"
    except Exception as error:
        said = f"{type(error).__name__}: {str(error)[:120]}"
    return re.sub(r"-(0\.0*j?\b)(?!\d)", r"\1", said.replace(library.__name__, "torch"))


@pytest.mark.oracle
@pytest.mark.parametrize("family", FAMILIES)
def test_calls_answer_as_pytorchs(family: str, oracle: Any) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in FAMILIES[family]:
            ours, theirs = _said(subject, call), _said(oracle, call)
            if ours != theirs:
                wrong.append((call, ours, theirs))
    assert wrong == []


@pytest.mark.oracle
def test_the_names_are_pytorchs(oracle: Any) -> None:
    def names(library: Any, module: str) -> set[str]:
        return {name for name in dir(importlib.import_module(f"{library.__name__}.{module}")) if name[0] != "_"}

    for module in ("_numpy", "_numpy.linalg", "_numpy.fft", "_numpy.random", "_numpy.testing"):
        missing = names(oracle, module) - names(subject, module)
        tools = {"functools", "math", "annotations", "torch", "normalizer", "ArrayLike", "KeepDims", "TYPE_CHECKING"}
        assert missing - tools - {"array_or_scalar", "deco_stream", "sqrt", "upcast"} == set(), module


def test_an_array_shares_the_memory_of_its_tensor() -> None:
    tnp: Any = submodule("_numpy")
    tensor = subject.arange(6)
    array = tnp.asarray(tensor)
    array[1:3] = 7
    array.reshape(2, 3)[1, 0] = 9
    assert tensor.tolist() == [0, 7, 7, 9, 4, 5]
    assert tnp.array(array).tensor.data_ptr() != tensor.data_ptr()


def test_gradients_go_through() -> None:
    tnp: Any = submodule("_numpy")
    x = subject.ones(3, requires_grad=True)
    (tnp.asarray(x) * tnp.arange(3, dtype="f4")).sum().tensor.backward()
    assert x.grad.tolist() == [0.0, 1.0, 2.0]


def test_what_is_written_goes_where_it_should() -> None:
    tnp: Any = submodule("_numpy")
    a = tnp.zeros((2, 3, 2))
    a[0, :, [1]] = 5
    a[[0, 1], ..., [0, 1]] += 1
    assert a.tolist() == [[[1, 5], [1, 5], [1, 5]], [[0, 1], [0, 1], [0, 1]]]
    tnp.put(a, [-1], 9)
    tnp.copyto(a[1], tnp.ones((3, 2)))
    tnp.put_along_axis(a, tnp.zeros((2, 1, 2), dtype=int), 3, 1)
    assert a.tolist() == [[[3, 3], [1, 5], [1, 5]], [[3, 3], [1, 1], [1, 1]]]
    a.sort(axis=1)
    a.resize(2)
    assert a.tolist() == [1, 3]


def test_defaults_can_be_chosen() -> None:
    tnp: Any = submodule("_numpy")
    try:
        tnp.set_default_dtype("pytorch")
        assert tnp.array([1.5]).dtype == tnp.float32
        assert tnp.array([1j]).dtype == tnp.complex64
    finally:
        tnp.set_default_dtype()
    assert tnp.array([1.5]).dtype == tnp.float64


def test_random_numbers_repeat_after_a_seed() -> None:
    random: Any = submodule("_numpy.random")

    def drawn() -> list[Any]:
        random.seed(3)
        return [
            *(random.rand(2).tolist(), random.randn(2).tolist(), random.randint(1, 9, 3).tolist(), random.uniform()),
            *(random.choice(5, 2).tolist(), random.normal(size=(1,)).tolist()),
        ]

    assert drawn() == drawn()
    tnp: Any = submodule("_numpy")
    line = tnp.arange(9)
    random.shuffle(line)
    assert sorted(line.tolist()) == list(range(9))


def test_comparisons_of_tests() -> None:
    tnp: Any = submodule("_numpy")
    testing: Any = submodule("_numpy.testing")
    testing.assert_equal([tnp.arange(2), 3], [numpy.arange(2), 3])
    testing.assert_allclose(tnp.ones(2), [1.0, 1.0 + 1e-9])
    for wrong in (
        lambda: testing.assert_equal(tnp.arange(2), [0, 2]),
        lambda: testing.assert_array_less(tnp.ones(1), 1),
        lambda: testing.assert_almost_equal(tnp.float64(1), 1.1),
        lambda: testing.assert_array_equal(tnp.ones(2), [1, 2]),
        lambda: testing.assert_allclose(tnp.ones(2), tnp.ones(2, dtype="f4"), check_dtype=True),
        lambda: testing.assert_(False),
    ):
        with pytest.raises(AssertionError):
            wrong()
    with testing.suppress_warnings() as sup:
        sup.filter(UserWarning)
        warnings.warn("x", UserWarning, stacklevel=1)
    testing.assert_warns(UserWarning, warnings.warn, "x", UserWarning)
