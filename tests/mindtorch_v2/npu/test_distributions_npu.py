"""Distributions on NPUs: densities as on the CPU, samples drawn on the device, with gradients."""

from __future__ import annotations

import warnings

import pytest

import mindtorch_v2 as torch

from ..distributions._table import ROWS, Numbers, Row


def make(row: Row, device: str) -> tuple[torch.distributions.Distribution, list[torch.Tensor]]:
    numbers = Numbers(torch, "float32", grad=True, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return row.make(torch.distributions, numbers), numbers.leaves


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_as_on_the_cpu(row: Row) -> None:
    (host, on_host), (device, on_device) = make(row, "cpu"), make(row, "npu")
    torch.manual_seed(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = host.sample((3,))
    expected, found = host.log_prob(value), device.log_prob(value.to("npu"))
    assert found.device.type == "npu"
    assert torch.allclose(found.cpu(), expected, rtol=1e-3, atol=1e-4)
    wanted = torch.autograd.grad(expected.sum(), on_host, allow_unused=True)
    for mine, theirs in zip(torch.autograd.grad(found.sum(), on_device, retain_graph=True, allow_unused=True), wanted):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            assert torch.allclose(mine.cpu(), theirs, rtol=1e-2, atol=1e-3)
    sample = device.sample((2,))
    assert sample.device.type == "npu" and sample.shape == (2, *host.batch_shape, *host.event_shape)
    assert not sample.requires_grad
    if device.has_rsample:
        # Wishart, as PyTorch's, writes the mask by which it draws again: several have no gradients there either.
        moved = device.rsample(() if row.name.startswith("Wishart") else (2,))
        assert moved.device.type == "npu" and moved.requires_grad
        grads = torch.autograd.grad(moved.sum(), on_device, allow_unused=True)
        assert any(g is not None and bool(g.isfinite().all()) for g in grads)


def test_divergences() -> None:
    D = torch.distributions

    def ask(device: str) -> list[torch.Tensor]:
        loc, scale = torch.tensor([0.0, 1.0], device=device), torch.tensor([1.0, 0.5], device=device)
        normal, laplace = D.Normal(loc, scale), D.Laplace(loc + 0.5, scale * 2)
        pairs = [(normal, laplace), (laplace, normal), (normal, D.Normal(loc - 1, scale))]
        return [D.kl_divergence(p, q) for p, q in pairs]

    for host, device in zip(ask("cpu"), ask("npu")):
        assert device.device.type == "npu" and torch.allclose(device.cpu(), host, atol=1e-5)
