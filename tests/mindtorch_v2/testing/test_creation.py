"""`make_tensor`: the oracle's numbers for the same seed, of every dtype and with every option."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import pytest

from .._oracle import assert_same, to_oracle
from .._outcome import outcome
from .._subject import subject as torch
from .._subject import submodule

testing = submodule("testing")
nan, inf = float("nan"), float("inf")
pytestmark = pytest.mark.filterwarnings("ignore:Passing `low==high`")

INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "bool"]
FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
SMALL_FLOATS = ["float8_e4m3fn", "float8_e5m2"]

OPTIONS: list[dict[str, Any]] = [
    {},
    {"low": 0},
    {"high": 1},
    {"low": 1, "high": 5},
    {"low": 0.25, "high": 1.75},
    {"low": -1e10, "high": 1e10},
    {"low": -inf, "high": inf},
    {"exclude_zero": True, "low": 0, "high": 2},
    {"noncontiguous": True},
    {"noncontiguous": True, "exclude_zero": True, "low": 0, "high": 2},
    {"requires_grad": True},
    {"memory_format": "channels_last"},
    {"memory_format": "contiguous_format", "exclude_zero": True},
    {"low": 3, "high": 3},
    {"low": 4, "high": 3},
    {"low": nan},
    {"low": 1e39, "high": 1e40},
    {"low": 300, "high": 400},
    {"noncontiguous": True, "memory_format": "contiguous_format"},
]
SHAPES: list[tuple[Any, ...]] = [(2, 3, 4, 5), (0, 3), (), (7,), ((3, 4),), ([2, 1],), (1, 1)]


def make(library: Any, shape: tuple[Any, ...], dtype: str, options: dict[str, Any]) -> Any:
    library.manual_seed(17)
    given = dict(options)
    if "memory_format" in given:
        given["memory_format"] = getattr(library, given["memory_format"])
    return library.testing.make_tensor(*shape, dtype=getattr(library, dtype), device="cpu", **given)


def compare(oracle: Any, shape: tuple[Any, ...], dtype: str, options: dict[str, Any]) -> None:
    where = f"{shape} {dtype} {options}"
    failed, warned = outcome(lambda: make(oracle, shape, dtype, options).shape)
    if isinstance(failed, str):
        assert outcome(lambda: make(torch, shape, dtype, options)) == (failed, warned), where
        return
    assert outcome(lambda: make(torch, shape, dtype, options).shape) == (failed, warned), where
    mine, theirs = make(torch, shape, dtype, options), make(oracle, shape, dtype, options)
    assert_same(mine, theirs, rtol=0, atol=0, where=where)
    assert mine.requires_grad == theirs.requires_grad and mine.is_contiguous() == theirs.is_contiguous(), where
    # The state of the generator afterwards: as much was drawn.
    assert oracle.equal(to_oracle(torch.get_rng_state()), oracle.get_rng_state()), where


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS + SMALL_FLOATS)
def test_numbers_are_the_oracles(oracle: ModuleType, dtype: str) -> None:
    for options in OPTIONS:
        compare(oracle, (2, 3, 4, 5), dtype, options)
    for shape in SHAPES:
        for options in ({}, {"noncontiguous": True}):
            compare(oracle, shape, dtype, options)


# Zeros of these cannot be replaced: no masked_fill, as in PyTorch.
UNMASKED = ["uint16", "uint32", "uint64", *SMALL_FLOATS]


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS + SMALL_FLOATS)
def test_numbers_lie_in_the_interval(dtype: str) -> None:
    kind = getattr(torch, dtype)
    made = testing.make_tensor(50, dtype=kind, device="cpu", low=0, high=2, exclude_zero=dtype not in UNMASKED)
    assert made.shape == (50,) and made.dtype is kind
    values = (torch.view_as_real(made) if kind.is_complex else made).to(torch.float32)
    assert 0 <= values.min().item() and values.max().item() <= 2
    assert dtype in UNMASKED or kind.is_complex or made.min().item() > 0


def test_seeds() -> None:
    """`wrapper_set_seed` draws the same numbers every time and leaves the generator as it was."""
    state = torch.get_rng_state()
    first, second = (testing._utils.wrapper_set_seed(torch.rand, 3) for _ in range(2))
    assert torch.equal(first, second) and torch.equal(state, torch.get_rng_state())
    assert not math.isnan(first.sum().item())


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize("options", OPTIONS[:6] + OPTIONS[7:11], ids=str)
def test_halves_of_complex_numbers(options: dict[str, Any], oracle: Any) -> None:
    ours, theirs = (lib.view_as_real(make(lib, (3, 4), "complex32", options)) for lib in (torch, oracle))
    assert ours.tolist() == theirs.tolist()
    assert ours.stride() == theirs.stride() and ours.requires_grad == theirs.requires_grad
