"""Walking modules, and calls with hooks, where a class or a change on the way makes a difference: as PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .._oracle import load
from .._subject import subject as torch

Case = Callable[[Any], Any]
CASES: dict[str, Case] = {}


def case(run: Case) -> Case:
    CASES[run.__name__] = run
    return run


def names(module: Any) -> dict[str, Any]:
    """All ways to walk a module, by the names and sizes of what they find."""
    sizes = {id(value): tuple(value.shape) for _, value in module.named_parameters()}
    return {
        "modules": [name for name, _ in module.named_modules()],
        "kinds": [type(each).__name__ for each in module.modules()],
        "twice": [name for name, _ in module.named_modules(remove_duplicate=False)],
        "children": [type(each).__name__ for each in module.children()],
        "parameters": [name for name, _ in module.named_parameters()],
        "sizes": [sizes.get(id(value), tuple(value.shape)) for value in module.parameters()],
        "own": [tuple(value.shape) for value in module.parameters(recurse=False)],
        "buffers": [tuple(value.shape) for value in module.buffers()],
        "named_buffers": [name for name, _ in module.named_buffers()],
        "state": list(module.state_dict()),
        "metadata": list(module.state_dict()._metadata),
    }


def tree(t: Any, depth: int = 3) -> Any:
    def level(number: int) -> Any:
        inner = [level(number - 1), t.nn.Linear(number, 2)] if number else []
        return t.nn.Sequential(t.nn.BatchNorm1d(number + 1), *inner, t.nn.ReLU())

    return level(depth)


@case
def plain(t: Any) -> Any:
    return names(tree(t))


@case
def shared(t: Any) -> Any:
    """A module in two places, a parameter in two modules, and a name without a module."""
    module, first, second = tree(t), t.nn.Linear(2, 3), t.nn.Linear(2, 3)
    second.weight = first.weight
    module.add_module("a", first)
    module.add_module("none", None)
    module.add_module("b", t.nn.Sequential(first, second))
    module[1].again = first
    return names(module)


@case
def own_walk(t: Any) -> Any:
    """A class that hides its children, and one that hides its parameters."""

    class Hidden(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = t.nn.Linear(3, 3)
            self.weight = t.nn.Parameter(t.ones(7))

        def named_modules(self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True) -> Any:
            memo = set() if memo is None else memo
            if self not in memo:
                memo.add(self)
                yield prefix, self

    class Silent(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = t.nn.Parameter(t.ones(5))

        def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
            return iter(())

    module = tree(t)
    module.add_module("hidden", Hidden())
    module.add_module("silent", Silent())
    return [names(module), names(Hidden()), list(Silent().parameters()), names(t.nn.Sequential(Hidden(), tree(t, 1)))]


@case
def own_children(t: Any) -> Any:
    class Few(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = t.nn.ReLU(), t.nn.Dropout()

        def named_children(self) -> Any:
            yield "one", self.one

    module = Few().eval()
    return [type(each).__name__ for each in module.children()], module.one.training, module.two.training


@case
def own_state(t: Any) -> Any:
    """A class that saves in its own way, one with extra state, and hooks."""

    class Own(t.nn.Linear):
        def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
            destination[prefix + "mine"] = 1
            return destination

    class Extra(t.nn.Linear):
        def get_extra_state(self) -> Any:
            return {"more": 2}

    seen: list[Any] = []
    module = t.nn.Sequential(Own(1, 1), Extra(1, 1), t.nn.Sequential(t.nn.Linear(1, 1, bias=False)))
    module[2].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((prefix, keep)))
    module[2].register_state_dict_post_hook(lambda m, state, prefix, meta: seen.append((prefix, sorted(state))))
    state = module.state_dict(prefix="p.", keep_vars=True)
    plain_dict: dict[str, Any] = {}
    module.state_dict(destination=plain_dict)
    return list(state), list(state._metadata.items()), state["p.2.0.weight"].requires_grad, seen, list(plain_dict)


@case
def replaced_on_the_way(t: Any) -> Any:
    """What is put into a module before it is reached is walked; what is put after is not."""
    module = t.nn.Sequential(t.nn.Sequential(t.nn.ReLU(), t.nn.ReLU()), t.nn.ReLU(), t.nn.ReLU())
    found = []
    for name, each in module.named_modules():
        found.append((name, type(each).__name__))
        if name == "0":
            each[1] = t.nn.Sequential(t.nn.Tanh())
            module[1] = t.nn.Linear(1, 1)
            module[0] = t.nn.Sigmoid()
    sizes = []
    for parameter in module.parameters():
        sizes.append(tuple(parameter.shape))
        module[2] = t.nn.Linear(3, 3)
    return found, sizes


@case
def grown_on_the_way(t: Any) -> Any:
    results = []
    for walk in ("named_modules", "parameters", "named_parameters"):
        module = t.nn.Sequential(t.nn.Linear(1, 1), t.nn.Linear(1, 1))
        try:
            for number, _ in enumerate(getattr(module, walk)()):
                module.add_module(f"new{number}", t.nn.Linear(1, 1))
            results.append("walked")
        except RuntimeError as error:
            results.append(str(error))
    return results


@case
def kinds_of_walks(t: Any) -> Any:
    module = tree(t, 1)
    walks = [module.parameters(), module.buffers(), module.modules(), module.children(), module.named_modules()]
    return [type(walk).__name__ for walk in walks], [next(walk) is not None for walk in walks]


@case
def attributes(t: Any) -> Any:
    """What a name is decides what may be assigned to it."""

    class Guarded(t.nn.Linear):
        kept: list[Any] = []

        @property
        def scale(self) -> Any:
            return self.__dict__["scale"]

        @scale.setter
        def scale(self, value: Any) -> None:
            self.kept.append(value)
            self.__dict__["scale"] = value

    module = Guarded(2, 2)
    module.scale = 1
    module.scale = 2.0
    module.flag = True
    module.flag = None
    module.flag = t.nn.Parameter(t.ones(1))
    results: list[Any] = [Guarded.kept, "flag" in module.__dict__, [name for name, _ in module.named_parameters()]]
    for name, value in (("flag", 3), ("weight", "text"), ("bias", None), ("training", 5)):
        try:
            setattr(module, name, value)
            results.append(getattr(module, name))
        except TypeError as error:
            results.append(str(error))
    return results


@case
def hooks(t: Any) -> Any:
    seen: list[Any] = []

    class Late(t.nn.Module):
        def forward(self, x: Any, y: Any = 0) -> Any:
            self.register_forward_hook(lambda m, args, out: seen.append("late"))
            return x + y

    module = Late()
    module.register_forward_pre_hook(lambda m, args: seen.append(len(args)))
    module.register_forward_pre_hook(lambda m, args: args[0] + 1)
    module.register_forward_hook(lambda m, args, out: out * args[0])
    first = module(t.tensor(1.0), y=2).item()
    handle = module.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    second = module(t.tensor(1.0), y=2).item()
    handle.remove()
    shared = t.nn.modules.module.register_module_forward_hook(lambda m, args, out: seen.append("shared"))
    third = module(t.tensor(2.0)).item()
    shared.remove()
    return first, second, third, module(t.tensor(3.0)).item(), seen


@case
def gradients(t: Any) -> Any:
    module = tree(t, 1)
    leaf = t.nn.Parameter(t.ones(2))
    module.register_parameter("alone", leaf)
    for parameter in module.parameters():
        parameter.grad = t.ones_like(parameter)
    module.zero_grad(set_to_none=False)
    zeros = [parameter.grad.sum().item() for parameter in module.parameters()]
    module.zero_grad()
    return zeros, [parameter.grad for parameter in module.parameters()]


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(oracle: Any, name: str) -> None:
    assert CASES[name](torch) == CASES[name](load())


def test_without_the_oracle() -> None:
    for run in CASES.values():
        run(torch)
    assert names(tree(torch, 1))["parameters"][:2] == ["0.weight", "0.bias"]
