"""Counts of floating-point operations, by operator and module, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

flop_counter: Any = submodule("utils.flop_counter")


def perceptron(t: Any) -> None:
    net = t.nn.Sequential(t.nn.Linear(4, 6), t.nn.ReLU(), t.nn.Sequential(t.nn.Linear(6, 3), t.nn.Linear(3, 2)))
    net(t.ones(5, 4)).sum().backward()


def convolutions(t: Any) -> None:
    x = t.ones(2, 4, 9, 9, requires_grad=True)
    y = t.nn.Conv2d(4, 6, 3, padding=1)(x)
    z = t.nn.ConvTranspose2d(6, 4, 2, stride=2)(y)
    t.nn.Conv2d(4, 4, 3, groups=2)(z).sum().backward()
    t.nn.Conv1d(3, 5, 2)(t.ones(2, 3, 8)).sum().backward()


def products(t: Any) -> None:
    a = t.ones(2, 3, 4, requires_grad=True)
    (a @ t.ones(4, 5)).sum().backward()
    t.bmm(a, t.ones(2, 4, 5)).sum().backward()
    t.baddbmm(t.ones(2, 3, 5), a, t.ones(2, 4, 5))
    t.einsum("bij,bjk->bik", a, t.ones(2, 4, 3))
    t.ones(3, 4).addmm(t.ones(3, 2), t.ones(2, 4))
    t.addmm(t.ones(4), t.ones(3, 2), t.ones(2, 4)).relu()


PROGRAMS: list[Callable[[Any], None]] = [perceptron, convolutions, products]


def counts(library: Any, module: Any, program: Callable[[Any], None]) -> dict[str, dict[str, int]]:
    with module.FlopCounterMode(display=False) as counter:
        program(library)
    assert counter.get_total_flops() == sum(counter.get_flop_counts()["Global"].values())
    return {name: {str(op): n for op, n in found.items()} for name, found in counter.get_flop_counts().items()}


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_counts_are_the_oracles(program: Callable[[Any], None]) -> None:
    oracle = _oracle.load()
    from importlib import import_module

    theirs = counts(oracle, import_module("torch.utils.flop_counter"), program)
    assert counts(torch, flop_counter, program) == theirs


def test_a_product() -> None:
    with flop_counter.FlopCounterMode(display=False) as counter:
        torch.ones(3, 4) @ torch.ones(4, 5)
        torch.ones(3) + 1
    assert counter.get_total_flops() == 2 * 3 * 4 * 5
    assert counter.get_flop_counts() == {"Global": {torch.ops.aten.mm: 120}}


@mindtorch_only  # the oracle's table needs a package that need not be there
def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(40, 60), torch.nn.Linear(60, 30))
    with flop_counter.FlopCounterMode() as counter:
        net(torch.ones(5, 40))
        torch.ones(10, 10) @ torch.ones(10, 10)
    assert capsys.readouterr().out == counter.get_table() + "\n"
    assert counter.get_table() == (
        "Module              FLOP    % Total\n"
        "---------------  -------  ---------\n"
        "Global           44.000K    100.00%\n"
        " - aten.addmm    42.000K     95.45%\n"
        " - aten.mm        2.000K      4.55%\n"
        " Sequential      42.000K     95.45%\n"
        "  - aten.addmm   42.000K     95.45%\n"
        "  Sequential.0   24.000K     54.55%\n"
        "   - aten.addmm  24.000K     54.55%\n"
        "  Sequential.1   18.000K     40.91%\n"
        "   - aten.addmm  18.000K     40.91%"
    )
    with flop_counter.FlopCounterMode(display=False) as counter:
        torch.ones(3) + 1
    assert counter.get_table() == (
        "Module      FLOP    % Total\n--------  ------  ---------\nGlobal         0         0%"
    )


def test_formulas_of_users() -> None:
    def mine(a_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
        return int(a_shape[0]) * 1000

    with flop_counter.FlopCounterMode(display=False, custom_mapping={torch.ops.aten.add: mine}) as counter:
        torch.ones(3) + torch.ones(3)
    assert counter.get_total_flops() == 3000
    with pytest.raises(RuntimeError, match="duplicate registrations for aten.mm"):
        flop_counter.register_flop_formula(torch.ops.aten.mm)(mine)
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        flop_counter.register_flop_formula(torch.ops.aten.mm.default)(mine)
    with pytest.warns(UserWarning, match="mods argument is not needed anymore"):
        flop_counter.FlopCounterMode(torch.nn.ReLU())


def test_the_modules_being_run() -> None:
    tracker = submodule("utils.module_tracker").ModuleTracker()
    seen: list[set[str]] = []

    class Inner(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            seen.append(set(tracker.parents))
            y = x * 2
            y.register_hook(lambda g: seen.append({*tracker.parents, f"backward {tracker.is_bw}"}))
            return y * 1

    net = torch.nn.Sequential(Inner(), torch.nn.ReLU())
    with tracker:
        net(torch.ones(2, requires_grad=True)).sum().backward()
        assert not tracker.is_bw
    assert seen == [{"Global", "Sequential", "Sequential.0"}, {"Global", "Sequential", "Sequential.0", "backward True"}]
