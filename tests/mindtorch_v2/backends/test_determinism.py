"""Deterministic mode: its switches, filled memory, and operators that refuse, as PyTorch's on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from .._subject import subject as torch
from ._answers import answer

DTYPES = "float32 float64 float16 bfloat16 complex64 int8 int16 int32 int64 uint8 uint16 uint32 bool".split()


@pytest.fixture(autouse=True)
def off_again() -> Iterator[None]:
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


@pytest.mark.parametrize("mode", [0, 1, 2, "default", "warn", "error", True])
def test_modes(oracle: ModuleType, mode: Any) -> None:
    def call(library: Any) -> Any:
        library.set_deterministic_debug_mode(mode)
        seen = (
            library.get_deterministic_debug_mode(),
            library.are_deterministic_algorithms_enabled(),
            library.is_deterministic_algorithms_warn_only_enabled(),
        )
        library.use_deterministic_algorithms(False)
        return seen

    assert answer(call, torch) == answer(call, oracle)


MAKERS = {
    "empty": lambda t, dt: t.empty(3, dtype=dt),
    "empty shape": lambda t, dt: t.empty((2, 2), dtype=dt),
    "empty_like": lambda t, dt: t.empty_like(t.ones(3, dtype=dt)),
    "new_empty": lambda t, dt: t.ones(1, dtype=dt).new_empty(3),
    "empty_strided": lambda t, dt: t.empty_strided((3,), (2,), dtype=dt),
    "empty_permuted": lambda t, dt: t.empty_permuted((2, 3), (1, 0), dtype=dt),
    "nothing": lambda t, dt: t.empty(0, dtype=dt),
    "resize_": lambda t, dt: t.ones(2, dtype=dt).resize_(5),
    "resize_ back": lambda t, dt: t.ones(4, dtype=dt).resize_(2).resize_(4),
    "resize_as_": lambda t, dt: t.ones(2, dtype=dt).resize_as_(t.ones(2, 3)),
    "resize_ a view": lambda t, dt: t.ones(3, dtype=dt)[1:].resize_(4),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MAKERS)
def test_memory_is_filled(oracle: ModuleType, name: str, dtype: str) -> None:
    def call(library: Any) -> Any:
        library.use_deterministic_algorithms(True)
        try:
            return MAKERS[name](library, getattr(library, dtype)).tolist()
        finally:
            library.use_deterministic_algorithms(False)

    assert answer(call, torch) == answer(call, oracle)


def test_the_old_constructor_fills_too() -> None:
    torch.use_deterministic_algorithms(True)
    assert torch.Tensor(2).isnan().all() and torch.FloatTensor(2).isnan().all()
    assert torch.empty(2, device="meta").device.type == "meta"


def test_filling_can_be_switched_off() -> None:
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    kept = torch.full((64,), 7.0)
    del kept
    assert not torch.empty(64).isnan().all()
    assert torch.ones(2).resize_(2).tolist() == [1.0, 1.0]


def unordered(library: Any) -> list[Any]:
    x, i, one = library.zeros(3), library.zeros(1, dtype=library.int64), library.ones(1)
    image, places = library.ones(1, 1, 1, 1, 1), library.zeros(1, 1, 1, 1, 1, dtype=library.int64)
    f = library.nn.functional
    return [
        lambda: x.put_(i, one),
        lambda: x.put(i, one),
        lambda: x.put(i, one, accumulate=True),
        lambda: f.max_unpool1d(image[0, 0], places[0, 0], 2),
        lambda: f.max_unpool2d(image[0], places[0], 2),
        lambda: f.max_unpool3d(image, places, 2),
        lambda: x.index_put((i,), one, accumulate=True),
        lambda: x.index_add(0, i, one),
        lambda: x.scatter_add(0, i, one),
    ]


@pytest.mark.parametrize("warn_only", [False, True])
@pytest.mark.parametrize("number", range(9))
def test_operators_that_vary(oracle: ModuleType, number: int, warn_only: bool) -> None:
    def call(library: Any) -> Any:
        library.use_deterministic_algorithms(True, warn_only=warn_only)
        try:
            return unordered(library)[number]().tolist()
        finally:
            library.use_deterministic_algorithms(False)

    assert answer(call, torch) == answer(call, oracle)
    assert answer(lambda library: unordered(library)[number]().tolist(), torch)[1] == []


def test_off_means_as_before() -> None:
    """Kernels that were wrapped are themselves again."""
    torch.use_deterministic_algorithms(True)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.use_deterministic_algorithms(False)
    x = torch.zeros(3)
    assert x.put(torch.tensor([1]), torch.ones(1)).tolist() == [0.0, 1.0, 0.0]
    grown = torch.ones(2).requires_grad_()
    assert torch.empty_like(grown).shape == (2,)
