"""One optimiser in both libraries: the same parameters, options and gradients.

Invariant: both sides see the same numbers; gradients are given, so that an error is not fed back through a model.
"""

from __future__ import annotations

from typing import Any

from .. import _oracle
from .._oracle import assert_same, convert_argument, from_oracle, load, to_oracle, tree_map
from .._subject import subject, submodule

optim = submodule("optim")

NAMES = (
    "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD SparseAdam"
).split()
# What takes gradients as they come; LBFGS asks a closure, SparseAdam needs sparse ones.
STEPPED = [name for name in NAMES if name not in ("LBFGS", "SparseAdam")]
FUSED = ("Adagrad", "Adam", "AdamW", "SGD")
SHAPES: tuple[tuple[int, ...], ...] = ((3, 2), (5,), (), (2, 1, 4), (0,))
MATRICES: tuple[tuple[int, ...], ...] = ((3, 2), (2, 5), (4, 4))


def info(name: str) -> Any:
    return next(each for each in _oracle.load_optim_db() if each.optim_cls.__name__ == name)


def inputs(name: str, dtype: Any = None, device: str = "cpu") -> list[dict[str, Any]]:
    return [each.kwargs for each in info(name).optim_inputs_func(device=device, dtype=dtype)]


def shapes_for(name: str) -> tuple[tuple[int, ...], ...]:
    # The mean of no elements is no number: Adafactor divides by their count.
    return MATRICES if name == "Muon" else SHAPES[:-1] if name == "Adafactor" else SHAPES


class Pair:
    def __init__(self, name: str, dtype: str, options: dict[str, Any], device: str = "cpu", seed: int = 0) -> None:
        self.oracle = load()
        self.name, self.device = name, device
        self.random = self.oracle.Generator().manual_seed(seed)
        dt = getattr(self.oracle, dtype)
        self.theirs = [self.oracle.nn.Parameter(self.numbers(shape, dt)) for shape in shapes_for(name)]
        self.ours = [subject.nn.Parameter(from_oracle(p, requires_grad=False).to(device)) for p in self.theirs]
        self.fused_sgd = name == "SGD" and bool(options.get("fused"))
        mine = convert_argument(options)
        self.reference = getattr(self.oracle.optim, name)(self.theirs, **options)
        self.subject = getattr(optim, name)(self.ours, **mine)

    def numbers(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.oracle.randn(shape, generator=self.random, dtype=self.oracle.float64).to(dtype)

    def steps(self, count: int = 10) -> None:
        for number in range(count):
            for i, (mine, theirs) in enumerate(zip(self.ours, self.theirs)):
                # One parameter has no gradient at first; PyTorch's fused SGD then misses its buffer.
                if number == 0 and i == 1 and not self.fused_sgd:
                    continue
                theirs.grad = self.numbers(theirs.shape, theirs.dtype)
                mine.grad = from_oracle(theirs.grad).to(self.device)
            self.reference.step()
            self.subject.step()

    def compare(self, rtol: float, atol: float, where: str) -> None:
        for mine, theirs in zip(self.ours, self.theirs):
            assert_same(mine.detach().cpu(), theirs.detach(), rtol, atol, where)
        compare_states(self.subject.state_dict(), self.reference.state_dict(), rtol, atol, where)


def compare_states(mine: dict[str, Any], theirs: dict[str, Any], rtol: float, atol: float, where: str) -> None:
    assert list(mine) == list(theirs), where
    for left, right in zip(mine["param_groups"], theirs["param_groups"]):
        assert list(left) == list(right), where
        for key in right:
            _same_value(left[key], right[key], rtol, atol, f"{where}: {key}")
    assert list(mine["state"]) == list(theirs["state"]), where
    for number in theirs["state"]:
        left, right = mine["state"][number], theirs["state"][number]
        assert list(left) == list(right), where
        for key in right:
            _same_value(left[key], right[key], rtol, atol, f"{where}: state {number} {key}")


def _same_value(mine: Any, theirs: Any, rtol: float, atol: float, where: str) -> None:
    if _oracle.is_subject_tensor(mine):
        mine = mine.detach().cpu()
    if isinstance(theirs, (list, tuple)):
        assert type(mine) is type(theirs) and len(mine) == len(theirs), where
        for left, right in zip(mine, theirs):
            _same_value(left, right, rtol, atol, where)
    elif isinstance(theirs, float):
        assert abs(mine - theirs) <= atol + rtol * abs(theirs), where
    else:
        assert_same(mine, theirs, rtol, atol, where)


def to_theirs(value: Any) -> Any:
    """A state of ours as PyTorch's optimiser takes it."""
    return tree_map(lambda t: to_oracle(t) if _oracle.is_subject_tensor(t) else t, value, _leaf)


def to_mine(value: Any) -> Any:
    return tree_map(lambda t: from_oracle(t) if _oracle.is_oracle_tensor(t) else t, value, _leaf)


def _leaf(value: Any) -> bool:
    return not isinstance(value, (list, tuple, dict))
