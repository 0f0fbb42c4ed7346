"""The report of `make parity`: it asks what it says, and counts a missing operator as failing."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from . import report

pytestmark = [pytest.mark.oracle, mindtorch_only]


def info_of(name: str) -> Any:
    return next(info for info in _oracle.load_op_db() if info.name == name)


@pytest.mark.parametrize("category", report.CATEGORIES)
def test_an_operator_passes_in_every_category(category: str) -> None:
    answer = report.ask(info_of("cat"), category)
    assert answer["total"] > 3
    if category != "other dtypes":  # complex32 is no dtype here
        assert answer["passed"] == answer["total"], answer["reason"]


def test_a_missing_operator_fails_all_its_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    info = info_of("atan2")
    monkeypatch.setattr(info, "name", "no_such_name")
    answer = report.ask(info, "forward float32")
    assert answer["total"] > 3 and answer["passed"] == 0
    assert answer["reason"] == "no no_such_name"
    text = report.listing({0: "no_such_name"}, {0: {"forward float32": answer}}, ["forward float32"])
    assert text.startswith("missing names (1)\n    no_such_name\n")


def test_families() -> None:
    assert [report.family(name) for name in ("add", "nn.functional.relu", "linalg.svd", "signal.windows.hann")] == [
        "torch",
        "nn.functional",
        "linalg",
        "signal",
    ]


def test_the_table_counts_samples_and_operators() -> None:
    some, whole = {"passed": 3, "total": 4, "reason": "x"}, {"passed": 1, "total": 1, "reason": ""}
    results = {0: {"meta": some}, 1: {"meta": whole}}
    lines = report.table({0: "add", 1: "fft.fft"}, results, ["meta"]).splitlines()
    assert lines[2].split() == ["all", "80.0", "%"] and lines[3].split() == ["torch", "75.0", "%"]
    assert any(line.split() == ["all", "50.0", "%"] for line in lines)
