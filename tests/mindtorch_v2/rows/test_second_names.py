"""Operators of `torch.special` that PyTorch's samples know by the names of others."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_gamma_integrals(name: str) -> None:
    results: list[Any] = []
    for library in (torch, _oracle.load()):
        a, x = (library.linspace(low, 9, 40, dtype=library.float64) for low in (0.1, 0.0))
        out = library.empty(0, dtype=library.float64)
        made = getattr(library.special, name)(a, x, out=out)
        by_name = getattr(library.ops.aten, f"special_{name}").default(a, x)
        assert made is out and by_name.tolist() == made.tolist()
        assert getattr(library.special, name)(a, x).tolist() == made.tolist()
        results.append(made.tolist())
    torch.testing.assert_close(torch.tensor(results[0]), torch.tensor(results[1]))
