"""Training on the NPU: the CPU's losses, nothing computed on the host, nothing leaked, whatever the timing.

Invariant: between two looks at the loss no byte of a tensor leaves the device.
"""

from __future__ import annotations

import gc
from typing import Any

import pytest

import mindtorch_v2 as torch

from .. import _npu
from . import _control
from ._layouts import environment, python
from ._models import MODELS, Training

STEPS = 5
SEEDS = range(1, 21)
OPTIMIZERS = {
    "plain": lambda p: torch.optim.SGD(p, lr=0.1),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
}


def same(got: list[float], want: list[float]) -> None:
    # float32 on both; the order of sums differs and every step builds on the one before.
    assert got == pytest.approx(want, rel=2e-4, abs=1e-5)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_losses_are_the_cpus(name: str, optimizer: str) -> None:
    make = OPTIMIZERS[optimizer]
    want = Training(name, "cpu", make).losses(STEPS)
    assert want[-1] < want[0]
    same(Training(name, "npu", make).losses(STEPS), want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype: str) -> None:
    def run(device: str) -> list[float]:
        training = Training("mlp", device, lambda p: torch.optim.SGD(p, lr=0.05))
        training.model.to(getattr(torch, dtype))
        training.x = training.x.to(getattr(torch, dtype))
        return training.losses(STEPS)

    assert run("npu") == pytest.approx(run("cpu"), rel=0.02)


@_control.emulator_only
@pytest.mark.parametrize("name", MODELS)
def test_only_the_device_computes(name: str, emulator: _npu.Emulator) -> None:
    training = Training(name, "npu")
    training.step()
    torch.npu.synchronize()
    left, ran = emulator.bytes_to_host(), emulator.runs()
    for _ in range(3):
        loss = training.step()
    torch.npu.synchronize()
    assert emulator.bytes_to_host() == left
    assert emulator.runs() - ran > 60
    loss.item()
    assert emulator.bytes_to_host() == left + 4


@_control.emulator_only
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", MODELS)
def test_timing_changes_nothing(name: str, seed: int, emulator: _npu.Emulator) -> None:
    want = undisturbed(name)
    with _control.delays(seed):
        got = Training(name, "npu").losses(2)
    assert got == want


_LOSSES: dict[str, list[float]] = {}


def undisturbed(name: str) -> list[float]:
    if name not in _LOSSES:
        _LOSSES[name] = Training(name, "npu").losses(2)
    return _LOSSES[name]


@_control.emulator_only
@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_leaked(name: str, emulator: _npu.Emulator) -> None:
    def once() -> tuple[int, int]:
        training: Any = Training(name, "npu")
        training.losses(2)
        del training
        gc.collect()
        torch.npu.synchronize()
        torch.npu.empty_cache()
        return emulator.live_handles(), emulator.live_bytes(0)

    first = once()
    assert once() == first


@_control.emulator_only
def test_nothing_is_left_at_exit() -> None:
    program = """
import mindtorch_v2 as torch
torch.npu.use_emulator()
x = torch.randn(4, 3, device="npu", requires_grad=True)
stream, event = torch.npu.Stream(), torch.npu.Event()
with torch.npu.stream(stream):
    (x @ x.t()).relu().sum().backward()
    event.record()
event.synchronize()
print(x.grad.cpu().shape)
"""
    done = python(environment(None, ASCEND_EMULATOR_REPORT="1"), "-c", program)
    assert done.returncode == 0, done.stderr
    assert "torch.Size([4, 3])" in done.stdout
    assert done.stderr == "ascend emulator: 0 leaks at aclFinalize\n"


def test_a_module_that_moves_keeps_its_parameters() -> None:
    embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    head.weight = embed.weight
    model = torch.nn.Sequential(embed, head)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weight = embed.weight
    model.to("npu")
    assert head.weight is embed.weight is weight and weight.device.type == "npu" and len(list(model.parameters())) == 1
    model(torch.tensor([1, 2], device="npu")).sum().backward()
    before = weight.detach().clone()
    optimizer.step()
    assert not torch.equal(weight, before)
    assert model.cpu()[0].weight is weight and weight.device.type == weight.grad.device.type == "cpu"
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        weight.data = torch.empty(5, 3, device="meta")
