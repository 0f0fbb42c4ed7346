"""Hostile calls answer as PyTorch does, or as the table says ours does, and no process dies of them."""

from __future__ import annotations

import pytest

from . import _table

# Groups in which every call may be made with its tensors elsewhere: only sizes and words are at stake.
ELSEWHERE = ("views",)


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
