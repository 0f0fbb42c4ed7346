"""Pruning: masks, hooks, containers, errors.

Invariant: a case is a function of the library; what it gives, its errors and its warnings are PyTorch's.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ._both import Cases, attempt, check

case = Cases()


def prune_of(lib: Any) -> Any:
    import importlib

    return importlib.import_module(f"{lib.__name__}.nn.utils.prune")


def layers(lib: Any) -> list[Any]:
    return [lib.nn.Linear(5, 4), lib.nn.Conv2d(3, 4, 2)]


def shown(lib: Any, module: Any) -> Any:
    shape = (2, 5) if module.weight.dim() == 2 else (1, 3, 4, 4)
    module.zero_grad()
    out = module(lib.randn(shape))
    out.sum().backward()
    hooks = [type(hook).__name__ for hook in module._forward_pre_hooks.values()]
    return module.state_dict(), out, {name: p.grad for name, p in module.named_parameters()}, hooks


@case
def every_method(lib: Any) -> Any:
    p = prune_of(lib)
    calls = [
        lambda m: p.identity(m, "weight"),
        *(lambda m, a=a: p.random_unstructured(m, "weight", a) for a in (0, 0.3, 3, 1.0)),
        *(lambda m, a=a: p.l1_unstructured(m, "weight", a) for a in (0, 0.3, 3, 1.0)),
        lambda m: p.l1_unstructured(m, "weight", 0.5, lib.rand(m.weight.shape)),
        *(lambda m, a=a, d=d: p.random_structured(m, "weight", a, d) for a in (0, 0.5, 2) for d in (0, 1, -1)),
        *(
            lambda m, a=a, d=d, n=n: p.ln_structured(m, "weight", a, n, d)
            for a, d, n in ((0, 0, 2), (0.5, 1, 1), (1, -1, float("inf")), (2, 0, float("-inf")))
        ),
        lambda m: p.ln_structured(m, "weight", 0.5, 2, 0, lib.rand(m.weight.shape)),
        lambda m: p.custom_from_mask(m, "weight", lib.rand(m.weight.shape) > 0.5),
        lambda m: p.ln_structured(m, "weight", 0.5, "fro", 0),
    ]
    results: list[Any] = []
    for call in calls:
        for module in layers(lib):
            weight = module.weight
            results.append(attempt(lambda m=module, c=call: c(m) is m))
            results += [p.is_pruned(module), shown(lib, module)]
            results += [attempt(lambda m=module: p.remove(m, "weight") is m), shown(lib, module)]
            results.append(module.weight is weight)
    return results


@case
def one_after_the_other(lib: Any) -> Any:
    p = prune_of(lib)
    results: list[Any] = []
    for module in layers(lib):
        p.l1_unstructured(module, "weight", 0.25)
        p.ln_structured(module, "weight", 1, 2, 0)
        p.random_unstructured(module, "weight", 2)
        p.random_structured(module, "weight", 1, 1)
        p.custom_from_mask(module, "weight", lib.rand(module.weight.shape) > 0.1)
        p.identity(module, "bias")
        (container, _) = module._forward_pre_hooks.values()
        results += [len(container), [type(m).__name__ for m in container], type(container[1]).__name__]
        results += [shown(lib, module), attempt(lambda m=module: copy.deepcopy(m)), repr(module)]
        p.remove(module, "weight")
        results += [p.is_pruned(module), shown(lib, module)]
        other = type(module)(*((5, 4) if module.weight.dim() == 2 else (3, 4, 2)))
        results.append(attempt(lambda m=module, o=other: o.load_state_dict(m.state_dict())))
    return results


@case
def many_modules_at_once(lib: Any) -> Any:
    p = prune_of(lib)
    first, second = layers(lib)
    pairs = [(first, "weight"), (second, "weight"), (second, "bias")]
    p.global_unstructured(pairs, pruning_method=p.L1Unstructured, amount=0.4)
    results = [shown(lib, first), shown(lib, second)]
    p.global_unstructured(pairs[:2], p.RandomUnstructured, amount=3)
    scores = {(first, "weight"): lib.rand(4, 5)}
    p.global_unstructured(pairs, p.L1Unstructured, importance_scores=scores, amount=2)
    results += [
        shown(lib, first),
        shown(lib, second),
        p.is_pruned(lib.nn.Sequential(first)),
        p.is_pruned(lib.nn.ReLU()),
    ]
    t = lib.randn(3, 3)
    method = p.L1Unstructured(0.5)
    results += [method.prune(t), method.prune(t, lib.eye(3)), method.prune(t, importance_scores=-t)]
    results += [p.RandomStructured(1, 0).prune(t), p.LnStructured(2, 1, 1).prune(t)]
    return results


@case
def refused(lib: Any) -> Any:
    p = prune_of(lib)

    def linear() -> Any:
        return lib.nn.Linear(3, 2)

    pruned = p.identity(linear(), "weight")

    class Odd(p.BasePruningMethod):
        PRUNING_TYPE = "odd"

        def compute_mask(self, t: Any, default_mask: Any) -> Any:
            return default_mask

    class NoDim(Odd):
        PRUNING_TYPE = "structured"

    def after_an_error() -> Any:
        module = linear()
        failed = attempt(lambda: p.l1_unstructured(module, "weight", 100))
        return failed, list(module.state_dict()), len(module._forward_pre_hooks)

    container = p.PruningContainer()
    container._tensor_name = "weight"
    wrong = p.L1Unstructured(1)
    wrong._tensor_name = "bias"
    return [
        attempt(lambda: p.remove(linear(), "weight")),
        attempt(lambda: p.l1_unstructured(linear(), "none", 0.1)),
        *(attempt(lambda a=a: p.L1Unstructured(a)) for a in (-1, 1.5, -0.1, "1", None, lib.tensor(1))),
        after_an_error(),
        attempt(lambda: p.random_structured(linear(), "bias", 1, 0)),
        attempt(lambda: p.random_structured(linear(), "weight", 1, 2)),
        attempt(lambda: p.ln_structured(linear(), "weight", 1, 2, 5)),
        attempt(lambda: p.ln_structured(linear(), "weight", 5, 2, 0)),
        attempt(lambda: p.custom_from_mask(linear(), "weight", lib.ones(1))),
        attempt(lambda: p.l1_unstructured(linear(), "weight", 1, lib.ones(2, 2))),
        attempt(lambda: p.L1Unstructured(1).prune(lib.ones(2), importance_scores=lib.ones(3))),
        attempt(lambda: p.global_unstructured(3, p.L1Unstructured, amount=1)),
        attempt(lambda: p.global_unstructured([(linear(), "weight")], p.L1Unstructured, [1], amount=1)),
        attempt(lambda: p.global_unstructured([(linear(), "weight")], p.LnStructured, amount=1, n=2)),
        attempt(lambda: container.add_pruning_method(3)),
        attempt(lambda: container.add_pruning_method(wrong)),
        attempt(lambda: Odd.apply(pruned, "weight")),
        attempt(lambda: NoDim.apply(p.identity(linear(), "weight"), "weight")),
        attempt(lambda: p.BasePruningMethod()),
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("name", case)
def test_case(name: str) -> None:
    check(case[name])


def test_a_pruned_weight_stays_pruned_through_training() -> None:
    p = prune_of(torch)
    layer = p.l1_unstructured(torch.nn.Linear(4, 4), "weight", 6)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        layer(torch.randn(2, 4)).square().sum().backward()
        optimizer.step()
    layer(torch.ones(1, 4))
    assert int((layer.weight == 0).sum()) == 6 and int((layer.weight_mask == 0).sum()) == 6


@pytest.mark.oracle
@mindtorch_only
def test_public_names() -> None:
    import torch.nn.utils.prune as theirs

    mine = submodule("nn.utils.prune")
    missing = [n for n in vars(theirs) if not n.startswith("_") and not hasattr(mine, n) and n != "torch"]
    assert missing == []
