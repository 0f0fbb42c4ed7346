"""Random programs over jagged nested tensors against the same on each of the many, and against PyTorch.

A program is a list of steps; each step is an operator of one nested tensor (or of two of one structure) with what it is
on one of the many. `MINDTORCH_NESTED=N` runs N programs.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule

COUNT = int(os.environ.get("MINDTORCH_NESTED", "60"))
# (nested, on one): `x` is what came before, `y` an earlier value of the same sizes, `F` the functional module.
STEPS = [
    ("x * 2 + y", "x * 2 + y"),
    ("x.sin() - y.cos()", "x.sin() - y.cos()"),
    ("x.relu() + 0.5", "x.relu() + 0.5"),
    ("F.gelu(x)", "F.gelu(x)"),
    ("x.sigmoid() * y", "x.sigmoid() * y"),
    ("x.clamp(-1.0, 1.0)", "x.clamp(-1.0, 1.0)"),
    ("torch.where(x > 0, x, y)", "torch.where(x > 0, x, y)"),
    ("x.softmax(-1)", "x.softmax(-1)"),
    ("x.log_softmax(-1)", "x.log_softmax(-1)"),
    ("F.layer_norm(x, (4,))", "F.layer_norm(x, (4,))"),
    ("F.linear(x, w)", "F.linear(x, w)"),
    ("x @ w", "x @ w"),
    ("x * x.mean(-1, keepdim=True)", "x * x.mean(-1, keepdim=True)"),
    ("x - x.amax(-1, keepdim=True)", "x - x.amax(-1, keepdim=True)"),
    ("torch.cat([x, y], 2).chunk(2, -1)[1]", "torch.cat([x, y], 1).chunk(2, -1)[1]"),
    ("x.unflatten(-1, (2, 2)).transpose(2, 3).flatten(2)", "x.unflatten(-1, (2, 2)).transpose(1, 2).flatten(1)"),
    ("x.unsqueeze(-1).squeeze(-1)", "x.unsqueeze(-1).squeeze(-1)"),
    ("torch.stack([x, y], 3).sum(-1)", "torch.stack([x, y], 2).sum(-1)"),
    ("x + w[0]", "x + w[0]"),
    ("x.clone().mul_(y)", "x.clone().mul_(y)"),
    ("x.split([1, 3], -1)[1].sum(-1, keepdim=True) * x", "x.split([1, 3], -1)[1].sum(-1, keepdim=True) * x"),
    ("x.transpose(1, 2).transpose(1, 2)", "x"),
]
# PyTorch's derivatives of these are missing or crash.
NOT_THERE = ("keepdim", "split", "stack", "chunk", "flatten", "squeeze", "log_softmax")


def _numbers(library: Any, lengths: list[int], seed: int) -> tuple[list[Any], Any]:
    source = random.Random(seed)
    many = [
        library.tensor([[source.uniform(-2, 2) for _ in range(4)] for _ in range(n)], dtype=library.float64)
        for n in lengths
    ]
    w = library.tensor([[source.uniform(-1, 1) for _ in range(4)] for _ in range(4)], dtype=library.float64)
    return many, w


def _run(program: list[str], x: Any, names: dict[str, Any]) -> Any:
    earlier = [x]
    for i, step in enumerate(program):
        x = eval(step, {**names, "x": x, "y": earlier[(i * 7) % len(earlier)]})
        earlier.append(x)
    return x


def _nested(library: Any, program: list[str], lengths: list[int], seed: int) -> tuple[list[Any], list[Any]]:
    """Results and gradients of a program on a nested tensor, as lists."""
    many, w = _numbers(library, lengths, seed)
    leaf = library.nested.nested_tensor(many, layout=library.jagged, requires_grad=True)
    result = _run(program, leaf, {"torch": library, "F": library.nn.functional, "w": w})
    (result.values() * result.detach().values().sin()).sum().backward()
    return [t.tolist() for t in result.detach().unbind()], [t.tolist() for t in leaf.grad.unbind()]


def _one_by_one(program: list[str], lengths: list[int], seed: int) -> tuple[list[Any], list[Any]]:
    many, w = _numbers(torch, lengths, seed)
    results, grads = [], []
    for t in many:
        leaf = t.requires_grad_()
        result = _run(program, leaf, {"torch": torch, "F": torch.nn.functional, "w": w})
        (result * result.detach().sin()).sum().backward()
        results.append(result.tolist())
        grads.append(leaf.grad.tolist())
    return results, grads


def _flat(value: Any) -> list[float]:
    return [x for v in value for x in _flat(v)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("seed", range(COUNT))
def test_program(seed: int) -> None:
    submodule("nested")
    source = random.Random(seed)
    lengths = [source.randint(1, 5) for _ in range(source.randint(1, 4))]
    steps = [source.choice(STEPS) for _ in range(source.randint(1, 6))]
    program = [step[0] for step in steps]
    found = _nested(torch, program, lengths, seed)
    expected = _one_by_one([step[1] for step in steps], lengths, seed)
    for ours, theirs in zip(found, expected):
        assert _flat(ours) == pytest.approx(_flat(theirs), rel=1e-9, abs=1e-9), program
    if _oracle.available() and not any(word in step for step in program for word in NOT_THERE):
        for ours, theirs in zip(found, _nested(_oracle.load(), program, lengths, seed)):
            assert _flat(ours) == pytest.approx(_flat(theirs), rel=1e-9, abs=1e-9), program
