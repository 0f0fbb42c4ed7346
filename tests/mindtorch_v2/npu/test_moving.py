"""Indexing, sorting and moving on the NPU against the CPU: keys of every kind, and what the vendor's functions cannot.

Invariant: a program gives on `npu` what it gives on `cpu`, or the same error.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import mindtorch_v2 as torch

from .. import _npu
from . import _control

Program = Callable[[Callable[..., Any]], Any]
EMPTY: list[int] = []


def on(device: str, program: Program) -> Any:
    """What a program of `T(data, dtype=None)` gives on a device, as Python numbers, or its error."""

    def make(data: Any, dtype: Any = None) -> Any:
        return torch.tensor(data, dtype=dtype, device=device)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(program(make))
    except Exception as error:  # the two devices' errors are compared
        return f"{type(error).__name__}: {error}"


def plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.cpu().tolist()
    return [plain(item) for item in value] if isinstance(value, (tuple, list)) else value


def written(target: Any, write: Callable[[Any], Any]) -> Any:
    write(target)
    return target, target._version


PROGRAMS: dict[str, Program] = {
    # 0-dim indices: the vendor's have at least one dimension
    "index_put point": lambda T: T([0.0] * 4).index_put_((T(1),), T(5.0)),
    "index_put point row": lambda T: T([[0.0] * 3] * 4).index_put_((T(1),), T([0.0, 1, 2])),
    "index_put point and row": lambda T: T([[0.0] * 3] * 4).index_put_((T(1), T([0, 2])), T([1.0, 2])),
    "index_put apart": lambda T: T([[[0.0] * 2] * 3] * 2).index_put_((T(1), None, T(0)), T([1.0, 2, 3])),
    "take from the end": lambda T: T([0.0, 1, 2, 3, 4]).take(T([-1, 0, -5])),
    "take point": lambda T: T([0.0, 1, 2]).take(T(-1)),
    "take of a number": lambda T: T(5.0).take(T([0, -1])),
    "index_fill from the end": lambda T: T([0.0, 1, 2, 3, 4]).index_fill(0, T([-1, 1]), T(7.0)),
    "index_fill point": lambda T: T([0.0, 1, 2]).index_fill(0, T(2), 7),
    "index_fill of a number": lambda T: T(5.0).index_fill(0, T([0]), 2.0),
    # no index at all: the vendor would read it as a dimension that is left alone
    "index_fill nothing": lambda T: T([0.0, 1, 2]).index_fill(0, T(EMPTY, torch.int64), 7),
    "index_put nothing": lambda T: T([0.0, 1, 2]).index_put_((T(EMPTY, torch.int64),), T(7.0)),
    "index_copy nothing": lambda T: T([0.0, 1]).index_copy_(0, T(EMPTY, torch.int64), T(EMPTY, torch.float32)),
    "masked_scatter nothing": lambda T: T([0.0, 1]).masked_scatter(T([False, False]), T(EMPTY, torch.float32)),
    # numbers as tensors of one dimension
    "index_copy of a number": lambda T: T(6.0).index_copy(0, T([0]), T([1.0])),
    "index_add of a number": lambda T: T(6.0).index_add(0, T(0), T(2.0)),
    "index_select of a number": lambda T: T(6.0).index_select(0, T(0)),
    "gather of a number": lambda T: T(6.0).gather(0, T([0, 0])),
    "scatter of a number": lambda T: T(6.0).scatter(0, T(0), 3.0),
    "stack of numbers": lambda T: torch.stack([T(1), T(2)]),
    "sort of a number": lambda T: T(3).sort(),
    # what is read is what is written
    "scatter_add_ of itself": lambda T: (lambda x: x.scatter_add_(0, T([0, 0, 1, 2]), x))(T([0.0, 1, 2, 3])),
    "index_copy_ of itself": lambda T: (lambda x: x.index_copy_(0, T([3, 2, 1, 0]), x))(T([0.0, 1, 2, 3])),
    "index_add_ of itself": lambda T: (lambda x: x.index_add_(0, T([0, 0, 1, 2]), x))(T([0.0, 1, 2, 3])),
    "indices that are written": lambda T: (lambda x: x.index_put_((x,), T([3, 2, 1, 0])))(T([0, 1, 2, 3])),
    # places that a tensor has twice
    "expanded": lambda T: written(T([[0.0] * 3]).expand(2, 3), lambda x: x.index_put_((T([0]), T([1])), T([1.0]))),
    "expanded and added": lambda T: written(
        T([[0.0] * 3]).expand(2, 3), lambda x: x.index_put_((T([0, 1]), T([1, 1])), T([1.0, 1.0]), accumulate=True)
    ),
    "windows": lambda T: written(T([0.0, 1, 2, 3, 4]).as_strided((3, 3), (1, 1)), lambda x: x.__setitem__(T([0]), 9.0)),
    "functional expanded": lambda T: T([[0.0] * 3]).expand(2, 3).index_put((T([0, 1]), T([1, 1])), T([1.0, 2.0])),
    # masks
    "masked_scatter widens": lambda T: T([0.0, 1, 2]).masked_scatter(T([[True, False, True]] * 2), T([9.0, 8, 7, 6])),
    "masked_select widens": lambda T: T([0.0, 1, 2]).masked_select(T([[True, False, True]] * 2)),
    "masked_select of complex numbers": lambda T: T([1 + 2j, 3, 4j]).masked_select(T([True, False, True])),
    "nonzero of a number": lambda T: T(3.0).nonzero(),
    "nonzero of zero": lambda T: T(0).nonzero(),
    "nonzero of complex numbers": lambda T: T([1 + 0j, 0, 1j]).nonzero(),
    "nonzero of nothing": lambda T: T([EMPTY, EMPTY], torch.float32).nonzero(),
    # order
    "sort with NaN": lambda T: T([3.0, math.nan, 1, 2, math.nan]).sort()[1],
    "sort float64": lambda T: T([3.0, 1, 2], torch.float64).sort(descending=True),
    "mode": lambda T: T([[3, 1, 2, 1, 3, 1], [2, 2, 1, 1, 0, 0]]).mode(),
    "mode of one": lambda T: T([3]).mode(),
    "mode of a number": lambda T: T(3).mode(),
    # joining and padding
    "cat skips empty vectors": lambda T: torch.cat([T(EMPTY, torch.float32), T([[1.0, 2.0]])]),
    "cat of dtypes": lambda T: torch.cat([T([1], torch.int32), T([2.5], torch.float16), T([True])]),
    "cat complex128": lambda T: torch.cat([T([1j], torch.complex128), T([2.0])]),
    "pad cuts": lambda T: torch.constant_pad_nd(T([[0.0, 1], [2, 3]]), (-1, 2), 5),
    "tril complex128": lambda T: T([[1j, 2], [3, 4j]], torch.complex128).triu(1),
    # sizes that depend on data
    "repeat_interleave": lambda T: T([[0, 1], [2, 3], [4, 5]]).repeat_interleave(T([2, 0, 3]), 0),
    "repeat_interleave of counts": lambda T: torch.repeat_interleave(T([2, 0, 3], torch.int32)),
    "repeat_interleave of nothing": lambda T: torch.repeat_interleave(T(EMPTY, torch.int64)),
    "repeat_interleave negative": lambda T: torch.repeat_interleave(T([1, -1])),
    "one_hot": lambda T: torch.nn.functional.one_hot(T([2, 0, 3])),
    "unfold_backward float64": lambda T: torch.unfold_backward(T([[1.0, 2], [3, 4]], torch.float64), (3,), 0, 2, 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_special_cases(name: str) -> None:
    assert on("npu", PROGRAMS[name]) == on("cpu", PROGRAMS[name])


# -- t[key] and t[key] = value --------------------------------------------------------------------------------------
DTYPES = (torch.float32, torch.int64, torch.bool, torch.float16, torch.float64, torch.complex64)


class Keys:
    """Random tensors and keys."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def shape(self) -> tuple[int, ...]:
        return tuple(self.random.choice((1, 2, 3, 4, 2, 3, 4, 0)) for _ in range(self.random.randint(0, 4)))

    def tensor(self, shape: tuple[int, ...], dtype: Any) -> Any:
        limits = (0, 1) if dtype is torch.bool else (-9, 9)
        return torch.tensor([self.random.randint(*limits) for _ in range(math.prod(shape))], dtype=dtype).view(shape)

    def spaced(self, t: Any) -> Any:
        """Sometimes with gaps or in another order in memory."""
        how = self.random.randint(0, 3)
        if how == 1 and t.dim() >= 2:
            return t.transpose(0, 1).contiguous().transpose(0, 1)
        if how == 2 and t.dim() >= 1:
            return torch.stack([t, t], -1).flatten(-2)[..., ::2]
        return t

    def key(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        out: list[Any] = []
        common = self.random.choice(((2,), (3, 1), (1,), (2, 2), ()))
        d, masked = 0, False
        while d < len(shape):
            what, n = self.random.random(), shape[d]
            if what < 0.35:
                out.append(
                    slice(None)
                    if what < 0.2
                    else slice(self.random.randint(0, 2), self.random.randint(1, 4), self.random.choice((1, 2)))
                )
            elif what < 0.45 and n:
                out.append(self.random.randint(-n, n - 1))
            elif what < 0.5:
                out.append(None)
                continue
            elif what < 0.85 and n:
                sizes = tuple(s if self.random.random() < 0.7 else 1 for s in common)
                out.append(
                    torch.tensor(
                        [self.random.randint(-n, n - 1) for _ in range(math.prod(sizes))], dtype=torch.int64
                    ).view(sizes)
                )
            elif what < 0.95 and not masked:
                masked = True
                covered = self.random.randint(1, min(2, len(shape) - d))
                out.append(self.tensor(shape[d : d + covered], torch.bool))
                d += covered - 1
            else:
                return (*out, ...)
            d += 1
        return tuple(out)


def moved(value: Any, device: str) -> Any:
    """To the device with the same strides."""
    if isinstance(value, tuple):
        return tuple(moved(item, device) for item in value)
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(tuple(value.shape), value.stride(), dtype=value.dtype, device=device).copy_(value)


def read(t: Any, key: Any, T: Callable[..., Any]) -> Any:
    device = T(0).device.type
    return moved(t, device)[moved(key, device)]


def write(t: Any, key: Any, value: Any, T: Callable[..., Any]) -> Any:
    device = T(0).device.type
    target = moved(t, device)
    target[moved(key, device)] = moved(value, device)
    return target


@pytest.mark.parametrize("seed", range(10))
def test_random_keys(seed: int) -> None:
    make = Keys(seed)
    for number in range(40):
        dtype = make.random.choice(DTYPES)
        t = make.spaced(make.tensor(make.shape(), dtype))
        key = make.key(tuple(t.shape))
        where = f"seed {seed}, {number}: {t.dtype} {tuple(t.shape)} {t.stride()} {key}"

        want = on("cpu", partial(read, t, key))
        assert on("npu", partial(read, t, key)) == want, where
        if isinstance(want, str):
            continue
        value = make.tensor(make.random.choice(((), want[1], want[1][-1:])), dtype)
        assert on("npu", partial(write, t, key, value)) == on("cpu", partial(write, t, key, value)), where


# -- the host learns sizes, not values ------------------------------------------------------------------------------
@_control.emulator_only
def test_known_sizes_need_no_word_from_the_device(emulator: _npu.Emulator) -> None:
    x = torch.arange(12.0, device="npu").view(3, 4)
    counts = torch.tensor([2, 0, 3], device="npu")
    classes = torch.tensor([2, 0, 3], device="npu")
    torch.npu.synchronize()
    before = emulator.bytes_to_host()
    x.repeat_interleave(counts, 0, output_size=5)
    torch.nn.functional.one_hot(classes, 5)
    x.index_fill(0, classes[:1], 1.0).index_copy(0, counts[:1], x[:1]).take(classes)
    x[classes[:2]] = 0.0
    x.sort(1)[0].topk(2)[0].softmax(-1).flip(0).tril().mode()
    torch.nn.functional.cross_entropy(x, classes[:3].clamp(max=3))
    torch.nn.functional.binary_cross_entropy(x.sigmoid(), x.sigmoid())
    torch.npu.synchronize()
    assert emulator.bytes_to_host() == before


@pytest.mark.parametrize("first", ["cpu", "npu"])
def test_scalars_of_two_devices_meet_on_the_npu(first: str) -> None:
    second = "npu" if first == "cpu" else "cpu"
    a = torch.tensor(2.0, device=first, requires_grad=True)
    b = torch.tensor(4.0, device=second, requires_grad=True)
    quotient = a / b
    assert quotient.device.type == "npu" and quotient.item() == 0.5
    quotient.backward()
    assert a.grad.device == a.device and a.grad.item() == 0.25
    assert b.grad.device == b.device and b.grad.item() == -0.125
    assert torch.addcmul(a, b, b).device.type == torch.maximum(a, b).device.type == "npu"
    with pytest.raises(RuntimeError, match="two devices"):
        torch.tensor(1.0).add_(torch.tensor(1.0, device="npu"))
