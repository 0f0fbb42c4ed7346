"""Averaged models, their batch statistics and their schedule, as the oracle's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from .._oracle import assert_same, from_oracle
from .._outcome import outcome
from .._subject import subject as torch
from .._subject import submodule

nn = submodule("nn")
swa = submodule("optim.swa_utils")


def network(library: Any, oracle: Any) -> Any:
    """The same small network with batch statistics in either library."""
    oracle.manual_seed(3)
    reference = oracle.nn.Sequential(oracle.nn.Linear(4, 3), oracle.nn.BatchNorm1d(3), oracle.nn.Linear(3, 2))
    if library is oracle:
        return reference
    mine = library.nn.Sequential(library.nn.Linear(4, 3), library.nn.BatchNorm1d(3), library.nn.Linear(3, 2))
    mine.load_state_dict({key: from_oracle(value) for key, value in reference.state_dict().items()})
    return mine


def data(library: Any, oracle: Any, seed: int) -> Any:
    x = oracle.randn(5, 4, generator=oracle.Generator().manual_seed(seed))
    return x if library is oracle else from_oracle(x)


def train(library: Any, oracle: Any, model: Any, averaged: Any, steps: int = 5) -> None:
    optimizer = library.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        (model(data(library, oracle, step)) ** 2).mean().backward()
        optimizer.step()
        averaged.update_parameters(model)


def weighted(average: Any, current: Any, count: Any) -> Any:
    return average * 0.75 + current * 0.25 / (count + 1)


OPTIONS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "swa": lambda u: {},
    "swa function": lambda u: {"avg_fn": u.get_swa_avg_fn()},
    "swa lists": lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    "ema": lambda u: {"avg_fn": u.get_ema_avg_fn(0.9)},
    "ema lists": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9)},
    "ema buffers": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(), "use_buffers": True},
    "swa buffers": lambda u: {"use_buffers": True},
    "own": lambda u: {"avg_fn": weighted, "use_buffers": True},
    "device": lambda u: {"device": "cpu", "avg_fn": u.get_ema_avg_fn()},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_averages(oracle: ModuleType, name: str) -> None:
    states, texts = [], []
    for library in (torch, oracle):
        model = network(library, oracle)
        averaged = library.optim.swa_utils.AveragedModel(model, **OPTIONS[name](library.optim.swa_utils))
        train(library, oracle, model, averaged)
        states.append(averaged.state_dict())
        texts.append(repr(averaged))
        states[-1]["output"] = averaged(data(library, oracle, 9)).detach()
    assert list(states[0]) == list(states[1]) and texts[0] == texts[1]
    for key, expected in states[1].items():
        assert_same(states[0][key], expected, rtol=1e-5, atol=1e-6, where=key)


FUNCTIONS = [
    ("get_ema_avg_fn", (0.9,)),
    ("get_ema_multi_avg_fn", (0.9,)),
    ("get_swa_avg_fn", ()),
    ("get_swa_multi_avg_fn", ()),
]


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "complex64", "int64", "uint8"])
@pytest.mark.parametrize("counted", ["number", "tensor"])
@pytest.mark.parametrize(("name", "arguments"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_averaging_functions(oracle: ModuleType, dtype: str, counted: str, name: str, arguments: tuple[Any]) -> None:
    kind = getattr(oracle, dtype)
    given = [
        [(oracle.arange(6) * 3 % 5).to(kind), oracle.zeros(2, 2).to(kind)],
        [(oracle.arange(6) * 7 % 5).to(kind), oracle.ones(2, 2).to(kind)],
    ]

    def run(library: Any) -> Any:
        averages, currents = copy.deepcopy(given) if library is oracle else [[*map(from_oracle, ts)] for ts in given]
        average = getattr(library.optim.swa_utils, name)(*arguments)
        count = 3 if counted == "number" else library.tensor(3)
        if "multi" in name:
            average(averages, currents, count)
            return averages
        return [average(a, c, count) for a, c in zip(averages, currents)]

    expected = outcome(lambda: run(oracle))
    if isinstance(expected[0], str):
        assert outcome(lambda: run(torch)) == expected
    else:
        assert_same(run(torch), run(oracle))


def test_statistics(oracle: ModuleType) -> None:
    """`update_bn` over batches that are tensors, lists and tuples, and for a model without batch normalisation."""
    results = []
    for library in (torch, oracle):
        model = network(library, oracle)
        model[1].momentum = 0.3
        model.eval()
        batches = [data(library, oracle, 1), [data(library, oracle, 2), None], (data(library, oracle, 3),)]
        library.optim.swa_utils.update_bn(batches, model, device="cpu")
        assert model[1].momentum == 0.3 and not model.training
        results.append(dict(model[1].state_dict()))
        library.optim.swa_utils.update_bn([object()], library.nn.Linear(1, 1))
    for key, expected in results[1].items():
        assert_same(results[0][key], expected, where=key)


SCHEDULES: dict[str, dict[str, Any]] = {
    "cos": {"swa_lr": 0.01},
    "linear": {"swa_lr": [0.01, 0.3], "anneal_strategy": "linear", "anneal_epochs": 7},
    "at once": {"swa_lr": 0.02, "anneal_epochs": 0},
    "one": {"swa_lr": 0.02, "anneal_epochs": 1, "anneal_strategy": "linear"},
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(oracle: ModuleType, name: str) -> None:
    def run(library: Any) -> tuple[Any, Any]:
        params = [{"params": [library.nn.Parameter(library.ones(1))], "lr": lr} for lr in (0.1, 0.5)]
        optimizer = library.optim.SGD(params)
        first = library.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        scheduler = library.optim.swa_utils.SWALR(optimizer, **SCHEDULES[name])
        rates = []
        for step in range(30):
            optimizer.step()
            (first if step < 5 else scheduler).step()
            rates.append([group["lr"] for group in optimizer.param_groups])
        state = scheduler.state_dict()
        fresh = library.optim.swa_utils.SWALR(optimizer, 1.0)
        fresh.load_state_dict(state)
        fresh.step()
        return rates, (state, fresh.get_last_lr())

    assert run(torch) == run(oracle)


def test_a_mean_is_a_mean() -> None:
    layer = nn.Linear(1, 1, bias=False)
    averaged = swa.AveragedModel(layer)
    for value in (1.0, 2.0, 6.0):
        with torch.no_grad():
            layer.weight.fill_(value)
        averaged.update_parameters(layer)
    assert averaged.module.weight.item() == 3.0 and averaged.n_averaged.item() == 3
    assert averaged.module.weight.requires_grad and averaged.module.weight.grad_fn is None
    assert averaged(torch.ones(1)).item() == 3.0 and layer.weight.item() == 6.0
    moving = swa.AveragedModel(layer, multi_avg_fn=swa.get_ema_multi_avg_fn(0.5))
    moving.update_parameters(layer)
    with torch.no_grad():
        layer.weight.fill_(0.0)
    moving.update_parameters(layer)
    assert moving.module.weight.item() == 3.0


def test_names(oracle: ModuleType) -> None:
    assert set(swa.__all__) == set(oracle.optim.swa_utils.__all__)
    assert submodule("optim").swa_utils is swa
