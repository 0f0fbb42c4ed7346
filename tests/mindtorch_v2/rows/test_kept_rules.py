"""Answers that are kept: the same as those that were asked again."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch


@pytest.mark.skipif(IS_ORACLE, reason="PyTorch has no such functions")
def test_rules_are_asked_once_for_the_same_metadata() -> None:
    kept = submodule("_ops.kept")
    asked: list[Any] = []

    @kept.kept_rule
    def rule(t: Any, n: Any) -> Any:
        asked.append(n)
        if n == 0:
            raise RuntimeError("none")
        return (t.shape, t.stride(), t.dtype, n)

    x = torch.zeros(2, 3)
    assert rule(x, 1) == rule(torch.ones(2, 3), 1) == ((2, 3), (3, 1), torch.float32, 1)
    assert asked == [1]
    assert rule(x.t(), 1)[0] == (3, 2)
    assert rule(x.double(), 1)[2] is torch.float64
    assert rule(torch.zeros(3, 2).t(), 1)[1] == (1, 2)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            rule(x, 0)
        assert rule(x, [2]) == ((2, 3), (3, 1), torch.float32, [2])  # what has no hash is asked every time
    assert asked[4:] == [0, [2], 0, [2]]
    for i in range(3, 2000):
        assert rule(x, i)[3] == i


def test_pooling_after_another_layout_and_dtype() -> None:
    x = torch.arange(32.0).reshape(1, 2, 4, 4)
    pool = torch.nn.functional.avg_pool2d
    for given in (x, x.contiguous(memory_format=torch.channels_last), x.double(), x.half(), x[0]):
        out = pool(given, 2)
        assert out.dtype is given.dtype
        assert out.flatten().tolist() == [2.5, 4.5, 10.5, 12.5, 18.5, 20.5, 26.5, 28.5]
        assert out.is_contiguous() == given.is_contiguous()
    assert pool(x, 2, 1).shape == (1, 2, 3, 3) and pool(x, 2, ceil_mode=True).shape == (1, 2, 2, 2)


def test_limits_are_known_again() -> None:
    for name in ("float32", "float16", "complex64"):
        info = torch.finfo(getattr(torch, name))
        again = torch.finfo(getattr(torch, name))
        assert (info.eps, info.max, info.min, info.tiny) == (again.eps, again.max, again.min, again.tiny)
        assert info.min == -info.max
        assert IS_ORACLE or pickle.loads(pickle.dumps(info)) == info == copy.deepcopy(info)
    assert torch.finfo(torch.complex64) == torch.finfo(torch.float32) != torch.finfo(torch.float64)
    with pytest.raises(AttributeError):
        info.eps = 1.0
    with pytest.raises(TypeError):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError):
        torch.finfo([])
