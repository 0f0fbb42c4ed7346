"""Initialisers: limits, moments, and that nothing is recorded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

nn = submodule("nn")
init = submodule("nn.init")

SHAPE = (200, 100)
XAVIER = math.sqrt(2 / 300)
KAIMING = math.sqrt(2 / 100)

DISTRIBUTIONS: list[tuple[str, Callable[[Any], Any], float, float, float]] = [
    # name, call, expected mean, expected standard deviation, largest distance from the mean
    ("uniform", lambda t: init.uniform_(t, 1, 3), 2.0, 2 / math.sqrt(12), 1.0),
    ("normal", lambda t: init.normal_(t, 1, 0.5), 1.0, 0.5, math.inf),
    ("trunc normal", lambda t: init.trunc_normal_(t), 0.0, 0.8796, 2.0),
    ("trunc normal tail", lambda t: init.trunc_normal_(t, a=1.0, b=2.0), 1.383, 0.2697, 0.62),
    ("xavier uniform", lambda t: init.xavier_uniform_(t), 0.0, XAVIER, XAVIER * math.sqrt(3)),
    ("xavier normal", lambda t: init.xavier_normal_(t, gain=2.0), 0.0, 2 * XAVIER, math.inf),
    ("kaiming uniform", lambda t: init.kaiming_uniform_(t), 0.0, KAIMING, KAIMING * math.sqrt(3)),
    ("kaiming normal", lambda t: init.kaiming_normal_(t, mode="fan_out"), 0.0, math.sqrt(2 / 200), math.inf),
]


@pytest.mark.parametrize("case", DISTRIBUTIONS, ids=[case[0] for case in DISTRIBUTIONS])
def test_distribution(case: tuple[str, Callable[[Any], Any], float, float, float]) -> None:
    _, call, mean, deviation, reach = case
    torch.manual_seed(0)
    p = nn.Parameter(torch.zeros(SHAPE))
    assert call(p) is p
    assert p.is_leaf and p.requires_grad
    values = p.detach()
    assert values.mean().item() == pytest.approx(mean, abs=0.03 * max(deviation, abs(mean)))
    assert values.std().item() == pytest.approx(deviation, rel=0.03)
    assert (values - mean).abs().max().item() <= reach * 1.0001


def test_constants() -> None:
    p = nn.Parameter(torch.zeros(3, 3))
    assert init.constant_(p, 2.5).sum().item() == 22.5
    assert init.ones_(p).sum().item() == 9.0
    assert init.zeros_(p).sum().item() == 0.0
    assert init.eye_(p).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    kernel = init.dirac_(torch.ones(2, 3, 3))
    assert kernel.sum().item() == 2.0 and kernel[1, 1, 1].item() == 1.0


def test_gain() -> None:
    assert init.calculate_gain("relu") == pytest.approx(math.sqrt(2))
    assert init.calculate_gain("leaky_relu", 0.2) == pytest.approx(math.sqrt(2 / 1.04))
    assert init.calculate_gain("tanh") == pytest.approx(5 / 3)
    assert init.calculate_gain("conv2d") == 1


def test_linear_starts_within_its_bound() -> None:
    layer = nn.Linear(16, 64)
    assert layer.weight.abs().max().item() <= 0.25 and layer.bias.abs().max().item() <= 0.25
    assert layer.weight.std().item() == pytest.approx(0.25 / math.sqrt(3), rel=0.1)


def test_empty_tensors_warn() -> None:
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        init.kaiming_uniform_(torch.empty(0, 3))


def test_meta() -> None:
    p = torch.empty(3, 3, device="meta")
    for call in (init.kaiming_uniform_, init.normal_, init.trunc_normal_, init.ones_):
        assert call(p).is_meta
