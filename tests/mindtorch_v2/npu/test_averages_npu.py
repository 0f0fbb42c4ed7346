"""Averaged models on an NPU: lists of parameters are averaged there, and equal what the CPU computes."""

from __future__ import annotations

from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

swa = submodule("optim.swa_utils")


@pytest.mark.parametrize("options", ["mean", "moving", "function"])
def test_averages(options: str) -> None:
    given: dict[str, Any] = {
        "mean": {},
        "moving": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.75), "use_buffers": True},
        "function": {"avg_fn": swa.get_swa_avg_fn()},
    }[options]
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    here, there = swa.AveragedModel(model, **given), swa.AveragedModel(model, device="npu", **given)
    for _ in range(4):
        with torch.no_grad():
            for param in model.parameters():
                param.normal_()
        model(torch.randn(5, 3))
        here.update_parameters(model)
        there.update_parameters(model)
    x = torch.randn(6, 3)
    swa.update_bn([x[:3], x[3:]], here)
    swa.update_bn([x[:3], x[3:]], there, device="npu")
    for (name, expected), actual in zip(here.state_dict().items(), there.state_dict().values()):
        assert actual.device.type == "npu"
        assert torch.allclose(actual.cpu(), expected, atol=1e-6), name
