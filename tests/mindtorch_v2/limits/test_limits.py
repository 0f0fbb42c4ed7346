"""Hostile calls answer as PyTorch does, or as the table says ours does, and no process dies of them."""

from __future__ import annotations

import pytest

from .. import _oracle
from . import _table

QUICK = (
    "data",
    "differences",
    "edges",
    "elements",
    "hostile",
    "ints",
    "mixed",
    "operators",
    "schemas",
    "sizes",
    "views",
)


def differences(library: str, device: str, calls: list[_table.Call]) -> list[str]:
    answers = _table.run(library, device, [call.source for call in calls])
    return [
        f"{call.source}\n  expected {expected}\n  got      {answer}"
        for call, answer in zip(calls, answers, strict=True)
        if answer != (expected := call.answer if library == "torch" else call.expected)
    ]


@pytest.mark.parametrize("group", _table.groups())
def test_answers(group: str) -> None:
    found = differences("mindtorch_v2", "cpu", _table.read(group))
    assert not found, "\n".join(found)


@pytest.mark.oracle
@pytest.mark.parametrize("group", QUICK)
def test_written_answers_are_pytorchs(group: str) -> None:
    """Where PyTorch crashes, does not answer or shows a line of its own source there is nothing to hold it to."""
    _oracle.load()
    calls = [
        c for c in _table.read(group) if not any(x in str(c.answer) for x in ("ended with", "no answer", "/pytorch/"))
    ]
    found = differences("torch", "cpu", calls)
    assert not found, "\n".join(found)
