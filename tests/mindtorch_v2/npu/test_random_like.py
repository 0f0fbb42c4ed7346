"""`rand_like` and its like, of a tensor on one device for another."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = mindtorch_only
DEVICES = ("cpu", "meta", "npu")
MAKERS: dict[str, tuple[Any, ...]] = {"rand_like": (), "randn_like": (), "randint_like": (2, 100)}


@pytest.mark.parametrize("there", DEVICES)
@pytest.mark.parametrize("here", DEVICES)
@pytest.mark.parametrize("name", MAKERS)
def test_drawn_on_the_device_that_is_asked_for(name: str, here: str, there: str) -> None:
    base = torch.ones(3, 500, device=here).t()
    made = getattr(torch, name)(base, *MAKERS[name], device=there)
    assert made.device.type == there and made.stride() == base.stride() and made.shape == base.shape
    if there != "meta":
        values = made.cpu()
        assert len(values.unique()) > 50 and values.isfinite().all() and values.abs().max() <= 100


def test_copies_name_a_device_without_its_number() -> None:
    moved = torch.ops.aten._to_copy.default(torch.ones(2, 3), device="npu")
    assert moved.device == torch.device("npu", torch.npu.current_device()) and moved.tolist() == [[1.0] * 3] * 2
