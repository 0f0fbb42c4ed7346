"""`FileCheck`: what it accepts, and its errors with the places they show, as the oracle's."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from .._subject import submodule

FileCheck = submodule("testing").FileCheck

GRAPH = """graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::add(%x, %x, %1)
  %3 : Tensor = aten::mul(%2, %x)
  %4 : Tensor = aten::add(%3, %x, %1)
  return (%4)
"""
Checks = list[tuple[Any, ...]]


def apply(kind: Any, checks: Checks, *texts: str) -> str:
    check = kind()
    try:
        for name, *arguments in checks:
            getattr(check, name)(*arguments)
        check.run(*texts)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "passed"


PASSING: list[Checks] = [
    [("check", "aten::add"), ("check", "aten::mul"), ("check", "aten::add"), ("check", "return")],
    [("check_count", "aten::add", 2)],
    [("check_count", "aten::add", 2, True)],
    [("check_not", "aten::div")],
    [("check", "aten::mul"), ("check_not", "aten::mul"), ("check", "return")],
    [("check", "aten::mul"), ("check_same", "%2"), ("check_next", "aten::add")],
    [("check_dag", "aten::mul"), ("check_dag", "aten::add"), ("check", "return")],
    [("check_regex", r"aten::m[ul]+\(%\d")],
    [("check_count", "aten::div", 0, True)],
]
FAILING: list[Checks] = [
    [],
    [("check", "aten::div")],
    [("check", "aten::mul"), ("check", "prim::Constant")],
    [("check_count", "aten::add", 3)],
    [("check_count", "aten::add", 1, True)],
    [("check_not", "aten::mul")],
    [("check", "%1"), ("check_not", "aten::mul"), ("check", "return")],
    [("check", "prim"), ("check_same", "aten")],
    [("check", "prim"), ("check_next", "mul")],
    [("check", "return"), ("check_next", "more")],
    [("check_dag", "aten::mul"), ("check_dag", "aten::div")],
    [("check_dag", "aten::mul"), ("check_not", "%4"), ("check_dag", "return")],
    [("check_source_highlighted", "aten")],
    [("check_regex", r"aten::d+\(")],
    [("check", 'a "quoted"\t\\ text\n')],
]


@pytest.mark.parametrize("checks", PASSING, ids=str)
def test_passing(checks: Checks) -> None:
    assert apply(FileCheck, checks, GRAPH) == "passed"


@pytest.mark.parametrize("checks", FAILING, ids=str)
def test_failing(oracle: ModuleType, checks: Checks) -> None:
    mine = apply(FileCheck, checks, GRAPH)
    assert mine == apply(oracle.testing.FileCheck, checks, GRAPH) and mine.startswith("RuntimeError")


def test_an_error_shows_the_place() -> None:
    assert apply(FileCheck, [("check_not", "mul")], GRAPH) == (
        'RuntimeError: Expected to not find "mul" but found it\n'
        "  %1 : int = prim::Constant[value=1]()\n"
        "  %2 : Tensor = aten::add(%x, %x, %1)\n"
        "  %3 : Tensor = aten::mul(%2, %x)\n"
        "                      ~~~ <--- HERE\n"
        "  %4 : Tensor = aten::add(%3, %x, %1)\n"
        "  return (%4)\n"
        "From CHECK-NOT: mul\n"
    )


def test_highlights() -> None:
    text = "    return torch.foo(x)\n           ~~~~~~~~~ <--- HERE\n"
    assert apply(FileCheck, [("check_source_highlighted", "torch.foo")], text) == "passed"
    assert "highlighted but it is not" in apply(FileCheck, [("check_source_highlighted", "return")], text)
    assert 'not find "~"' in apply(FileCheck, [("check_source_highlighted", "torch")], text)


def test_checks_that_never_ran_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    check = FileCheck().check("a").check_count("b", 2, exactly=True)
    del check
    printed = capfd.readouterr().out
    assert printed == "You have not run this instance of FileCheck!\nFileCheck checks:\n" + (
        "\tCHECK: a\n\tCHECK-COUNT-2: b\n\tCHECK-NOT: b\n"
    )


METHODS = ["check", "check_not", "check_same", "check_next", "check_count", "check_dag", "check_source_highlighted"]


def test_random_checks(oracle: ModuleType) -> None:
    """Small alphabets, so that matches, gaps and marks meet in every way."""
    choose = random.Random(11)
    passed = 0
    for _ in range(4000):
        text = "".join(
            choose.choice(["a", "b", "foo", "~~~", "  ", "\n", "\n", " ", "\t", "~", "ab"])
            for _ in range(choose.randint(0, 25))
        )
        checks: Checks = []
        for _ in range(choose.randint(1, 4)):
            method, word = choose.choice([*METHODS, "check_regex"]), choose.choice("a b foo ~ \n ab zzz ~~".split(" "))
            count = (choose.randint(1, 3), choose.random() < 0.4) if method == "check_count" else ()
            checks.append((method, word, *count))
        mine = apply(FileCheck, checks, text)
        assert mine == apply(oracle.testing.FileCheck, checks, text), (checks, text)
        passed += mine == "passed"
    assert passed > 300


def test_random_instructions(oracle: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    """Checks written as lines of a text."""
    choose = random.Random(12)
    kinds = ": |-NEXT: |-SAME: |-NOT: |-DAG: |-COUNT-2: |-COUNT-EXACTLY-1: |-SOURCE-HIGHLIGHTED: |-REGEX: ".split("|")
    kinds += ["-FOO: ", "-COUNT-1 ", "-COUNT-x: ", ""]
    for _ in range(3000):
        lines = [
            choose.choice(["# ", "#", "#  \t ", "x # ", "// "])
            + "CHECK"
            + choose.choice(kinds[:9] if choose.random() < 0.95 else kinds)
            + choose.choice(["a", "b", "foo", "a ", ""])
            + choose.choice(["\n", "\n", "\nother\n", ""])
            for _ in range(choose.randint(0, 4))
        ]
        text = "".join(choose.choice(["a", "b", "foo", "\n", " ", "~"]) for _ in range(choose.randint(0, 12)))
        mine = apply(FileCheck, [], "".join(lines), text)
        assert mine == apply(oracle.testing.FileCheck, [], "".join(lines), text), (lines, text)
    capfd.readouterr()
