"""Elements moved by their size alone, and arithmetic of narrow dtypes read as they lie.

Invariant: every layout of every size of element gives NumPy's elements to the bit, at every level of instructions;
sums of two-byte floats are those of float64, rounded once, within float32's precision.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native

SIZES = (np.uint8, np.int16, np.float32, np.float64, np.complex128)


def given(dtype: Any, *shape: int) -> Any:
    return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)


def layouts(a: Any) -> list[Any]:
    """NumPy's views of one array; the same keys give ours."""
    keys = (slice(None, None, 2), slice(1, None, 3), slice(3, -2))
    return [a, a.T, *(a[:, k] for k in keys), *(a[k].T for k in keys), a[::-1], a[:, ::-1], a[::-1, ::-1].T]


def same(ours: Any, want: Any) -> None:
    np.testing.assert_array_equal(ours.numpy(), np.ascontiguousarray(want))


def check_moves() -> None:
    for dtype in SIZES:
        for rows, columns in ((1, 1), (3, 65), (65, 3), (2, 130), (33, 47), (70, 36)):
            a = given(dtype, rows, columns)
            for view in layouts(a):
                if min(view.strides) > 0:  # others torch does not take
                    same(torch.from_numpy(view).contiguous(), view)
            t = torch.from_numpy(a)
            for dims in ((0,), (1,), (0, 1)):
                same(t.flip(dims), np.flip(a, dims))
            same(t[:, :1].expand(rows, 40).contiguous(), np.repeat(a[:, :1], 40, 1))
            same(t.roll(3, 1), np.roll(a, 3, 1))
            same(torch.stack((t, t + t), -1), np.stack((a, a + a), -1))
            same(torch.cat([t[:, :1], t, t[:, -1:]] * 7, 1), np.concatenate([a[:, :1], a, a[:, -1:]] * 7, 1))
            same(torch.full((rows, columns), 3, dtype=t.dtype), np.full_like(a, 3))
        for channels in (2, 3, 4, 5):
            image = given(dtype, 2, channels, 9, 7)
            t = torch.from_numpy(image)
            same(t.permute(0, 2, 3, 1).contiguous(), image.transpose(0, 2, 3, 1))
            back = torch.from_numpy(np.ascontiguousarray(image.transpose(0, 2, 3, 1)))
            same(back.permute(0, 3, 1, 2).contiguous(), image)


def test_moves() -> None:
    check_moves()


@pytest.mark.parametrize("level", ["baseline", "avx2"])
def test_moves_at_other_levels(level: str) -> None:
    run = (
        "from tests.mindtorch_v2.native.test_moves import check_moves, check_halves, check_integers\n"
        "check_moves(); check_halves(); check_integers()"
    )
    subprocess.run([sys.executable, "-c", run], check=True, env={**os.environ, "MINDTORCH_CPU": level})


