"""Hooks, checkpoints and anomaly detection with tensors on the NPU: the CPU's gradients, and memory where it was asked
to be.

Invariant: what runs here twice, on the CPU and on the NPU, is the same function.
"""

from __future__ import annotations

import gc
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.checkpoint import checkpoint

graph: Any = torch.autograd.graph


def made(device: str, *shape: int) -> Any:
    values: Any = torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 10
    return values.to(device).requires_grad_()


def on_both(fn: Any) -> None:
    want, got = fn("cpu"), fn("npu")
    assert got == pytest.approx(want, rel=1e-4, abs=1e-5)


def test_values_saved_on_the_cpu_leave_the_device() -> None:
    def run(device: str) -> list[float]:
        x = made(device, 4)
        with graph.save_on_cpu():
            y = (x * x).exp()
        kept = y.grad_fn._raw_saved_result.data
        assert kept[0].type == device and kept[1].device.type == "cpu"
        y.sum().backward()
        assert x.grad.device.type == device
        return list(x.grad.tolist())

    on_both(run)


def test_values_saved_in_pinned_memory() -> None:
    def run(device: str) -> list[float]:
        x = made(device, 4)
        with graph.save_on_cpu(pin_memory=True):
            y = (x * x).exp()
        assert y.grad_fn._raw_saved_result.data[1].is_pinned()
        y.sum().backward()
        return list(x.grad.tolist())

    on_both(run)


def test_memory_of_saved_values_is_given_back() -> None:
    def held(saving_on_cpu: bool) -> int:
        x = made("npu", 1 << 16)
        gc.collect()
        before = torch.npu.memory_allocated()
        if saving_on_cpu:
            with graph.save_on_cpu():
                y = x.exp().sin().sum()
        else:
            y = x.exp().sin().sum()
        after = torch.npu.memory_allocated()
        y.backward()
        return int(after - before)

    assert held(True) < held(False) / 4


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_draw_the_same_random_numbers(reentrant: bool) -> None:
    masks: list[list[float]] = []

    def fn(x: Any) -> Any:
        mask = torch.rand(8, device="npu")
        masks.append(mask.tolist())
        return (x * mask).exp()

    x = made("npu", 8)
    torch.npu.manual_seed(3)
    out = checkpoint(fn, x, use_reentrant=reentrant)
    torch.npu.manual_seed(9)
    out.sum().backward()
    after = torch.rand(2, device="npu").tolist()
    torch.npu.manual_seed(9)
    assert len(masks) == 2 and masks[0] == masks[1]
    assert torch.rand(2, device="npu").tolist() == after


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradients_through_checkpoints(reentrant: bool) -> None:
    def run(device: str) -> list[float]:
        x, w = made(device, 3, 4), made(device, 4, 2)
        out = checkpoint(lambda x: (x @ w).tanh().exp(), x, use_reentrant=reentrant)
        out.sum().backward()
        return list(x.grad.flatten().tolist()) + list(w.grad.flatten().tolist())

    on_both(run)


def test_nan_is_found_on_the_device() -> None:
    with torch.autograd.set_detect_anomaly(True):
        x: Any = torch.zeros(2, device="npu", requires_grad=True)
        y = (x * 0) / x
        with pytest.warns(UserWarning, match="Error detected in DivBackward0"):
            with pytest.raises(RuntimeError, match="'DivBackward0' returned nan values in its 1th output"):
                y.sum().backward()


def test_writes_to_saved_values() -> None:
    def run(device: str) -> list[float]:
        with graph.allow_mutation_on_saved_tensors():
            x = made(device, 4)
            y = x * 1
            z = (y * y).sum()
            y.view(2, 2)[0].zero_()
            z.backward()
        return list(x.grad.tolist())

    on_both(run)


def test_hooks_see_tensors_of_the_device() -> None:
    def run(device: str) -> list[float]:
        x = made(device, 4)
        y = x * 2
        seen: list[str] = []
        y.grad_fn.register_hook(lambda ins, outs: seen.append(ins[0].device.type))
        y.register_hook(lambda g: g * 3)
        graph.register_multi_grad_hook((x, y), lambda grads: seen.extend(g.device.type for g in grads))
        y.sum().backward()
        assert seen == [device, device, device]
        return list(x.grad.tolist())

    on_both(run)
