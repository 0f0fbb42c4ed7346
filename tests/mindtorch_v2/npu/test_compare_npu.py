"""`torch.npu.compare_with_cpu`: a program's operators on both devices, and the first that differs."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.npu import DifferenceError, compare_with_cpu


def test_a_training_step_has_no_difference() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).to("npu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, target = torch.randn(5, 6).to("npu"), torch.tensor([0, 2, 1, 1, 0]).to("npu")
    with compare_with_cpu(rtol=1e-4, atol=1e-5) as mode:
        for _ in range(2):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
    assert mode.compared > 20
    assert loss.device.type == "npu"


def test_the_first_difference_is_named() -> None:
    torch.manual_seed(1)
    x = torch.rand(8, 2000).to("npu")
    with pytest.raises(DifferenceError) as caught, compare_with_cpu(rtol=0.0, atol=0.0):
        y = x + 1  # one rounding on both sides
        y @ y.t()  # sums of many, which the CPU rounds on the way
    text = str(caught.value)
    assert "aten.mm.default(npu float32 (8, 2000), npu float32 (2000, 8))" in text
    assert "test_compare_npu.py:" in text
    assert "instead of" in text


def test_in_place_and_shared_arguments() -> None:
    x = torch.arange(6.0).to("npu")
    with compare_with_cpu() as mode:
        x.add_(x)
        x[1:3].mul_(3)
    assert mode.compared >= 2
    assert x.tolist() == [0.0, 6.0, 12.0, 6.0, 8.0, 10.0]


def test_random_numbers_are_not_compared() -> None:
    x = torch.zeros(100).to("npu")
    with compare_with_cpu() as mode:
        torch.bernoulli(x + 0.5)
        x.normal_()
        torch.empty(3, device="npu")
    assert any("random" in why for why in mode.skipped.values())


def test_the_cpu_is_left_alone_and_the_mode_ends() -> None:
    with compare_with_cpu() as mode:
        torch.ones(3) + 1
    assert mode.compared == 0
    y = torch.ones(3).to("npu") + 1
    assert y.tolist() == [2.0, 2.0, 2.0] and mode.compared == 0


def test_one_tolerance_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="go together"):
        compare_with_cpu(rtol=0.1)
