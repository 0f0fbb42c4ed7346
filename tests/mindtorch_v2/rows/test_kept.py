"""Answers that rows keep for sizes they were asked about before."""

from __future__ import annotations

from typing import Any

import pytest

from mindtorch_v2._ops.kept import kept

from .._subject import subject as torch


def test_an_answer_is_kept() -> None:
    asked: list[Any] = []

    @kept
    def total(sizes: Any) -> int:
        asked.append(sizes)
        return int(sum(sizes))

    assert [total((1, 2)), total((1, 2)), total((2, 2))] == [3, 3, 4]
    assert asked == [(1, 2), (2, 2)]
    # What has no hash is asked every time.
    assert [total([1, 2]), total([1, 2])] == [3, 3]
    assert asked[2:] == [[1, 2], [1, 2]]


def test_what_raises_is_asked_again() -> None:
    x = torch.rand(1, 1, 4, 4)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="Output size is too small"):
            torch.nn.functional.max_pool2d(x, 9)
        assert torch.nn.functional.max_pool2d(x, 2).shape == (1, 1, 2, 2)
        assert torch.nn.functional.max_pool2d(x, 2, ceil_mode=True, padding=1).shape == (1, 1, 3, 3)


def test_out_is_looked_at_in_every_call() -> None:
    a, b = torch.ones(2, 2), torch.ones(2, 2)
    for _ in range(2):
        out = torch.empty(2, 2)
        assert torch.add(a, b, out=out) is out and out.tolist() == [[2, 2], [2, 2]]
        with pytest.raises(TypeError):
            torch.add(a, b, out=3)
        with pytest.raises(RuntimeError, match="can't be cast"):
            torch.add(a, b, out=torch.empty(2, 2, dtype=torch.int64))