@pytest.mark.parametrize("dtype", SIZES)
def test_a_number_around(dtype: Any) -> None:
    a = given(dtype, 2, 3, 4, 5, 6)
    for pads in ((1, 2), (0, 0, 3, 1), (2, -1, -1, 2, 1, 0), (-2, -2), (9, 0, 0, 0, 0, 7), (1, 1, 1, 1, 1, 1, 1, 1)):
        widths, cuts = [(0, 0)] * (5 - len(pads) // 2), [slice(None)] * (5 - len(pads) // 2)
        for before, after in reversed(list(zip(pads[::2], pads[1::2]))):
            widths.append((max(before, 0), max(after, 0)))
            cuts.append(slice(max(-before, 0), None if after >= 0 else after))
        want = np.pad(a, widths, constant_values=7)[tuple(cuts)]
        same(torch.nn.functional.pad(torch.from_numpy(a), pads, value=7), want)
        turned = torch.from_numpy(a).transpose(0, 4)
        same(torch.nn.functional.pad(turned.transpose(0, 4), pads, value=7), want)
    storage = torch.zeros(64)._storage
    operand = (storage, 0, torch.float32.code)
    with pytest.raises(ValueError, match="pad"):
        _native.pad_number(*operand, *operand, 1, (1, 1, 3), (1, 1, 12), (0, 0, 1 << 62), 0)
    with pytest.raises((ValueError, IndexError, RuntimeError)):
        _native.pad_number(*operand, *operand, 9, (1, 2, 4), (1, 2, 9), (0, 0, 1), 0)


def check_halves() -> None:
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-7, -6e-8, 65504.0]
    values = np.concatenate([np.random.default_rng(0).standard_normal(301) * 4, special])
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.from_numpy(values).to(dtype)
        y = torch.from_numpy(values[::-1].copy()).to(dtype)
        a, b = x.float().numpy(), y.float().numpy()
        with np.errstate(all="ignore"):
            pairs = [
                (x + y, a + b), (x - y, a - b), (x * y, a * b), (x / y, a / b), (x * 0.3, a * np.float32(0.3)),
                (2 - x, 2 - a), (x + 1, a + 1), (1 / x, 1 / a), (torch.maximum(x, y), np.maximum(a, b)),
                (torch.minimum(x, y), np.minimum(a, b)), (torch.copysign(x, y), np.copysign(a, b)), (-x, -a),
                (x.abs(), np.abs(a)), (x.square(), a * a), (x.relu(), np.where(a < 0, 0, a)), (x.sqrt(), np.sqrt(a)),
                (x.floor(), np.floor(a)), (x.ceil(), np.ceil(a)), (x.round(), np.rint(a)), (x.trunc(), np.trunc(a)),
            ]  # fmt: skip
        for got, want in pairs:
            rounded = torch.from_numpy(np.asarray(want, np.float32)).to(dtype).float().numpy()
            assert got.dtype is dtype
            np.testing.assert_array_equal(got.float().numpy(), rounded)
        finite = torch.from_numpy(np.random.default_rng(1).standard_normal((37, 129))).to(dtype)
        exact = finite.double().numpy()
        for view, wide in ((finite, exact), (finite.t(), exact.T), (finite[:, ::2], exact[:, ::2])):
            for dim in (0, 1, (0, 1)):
                for name, want in (
                    ("sum", wide.sum(dim)), ("mean", wide.mean(dim)), ("amax", wide.max(dim)), ("amin", wide.min(dim)),
                    ("norm", np.sqrt((wide * wide).sum(dim))),
                ):  # fmt: skip
                    got = view.norm(dim=dim) if name == "norm" else getattr(torch, name)(view, dim)
                    step = 2.0**-10 if dtype is torch.float16 else 2.0**-7
                    np.testing.assert_allclose(got.double().numpy(), want, rtol=step, atol=step * 1e-2)
        few, many = finite[:5, :128], finite[:, :128]
        for got, want in ((few @ many.t(), exact[:5, :128] @ exact[:, :128].T),
                          (many @ few.t(), exact[:, :128] @ exact[:5, :128].T),
                          (finite[0] @ finite[1], exact[0] @ exact[1])):  # fmt: skip
            np.testing.assert_allclose(got.double().numpy(), want, rtol=step, atol=0.2)


def test_halves() -> None:
    check_halves()


def check_integers() -> None:
    for dtype in (np.int8, np.int16, np.uint8, np.int32, np.int64):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        drawn = np.random.default_rng(0).integers(low, high, (21, 137), dtype, endpoint=True)
        drawn[0, :2] = low, high
        other = drawn[::-1].copy()
        x, y = torch.from_numpy(drawn), torch.from_numpy(other)
        same(x + y, drawn + other)
        same(x * y, drawn * other)
        same(-x, np.negative(drawn))
        same(x < y, drawn < other)
        same(torch.maximum(x, y), np.maximum(drawn, other))
        same(x.clamp(3, 90), np.clip(drawn, 3, 90))
        same(x >> 2, drawn >> 2)
        same(x // 7, drawn // dtype(7))
        same(x % 7, drawn % dtype(7))
        for dim in (0, 1):
            same(x.sum(dim), drawn.sum(dim, dtype=np.int64))
            same(x.amax(dim), drawn.max(dim))
        same(x[:, :64] @ y[:, :70].t()[:64], drawn[:, :64] @ other[:, :70].T[:64])
        same(x @ y[0], drawn @ other[0])
        same(x[0] @ y[0], drawn[0] @ other[0])
    z = torch.from_numpy(np.random.default_rng(2).standard_normal((60, 60, 2))).to(torch.float32)
    c = torch.view_as_complex(z)
    exact = c.numpy().astype(np.complex128)
    np.testing.assert_allclose((c @ c).numpy(), exact @ exact, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose((c[0] @ c[1]).numpy(), exact[0] @ exact[1], rtol=1e-4, atol=1e-4)


def test_integers() -> None:
    check_integers()
