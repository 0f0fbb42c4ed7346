"""Training under autocast: 30 steps against PyTorch."""

from __future__ import annotations

from types import ModuleType

import pytest

from .._subject import subject as torch
from ._training import MODELS, losses, start

STEPS = 30


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", MODELS)
def test_losses_as_the_oracle(oracle: ModuleType, name: str, dtype: str, scaled: bool) -> None:
    state = start(oracle, name)
    want = losses(oracle, name, "cpu", dtype, STEPS, state, scaled)
    got = losses(torch, name, "cpu", dtype, STEPS, state, scaled)
    assert want[-1] < 0.75 * want[0]
    assert got[0] == pytest.approx(want[0], rel=1e-6)
    # The gradient of a convolution's weight is summed in another order, which rounds one way or the other: by a
    # hundredth (bfloat16) or a thousandth, and each step builds on those before.
    rel = {"mlp": {"bfloat16": 2e-3, "float16": 5e-4}, "cnn": {"bfloat16": 0.05, "float16": 0.006}}[name][dtype]
    assert got == pytest.approx(want, rel=rel)


def test_losses_are_near_those_of_full_precision() -> None:
    state = start(torch, "mlp")
    low = losses(torch, "mlp", "cpu", "bfloat16", STEPS, state)
    full = losses(torch, "mlp", "cpu", "bfloat16", STEPS, state, on=False)
    assert low != full and low == pytest.approx(full, rel=0.02)
