"""Pooling over windows at random places: a seed gives PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

LAYERS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("FractionalMaxPool2d", (2, 3, 9, 8), {"output_size": (4, 3)}),
    ("FractionalMaxPool2d", (3, 9, 8), {"output_ratio": 0.5, "return_indices": True}),
    ("FractionalMaxPool3d", (2, 3, 6, 7, 8), {"output_ratio": (0.5, 0.4, 0.3), "return_indices": True}),
    ("FractionalMaxPool3d", (3, 6, 7, 8), {"output_size": 1}),
]


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "shape", "options"), LAYERS)
def test_layer(name: str, shape: tuple[int, ...], options: dict[str, Any]) -> None:
    oracle = _oracle.load()
    oracle.manual_seed(4)
    given = oracle.randn(shape)
    found = []
    for library, input in ((torch, _oracle.from_oracle(given)), (oracle, given)):
        library.manual_seed(5)
        result = getattr(library.nn, name)(2, **options)(input)
        found.append(list(result) if isinstance(result, tuple) else [result])
    _oracle.assert_same(*found)


@pytest.mark.parametrize("options", [{}, {"output_size": 2, "output_ratio": 0.5}, {"output_ratio": 1.5}])
def test_refusals(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="output"):
        torch.nn.FractionalMaxPool2d(2, **options)
