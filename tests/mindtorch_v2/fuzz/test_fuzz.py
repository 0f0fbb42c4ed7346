"""The fuzzer's short part: programs from seeds fixed here, and that the fuzzer sees what it is for.

Invariant: neither clock nor chance decides which programs run; `python -m tests.mindtorch_v2.fuzz` runs new ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .._subject import mindtorch_only
from ._alone import singled_out
from ._driver import Fuzzer, Settings, ask
from ._judge import Outcome, agrees, plain_name, reason

SEEDS = range(1500)
# They read 2**62 elements of an expanded tensor, which takes PyTorch as long.
LONG: tuple[int, ...] = ()


def settings(room: Path, seconds: float = 60.0, devices: str = "cpu,meta,npu") -> Settings:
    return Settings(room, devices, memory=1000, seconds=seconds, batch=500, jobs=1)


@mindtorch_only
def test_no_program_shows_the_inside(tmp_path: Path) -> None:
    fuzzer = Fuzzer(settings(tmp_path)._replace(skipped=LONG), present=False, compare=False)
    fuzzer.run(SEEDS.start, len(SEEDS), deadline=0.0)
    assert fuzzer.programs == len(SEEDS)
    assert fuzzer.clean, fuzzer.report()


@mindtorch_only
def test_crashes_hangs_and_refusals_are_told_apart(tmp_path: Path) -> None:
    texts = [
        "r = torch.ones(3)",
        "import os; os.abort()",
        "r = torch.ones(2) + torch.ones(3)",
        "while True: pass",
        "r = bytearray(2**33)",
        "r = torch.zeros(3)\nr = r.sum()",
    ]
    outcomes = ask(settings(tmp_path, 3.0, "cpu"), [(0, "", text) for text in texts], oracle=False)
    assert [outcome.kind for outcome in outcomes] == ["ok", "crash", "RuntimeError", "hang", "MemoryError", "ok"]
    assert outcomes[2].text.startswith("The size of tensor a (2) must match the size of tensor b (3)")
    assert list(tmp_path.iterdir()) == []


def test_the_closing_lines_count_what_was_caught_apart(tmp_path: Path) -> None:
    fuzzer = Fuzzer(settings(tmp_path), present=False, compare=False)
    assert fuzzer.clean and fuzzer.closing()[-1] == "clean"
    net = "sin(): there is no result for these arguments: self=float32[]"
    fuzzer.judge([((1, "sin", "r = torch.sin(a)"), Outcome("RuntimeError", net))])
    assert not fuzzer.findings and not fuzzer.clean
    fuzzer.judge([((2, "cos", "r = torch.cos(a)"), Outcome("KeyError", "'float33'"))])
    assert fuzzer.closing() == [
        "0 programs",
        "findings that a user sees: 1 (crashes 0, hangs 0, words of the inside 1)",
        "rules that lack a check, caught by the last net: 1",
        "not clean",
    ]


@pytest.mark.parametrize(
    "kind, text, found",
    [
        ("SystemError", "", True),
        ("KeyError", "'float33'", True),
        ("IndexError", "tuple index out of range", True),
        ("OverflowError", "int too large to convert to i64", True),
        ("AttributeError", "'str' object has no attribute '_dtype'", True),
        ("TypeError", "must be real number, not MetaStorage", True),
        ("ValueError", "could not broadcast input array from shape (2,) into shape (3,)", True),
        ("RuntimeError", "aten::sin(): there is no result for these arguments: self=float32[]", True),
        ("RuntimeError", "Unlike NumPy, torch.sign is not intended to support complex numbers.", False),
        ("IndexError", "Dimension out of range (expected to be in range of [-1, 0], but got 2)", False),
    ],
)
def test_words_of_the_inside_are_findings(kind: str, text: str, found: bool) -> None:
    verdict = reason(Outcome(kind, text), "r = torch.ones(3)")
    assert (verdict is not None and verdict[1]) == found


def test_a_program_that_speaks_of_numpy_may_hear_of_it() -> None:
    outcome = Outcome("TypeError", "nonzero(): argument 'out' (position 2) must be Tensor, not ndarray")
    assert reason(outcome, "r = torch.nonzero(a, out=numpy.ones(3))") is None
    assert reason(outcome, "r = torch.nonzero(a)") is not None


def test_pytorch_excuses_what_it_says_too() -> None:
    mine = Outcome("AttributeError", "'int' object has no attribute 'dim'")
    assert agrees(mine, mine)
    assert not agrees(mine, Outcome("TypeError", "argument 'input' (position 1) must be Tensor, not int"))
    miscounted = Outcome("TypeError", "f() takes 2 positional arguments but 3 were given")
    assert agrees(miscounted, Outcome("RuntimeError", "Boolean value of Tensor with more than one value is ambiguous"))
    assert not agrees(miscounted, Outcome("ok"))
    assert agrees(Outcome("hang"), Outcome("hang")) and not agrees(Outcome("hang"), Outcome("ok"))


def test_arguments_are_singled_out() -> None:
    heads = ["a = torch.ones(2**62)", "b = torch.rand((3,))"]
    plain = ["a = torch.ones((2, 3))", "b = torch.rand((3,))"]
    small, sample = "torch.ones((2, 3))", (["torch.ones((4,))", "3"], {"dims": "0"})
    made = singled_out("\n".join([*heads, "r = torch.roll(a, 2**70, dims=[None, 2])"]), [sample])
    assert [each.split("\n") for each in made] == [
        [*heads, "r = torch.roll(a, 3, dims=0)"],
        [*heads, "r = torch.roll(a, 1)"],
        [*plain, "r = torch.roll(torch.ones((4,)), 2 ** 70, dims=0)"],
        [*plain, f"r = torch.roll({small}, 2 ** 70)"],
        [*plain, "r = torch.roll(torch.ones((4,)), 3, dims=[None, 2])"],
        [*plain, f"r = torch.roll({small}, 1, dims=[None, 2])"],
    ]
    assert singled_out("r = a[None]", []) == [] == singled_out("r = torch.neg(a)", [])


@pytest.mark.parametrize(
    "about, name",
    [("ops.aten.add_.Tensor", "add"), ("Tensor.add", "add"), ("Tensor.__add__", "__add__"), ("a + {o}", "a + {o}")],
)
def test_forms_of_one_function_have_one_name(about: str, name: str) -> None:
    assert plain_name(about) == name
