"""Gamma, Dirichlet, Poisson and binomial numbers on NPUs: their distributions, and that nothing waits for the device.

Invariant: seeds are fixed; a mean or variance may be off by five of its standard deviations.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import mindtorch_v2 as torch

N = 5000


def moments(t: Any) -> tuple[float, float]:
    x = t.cpu().double()
    assert bool(x.isfinite().all())
    return float(x.mean()), float(x.var())


def check(t: Any, mean: float, variance: float, fourth: float) -> None:
    """`fourth` is the excess kurtosis, which says how far a variance of samples may be off."""
    got = moments(t)
    n = t.numel()
    assert abs(got[0] - mean) <= 5 * math.sqrt(variance / n) + 1e-6, (got, mean)
    assert abs(got[1] - variance) <= 5 * variance * math.sqrt((2 + fourth) / n) + 1e-6, (got, variance)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 9.0, 1000.0])
def test_gamma(alpha: float) -> None:
    torch.npu.manual_seed(1)
    drawn = torch._standard_gamma(torch.full((N,), alpha, device="npu"))
    assert drawn.device.type == "npu" and float(drawn.min()) > 0
    check(drawn, alpha, alpha, 6 / alpha)


@pytest.mark.parametrize("rate", [0.0, 4.0, 10.0, 2000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_poisson(rate: float, dtype: Any) -> None:
    torch.npu.manual_seed(2)
    drawn = torch.poisson(torch.full((N,), rate, device="npu", dtype=dtype))
    assert drawn.dtype == dtype and bool((drawn == drawn.floor()).all()) and float(drawn.min()) >= 0
    check(drawn, rate, rate, 1 / rate if rate else 0)


@pytest.mark.parametrize("n, p", [(0, 0.5), (7, 0.0), (7, 1.0), (12, 0.5), (60, 0.5), (500, 0.93)])
def test_binomial(n: int, p: float) -> None:
    torch.npu.manual_seed(3)
    drawn = torch.binomial(torch.full((N,), float(n), device="npu"), torch.tensor(p, device="npu"))
    assert bool((drawn == drawn.floor()).all()) and 0 <= float(drawn.min()) <= float(drawn.max()) <= n
    variance = n * p * (1 - p)
    check(drawn, n * p, variance, (1 - 6 * p * (1 - p)) / variance if variance else 0)


def test_counts_have_their_chances() -> None:
    """The whole distribution, in both ways of drawing it."""
    torch.npu.manual_seed(4)
    for rate in (3.0, 15.0):
        drawn = torch.poisson(torch.full((N,), rate, device="npu")).cpu().long()
        seen = torch.bincount(drawn, minlength=60)[:60].double()
        k = torch.arange(60.0, dtype=torch.float64)
        expected = N * (k * math.log(rate) - rate - torch.lgamma(k + 1)).exp()
        often = expected > 5
        distance = float(((seen - expected) ** 2 / expected)[often].sum())
        freedom = int(often.sum())
        assert distance < freedom + 5 * math.sqrt(2 * freedom), (rate, distance, freedom)
    n, p = 40.0, 0.4
    drawn = torch.binomial(torch.full((N,), n, device="npu"), torch.full((N,), p, device="npu")).cpu().long()
    seen = torch.bincount(drawn, minlength=41).double()
    k = torch.arange(41.0, dtype=torch.float64)
    ways = torch.lgamma(torch.tensor(n + 1, dtype=torch.float64)) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    expected = N * (ways + k * math.log(p) + (n - k) * math.log1p(-p)).exp()
    often = expected > 5
    distance, freedom = float(((seen - expected) ** 2 / expected)[often].sum()), int(often.sum())
    assert distance < freedom + 5 * math.sqrt(2 * freedom), (distance, freedom)


def test_dirichlet() -> None:
    torch.npu.manual_seed(5)
    alpha = torch.tensor([0.5, 2.0, 5.0], device="npu")
    drawn = torch._sample_dirichlet(alpha.expand(N, 3).contiguous())
    assert torch.allclose(drawn.sum(-1).cpu(), torch.ones(N), atol=1e-5)
    whole = 7.5
    for i, a in enumerate((0.5, 2.0, 5.0)):
        check(drawn[:, i], a / whole, a * (whole - a) / whole**2 / (whole + 1), 6)


def test_slopes() -> None:
    """How samples move with their parameters, in single precision, against the CPU's."""
    alpha = torch.tensor([0.1, 0.7, 2.0, 7.0, 9.0, 80.0]).reshape(-1, 1)
    x = alpha * torch.tensor([0.02, 0.5, 0.95, 1.3, 3.0])
    want = torch._standard_gamma_grad(alpha.expand_as(x), x)
    got = torch._standard_gamma_grad(alpha.expand_as(x).to("npu"), x.to("npu")).cpu()
    assert torch.allclose(got, want, rtol=2e-3, atol=1e-4), (got, want)
    share = torch.tensor([0.01, 0.3, 0.5, 0.8, 0.99])
    one = alpha.expand(6, 5).contiguous()
    for other in (0.4, 3.0, 20.0):
        args = share.expand(6, 5).contiguous(), one, one + other
        want = torch._dirichlet_grad(*args)
        got = torch._dirichlet_grad(*(t.to("npu") for t in args)).cpu()
        assert torch.allclose(got, want, rtol=1e-2, atol=1e-3), (other, got, want)


def test_seeds_and_odd_parameters() -> None:
    rate = torch.tensor([0.0, math.nan, 5.0, 50.0], device="npu")
    torch.npu.manual_seed(6)
    first = torch.poisson(rate)
    torch.npu.manual_seed(6)
    assert first.cpu().tolist()[2:] == torch.poisson(rate).cpu().tolist()[2:]
    assert first[0].item() == 0 and math.isnan(first[1].item())
    assert math.isnan(torch.binomial(torch.full((1,), 5.0, device="npu"), torch.full((1,), 1.5, device="npu")).item())


def test_scalars_of_the_cpu_go_with_tensors_of_a_device() -> None:
    x = torch.tensor([[0.5, 1.0], [2.0, 0.3]])
    a, b = torch.tensor(2.0), torch.tensor(0.4)
    grad = torch._standard_gamma_grad(a, x.to("npu"))
    assert torch.allclose(grad.cpu(), torch._standard_gamma_grad(a, x), rtol=2e-3)
    grad = torch._dirichlet_grad(b, x.to("npu"), (x + 1).to("npu"))
    assert torch.allclose(grad.cpu(), torch._dirichlet_grad(b, x, x + 1), rtol=2e-3)
    whole = torch.ones(2, 2, dtype=torch.int64)
    moved = torch.nextafter(whole.to("npu"), torch.tensor(0.0))
    assert torch.equal(moved.cpu(), torch.nextafter(whole, torch.tensor(0.0)))
