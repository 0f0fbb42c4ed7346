"""`Optimizer` and `SGD`."""

from __future__ import annotations

import copy
import pickle
from types import ModuleType
from typing import Any

import pytest

from .._oracle import assert_same, from_oracle
from .._subject import subject as torch
from .._subject import submodule

nn = submodule("nn")
optim = submodule("optim")

OPTIONS: list[dict[str, Any]] = [
    {"lr": 0.1},
    {"lr": 0.1, "maximize": True},
    {"lr": 0.1, "weight_decay": 0.3},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "dampening": 0.4, "weight_decay": 0.1},
    {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    {"lr": 0.1, "momentum": 0.5, "maximize": True, "weight_decay": 0.2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=[" ".join(o) for o in OPTIONS])
def test_steps_as_the_oracle(oracle: ModuleType, options: dict[str, Any]) -> None:
    oracle.manual_seed(0)
    theirs = [oracle.nn.Parameter(oracle.randn(3, 2)), oracle.nn.Parameter(oracle.randn(2))]
    ours = [nn.Parameter(from_oracle(p, requires_grad=False)) for p in theirs]
    reference, subject = oracle.optim.SGD(theirs, **options), optim.SGD(ours, **options)
    x = oracle.randn(4, 3)
    mine = from_oracle(x)
    for _ in range(4):
        for data, (weight, bias), optimizer in ((x, theirs, reference), (mine, ours, subject)):
            optimizer.zero_grad()
            ((data @ weight + bias) ** 2).mean().backward()
            optimizer.step()
    for left, right in zip(ours, theirs):
        assert_same(left.detach(), right.detach(), rtol=1e-5, atol=1e-7)
    assert repr(subject) == repr(reference)
    assert subject.state_dict().keys() == reference.state_dict().keys()
    assert subject.state_dict()["param_groups"] == reference.state_dict()["param_groups"]


def quadratic(p: Any) -> Any:
    return (p * p).sum()


def test_closure_runs_with_grad() -> None:
    p = nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([p], lr=0.25)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = quadratic(p)
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 1.0
    assert p.item() == 0.5 and p.requires_grad and p.grad_fn is None


def test_zero_grad() -> None:
    p = nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([p])
    quadratic(p).backward()
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad and grad.item() == 0.0
    optimizer.zero_grad()
    assert p.grad is None
    optimizer.step()
    assert p.item() == 1.0


def test_groups() -> None:
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": b}], lr=0.5)
    (a + b).sum().backward()
    optimizer.step()
    assert a.item() == 0.0 and b.item() == 0.5
    c = nn.Parameter(torch.ones(1))
    optimizer.add_param_group({"params": c, "momentum": 0.9})
    assert optimizer.param_groups[2]["lr"] == 0.5 and optimizer.param_groups[2]["momentum"] == 0.9
    named = optim.SGD(nn.Linear(1, 1).named_parameters())
    assert named.param_groups[0]["param_names"] == ["weight", "bias"]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda p: optim.SGD([], lr=0.1), ValueError, "optimizer got an empty parameter list"),
        (lambda p: optim.SGD(p), TypeError, "should be an iterable of Tensors or dicts, but got"),
        (lambda p: optim.SGD([3]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda p: optim.SGD([p * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda p: optim.SGD([p], lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
        (lambda p: optim.SGD([p], momentum=-1.0), ValueError, "Invalid momentum value: -1.0"),
        (lambda p: optim.SGD([p], weight_decay=-1.0), ValueError, "Invalid weight_decay value: -1.0"),
        (lambda p: optim.SGD([p], nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero"),
        (lambda p: optim.SGD([{"params": {p}}]), TypeError, "need to be organized in ordered collections"),
        (lambda p: optim.SGD([{"params": p}, {"params": p}]), ValueError, "appear in more than one parameter group"),
        (lambda p: optim.SGD([p]).add_param_group(3), TypeError, "param_group must be a dict, but got <class 'int'>"),
        (lambda p: optim.SGD([p]).load_state_dict({"param_groups": []}), ValueError, "different number of parameter"),
    ],
)
def test_wrong_use(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        make(nn.Parameter(torch.ones(1)))
    assert text in str(caught.value)


def test_state_survives_saving_and_copying() -> None:
    def train(p: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        quadratic(p).backward()
        optimizer.step()

    p = nn.Parameter(torch.ones(2))
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9)
    train(p, optimizer)
    state = copy.deepcopy(optimizer.state_dict())
    assert list(state["state"]) == [0] and state["param_groups"][0]["params"] == [0]

    q = nn.Parameter(p.detach().clone().double())
    other = optim.SGD([q], lr=0.7, momentum=0.1)
    other.load_state_dict(state)
    assert other.param_groups[0]["lr"] == 0.1
    assert other.state[q]["momentum_buffer"].dtype is torch.float64
    train(p, optimizer)
    train(q, other)
    assert torch.allclose(p.detach(), q.detach().float())

    loaded = pickle.loads(pickle.dumps(optimizer))
    assert loaded.param_groups[0]["momentum"] == 0.9 and len(loaded.state) == 1
    loaded.step()


def test_hooks() -> None:
    p = nn.Parameter(torch.ones(1))
    optimizer = optim.SGD([p], lr=0.1)
    log: list[str] = []
    first = optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("pre"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.step()
    first.remove()
    optimizer.step()
    assert log == ["pre", "post", "post"]
    assert optimizer.state_dict()["more"] == 1


def test_hooks_run_once_for_a_subclass() -> None:
    log: list[str] = []

    class Twice(optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    optimizer = Twice([nn.Parameter(torch.ones(1))], lr=0.1)
    optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post"))
    optimizer.step()
    assert log.count("post") >= 1
