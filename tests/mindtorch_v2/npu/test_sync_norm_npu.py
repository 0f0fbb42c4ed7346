"""The parts of synchronised batch normalization on NPUs: halves of a batch make the whole.

Invariant: statistics and gradients put together from two halves are those of batch normalization over all of it.
"""

from __future__ import annotations

from typing import Any

import pytest

import mindtorch_v2 as torch


def batch(dtype: Any) -> tuple[Any, Any, Any, Any]:
    torch.manual_seed(0)
    x, g = torch.randn(6, 3, 4, dtype=dtype), torch.randn(6, 3, 4, dtype=dtype)
    return x, g, torch.randn(3), torch.randn(3)


@pytest.mark.parametrize("cut", [3, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_halves_make_the_whole(dtype: Any, cut: int) -> None:
    x, g, weight, bias = batch(dtype)
    running = torch.zeros(3), torch.ones(3)
    reference = x.float().requires_grad_()
    expected = torch.nn.functional.batch_norm(reference, *running, weight, bias, True, 0.3, 1e-5)
    expected.backward(g.float())

    device = "npu"
    w, b = weight.to(device), bias.to(device)
    halves = [(x[:cut].to(device), g[:cut].to(device)), (x[cut:].to(device), g[cut:].to(device))]
    stats = [torch.batch_norm_stats(part, 1e-5) for part, _ in halves]
    means, inverse = (torch.stack([s[i] for s in stats]) for i in (0, 1))
    counts = torch.tensor([4.0 * cut, 4.0 * (6 - cut)], device=device)
    moved = torch.zeros(3, device=device), torch.ones(3, device=device)
    mean, invstd = torch.batch_norm_gather_stats_with_counts(halves[0][0], means, inverse, *moved, 0.3, 1e-5, counts)
    tolerance = {"rtol": 2e-3, "atol": 2e-3} if dtype == torch.float16 else {"rtol": 1e-4, "atol": 1e-4}
    for mine, other in zip(moved, running):
        assert torch.allclose(mine.cpu(), other, **tolerance)
    outputs = [torch.batch_norm_elemt(part, w, b, mean, invstd, 1e-5) for part, _ in halves]
    assert outputs[0].dtype == dtype
    assert torch.allclose(torch.cat(outputs).cpu().float(), expected.detach(), rtol=1e-2, atol=tolerance["atol"] * 3)
    sums = [torch.batch_norm_backward_reduce(grad, part, mean, invstd, w, True, True, True) for part, grad in halves]
    dy, dy_xmu = sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]
    grads = [torch.batch_norm_backward_elemt(grad, part, mean, invstd, w, dy, dy_xmu, counts) for part, grad in halves]
    assert torch.allclose(torch.cat(grads).cpu().float(), reference.grad, rtol=1e-2, atol=tolerance["atol"] * 3)
    if cut == 3:
        same = torch.batch_norm_gather_stats(halves[0][0], means, inverse, None, None, 0.3, 1e-5, 12)
        assert torch.allclose(same[0], mean) and torch.allclose(same[1], invstd)


def test_gradients_that_nobody_wants() -> None:
    x, g, _, _ = (t.to("npu") for t in batch(torch.float32))
    mean, invstd = torch.batch_norm_stats(x, 1e-5)
    first, _, weight, bias = torch.batch_norm_backward_reduce(g, x, mean, invstd, None, True, False, False)
    assert first is not None and weight is None and bias is None


def test_the_cpu_refuses() -> None:
    with pytest.raises(
        NotImplementedError, match="Could not run 'aten::batch_norm_stats' with arguments from the 'CPU'"
    ):
        torch.batch_norm_stats(torch.ones(2, 2), 1e-5)
