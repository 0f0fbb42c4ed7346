"""Random numbers on NPUs: seeds, states, distributions; every draw is made on the device."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._random import AcceleratorGenerators

from .. import _npu

DRAWS: dict[str, Any] = {
    "rand": lambda g: torch.rand(50, generator=g, device="npu"),
    "randn": lambda g: torch.randn(50, generator=g, device="npu"),
    "randint": lambda g: torch.randint(0, 1000, (50,), generator=g, device="npu"),
    "randperm": lambda g: torch.randperm(50, generator=g, device="npu"),
    "uniform_": lambda g: torch.empty(50, device="npu").uniform_(-1, 1, generator=g),
    "normal_": lambda g: torch.empty(50, device="npu").normal_(1, 2, generator=g),
    "random_": lambda g: torch.empty(50, dtype=torch.int64, device="npu").random_(generator=g),
    "bernoulli": lambda g: torch.bernoulli(torch.full((50,), 0.5, device="npu"), generator=g),
    "bernoulli_": lambda g: torch.empty(50, device="npu").bernoulli_(0.5, generator=g),
    "exponential_": lambda g: torch.empty(50, device="npu").exponential_(2, generator=g),
    "cauchy_": lambda g: torch.empty(50, device="npu").cauchy_(generator=g),
    "log_normal_": lambda g: torch.empty(50, device="npu").log_normal_(generator=g),
    "geometric_": lambda g: torch.empty(50, device="npu").geometric_(0.25, generator=g),
    "normal of tensors": lambda g: torch.normal(
        torch.zeros(50, device="npu"), torch.ones(50, device="npu"), generator=g
    ),
    "multinomial": lambda g: torch.multinomial(torch.ones(60, device="npu"), 50, generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_decides_the_numbers(name: str) -> None:
    draw = DRAWS[name]
    torch.manual_seed(7)
    first, second = draw(None).tolist(), draw(None).tolist()
    assert first != second
    torch.manual_seed(7)
    assert draw(None).tolist() == first
    torch.npu.manual_seed(7)
    assert draw(None).tolist() == first
    torch.npu.manual_seed_all(8)
    assert draw(None).tolist() != first
    own = torch.Generator(device="npu").manual_seed(7)
    assert draw(own).tolist() == first and draw(own).tolist() == second


def test_a_fork_covers_generators_that_are_made_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AcceleratorGenerators, "made", {})
    torch.manual_seed(7)
    with torch.random.fork_rng():
        torch.manual_seed(8)
        inside = torch.rand(5, device="npu").tolist()
    after = torch.rand(5, device="npu").tolist()
    torch.manual_seed(7)
    assert after == torch.rand(5, device="npu").tolist() != inside


def test_states_are_saved_and_put_back() -> None:
    torch.npu.manual_seed(3)
    torch.rand(5, device="npu")
    state = torch.npu.get_rng_state()
    assert state.dtype is torch.uint8 and state.device.type == "cpu" and state.numel() == 16
    first = torch.rand(5, device="npu").tolist()
    torch.npu.set_rng_state(state)
    assert torch.rand(5, device="npu").tolist() == first
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        torch.npu.set_rng_state(torch.zeros(3, dtype=torch.uint8))
    assert torch.npu.initial_seed() == 3


def test_generators_belong_to_devices() -> None:
    own = torch.Generator(device="npu")
    assert own.device == torch.device("npu", torch.npu.current_device())
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'npu'"):
        torch.rand(3, generator=own)
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(3, generator=torch.Generator(), device="npu")
    copy = pickle.loads(pickle.dumps(own.manual_seed(11)))
    assert copy.device == own.device
    assert torch.rand(3, generator=copy, device="npu").tolist() == torch.rand(3, generator=own, device="npu").tolist()
    assert own.clone_state().get_state().tolist() == own.get_state().tolist()


def test_the_cpus_numbers_do_not_depend_on_the_npus() -> None:
    torch.manual_seed(1)
    expected = torch.rand(4).tolist()
    torch.manual_seed(1)
    torch.rand(100, device="npu")
    assert torch.rand(4).tolist() == expected


def test_each_device_has_its_own_numbers() -> None:
    if torch.npu.device_count() < 2:
        return
    torch.manual_seed(5)
    torch.rand(10, device="npu:0")
    there = torch.rand(10, device="npu:1").tolist()
    torch.manual_seed(5)
    assert torch.rand(10, device="npu:1").tolist() == there


MOMENTS: dict[str, tuple[Any, float, float]] = {
    "rand": (lambda n, dt: torch.rand(n, dtype=dt, device="npu"), 0.5, 1 / 12),
    "randn": (lambda n, dt: torch.randn(n, dtype=dt, device="npu"), 0.0, 1.0),
    "uniform_": (lambda n, dt: torch.empty(n, dtype=dt, device="npu").uniform_(-2, 4), 1.0, 3.0),
    "normal_": (lambda n, dt: torch.empty(n, dtype=dt, device="npu").normal_(3, 0.5), 3.0, 0.25),
    "bernoulli_": (lambda n, dt: torch.empty(n, dtype=dt, device="npu").bernoulli_(0.25), 0.25, 0.1875),
    "exponential_": (lambda n, dt: torch.empty(n, dtype=dt, device="npu").exponential_(0.5), 2.0, 4.0),
    "geometric_": (lambda n, dt: torch.empty(n, dtype=dt, device="npu").geometric_(0.5), 2.0, 2.0),
    "random_": (lambda n, dt: torch.empty(n, dtype=dt, device="npu").random_(0, 10), 4.5, 8.25),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", MOMENTS)
def test_mean_and_variance(name: str, dtype: str) -> None:
    torch.manual_seed(0)
    draw, mean, variance = MOMENTS[name]
    got = draw(20000, getattr(torch, dtype)).cpu().to(torch.float64)
    assert abs(got.mean().item() - mean) < 5 * (variance / 20000) ** 0.5 + 0.01 * abs(mean)
    assert abs(got.var().item() - variance) < 0.08 * variance


def test_ranges() -> None:
    torch.manual_seed(0)
    got = torch.rand(5000, device="npu")
    assert 0 <= got.min().item() and got.max().item() < 1
    ints = torch.randint(-3, 4, (5000,), device="npu")
    assert sorted(set(ints.tolist())) == list(range(-3, 4))
    assert sorted(torch.randperm(100, device="npu").tolist()) == list(range(100))
    flags = torch.empty(100, dtype=torch.bool, device="npu").random_()
    assert set(flags.tolist()) == {True, False}
    assert torch.randint(0, 5, (0,), device="npu").shape == (0,)
    strided = torch.zeros(4, 6, device="npu")[:, ::2].uniform_(1, 2)
    assert strided.min().item() >= 1


@_npu.emulator_only
def test_draws_are_made_on_the_device(emulator: _npu.Emulator) -> None:
    torch.npu.synchronize()
    before = emulator.runs("aclnnInplaceNormal"), emulator.calls("aclrtMemcpyAsync")
    torch.randn(1000, device="npu")
    torch.npu.synchronize()
    assert (emulator.runs("aclnnInplaceNormal"), emulator.calls("aclrtMemcpyAsync")) == (before[0] + 1, before[1])


def test_dropout_keeps_the_expectation() -> None:
    torch.manual_seed(0)
    kept = torch.nn.functional.dropout(torch.ones(20000, device="npu"), 0.25)
    assert sorted(set(kept.tolist())) == pytest.approx([0.0, 1 / 0.75])
    assert abs(kept.mean().item() - 1) < 0.02
