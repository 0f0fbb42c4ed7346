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
    base = submodule("_ops.rules.base")
    asked: list[Any] = []

    def written(t: Any, n: Any, other: Any) -> Any:
        asked.append(n)
        if n == 0:
            raise RuntimeError("none")
        return [base.of_tensor(t), base.spec((1,) if other is None else other.shape, torch.int64)]

    kept = base.KeptRule(written)

    def rule(t: Any, n: Any, other: Any = None) -> Any:
        first, second = kept.infer((t, n, other))
        return first.shape, first.stride, first.dtype, first.device, second.shape

    x = torch.zeros(2, 3)
    assert rule(x, 1) == rule(torch.ones(2, 3), 1) == ((2, 3), (3, 1), torch.float32, torch.device("cpu"), (1,))
    assert asked == [1]
    assert rule(x.t(), 1)[0] == (3, 2)
    assert rule(x.double(), 1)[2] is torch.float64
    assert rule(torch.zeros(3, 2).t(), 1)[1] == (1, 2)
    assert rule(x.to("meta"), 1)[3] == torch.device("meta")
    assert rule(x, 1, torch.ones(7))[4] == (7,)
    assert rule(x, 1, torch.zeros(7))[4] == (7,) and rule(x, 1, torch.zeros(8))[4] == (8,)
    assert len(asked) == 7
    for _ in range(2):
        with pytest.raises(RuntimeError):
            rule(x, 0)
        assert rule(x, [2])[0] == (2, 3)  # what has no hash is asked every time
    assert asked[7:] == [0, [2], 0, [2]]
    for i in range(3, 2000):
        assert rule(x, i) == rule(x, i)
    assert asked[11:] == list(range(3, 2000))


def test_the_same_objects_with_other_metadata() -> None:
    F = torch.nn.functional
    x, w, size, pads = torch.arange(32.0).reshape(1, 2, 4, 4), torch.ones(2, 2, 3, 3), (2, 2), (1, 1, 1, 1)
    for _ in range(2):
        assert F.avg_pool2d(x, size).shape == (1, 2, 2, 2) and F.max_pool2d(x, size).shape == (1, 2, 2, 2)
        assert F.avg_pool2d(x, size, 1).shape == (1, 2, 3, 3) and F.avg_pool2d(x, size, (1, 2)).shape == (1, 2, 3, 2)
        assert F.avg_pool2d(x, size, 2, 1).sum() != F.avg_pool2d(x, size, 2, 1, False, False).sum()
        assert F.pad(x, pads, "reflect").shape == F.pad(x, pads, "replicate").shape == (1, 2, 6, 6)
        assert not torch.equal(F.pad(x, pads, "reflect"), F.pad(x, pads, "replicate"))
        assert F.pad(x, (1, 0, 0, 0), "reflect").shape == (1, 2, 4, 5)
        assert F.pad(x, (0, 1, 0, 0), "reflect")[0, 0, 3, 4] == 14
        assert F.conv2d(x, w).shape == (1, 2, 2, 2) and F.conv2d(x, w, padding=1).shape == (1, 2, 4, 4)
        assert F.conv2d(x, w, stride=2).shape == (1, 2, 1, 1) and F.conv_transpose2d(x, w).shape == (1, 2, 6, 6)
        assert F.conv2d(x, w[:, :1], groups=2).shape == (1, 2, 2, 2)
    before = F.avg_pool2d(x, size)
    x.resize_(1, 2, 2, 8)
    assert F.avg_pool2d(x, size).shape == (1, 2, 1, 4) and before.shape == (1, 2, 2, 2)


def test_pooling_after_another_layout_and_dtype() -> None:
    x = torch.arange(32.0).reshape(1, 2, 4, 4)
    pool = torch.nn.functional.avg_pool2d
    for given in (x, x.contiguous(memory_format=torch.channels_last), x.double(), x.half(), x[0]):
        out = pool(given, 2)
        assert out.dtype is given.dtype
        assert out.flatten().tolist() == [2.5, 4.5, 10.5, 12.5, 18.5, 20.5, 26.5, 28.5]
        assert out.is_contiguous() == given.is_contiguous()
    assert pool(x, 2, 1).shape == (1, 2, 3, 3) and pool(x, 2, ceil_mode=True).shape == (1, 2, 2, 2)


def test_layers_after_another_layout_dtype_and_device() -> None:
    x, w = torch.rand(2, 4, 5, 5), torch.rand(4, 4, 3, 3)
    running = torch.zeros(4), torch.ones(4)
    F = torch.nn.functional
    last = x.contiguous(memory_format=torch.channels_last)
    for _ in range(2):
        for given in (x, last, x.double(), x.to("meta")):
            kind: dict[str, Any] = dict(dtype=given.dtype, device=given.device)
            found = [
                F.conv2d(given, w.to(**kind), padding=1),
                F.batch_norm(given, *(r.to(**kind) for r in running)),
                F.group_norm(given, 2),
                F.pad(given, (1, 1)),
            ]
            for out in found:
                assert out.dtype is given.dtype and out.device == given.device
                assert out.is_contiguous() == given.is_contiguous()
        with pytest.raises(RuntimeError, match="expected input"):
            F.conv2d(x[:, :3], w)
        with pytest.raises(RuntimeError, match="running_mean should contain 3 elements"):
            F.batch_norm(x[:, :3], *running)


def test_products_written_into_other_memory() -> None:
    a, b, v = torch.rand(3, 4), torch.rand(4, 5), torch.rand(4)
    wide = torch.zeros(3, 10)
    out = wide[:, ::2]
    assert torch.equal(torch.mm(a, b, out=out), a @ b) and out.stride() == (10, 2)
    c = torch.rand(3, 5)
    assert torch.allclose(torch.addmm(c, a, b, out=out), c + a @ b)
    assert torch.equal(wide[:, 1::2], torch.zeros(3, 5))
    line = torch.zeros(6)
    assert torch.allclose(torch.mv(a, v, out=line[::2]), a @ v)
    assert torch.allclose(torch.addmv(torch.ones(3), a, v, out=line[::2]), 1 + a @ v)
    assert line[1::2].tolist() == [0, 0, 0]
    batch = torch.zeros(2, 5, 3).transpose(1, 2)
    assert torch.allclose(torch.bmm(a.expand(2, 3, 4), b.expand(2, 4, 5), out=batch), (a @ b).expand(2, 3, 5))
    square = torch.rand(4, 4)
    want = square + square @ square
    # PyTorch writes where it still reads.
    assert IS_ORACLE or torch.allclose(torch.addmm(square, square, square, out=square), want)


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
