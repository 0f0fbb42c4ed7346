"""Reading at the places of a grid and the largest of windows along rows: kernels that serve a composition whole.

Invariant: what the native kernel gives, without gradients, is what the composition gives that records them; operands
that do not fit their storage are refused.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native
from mindtorch_v2._ops.vision import _sample

F = torch.nn.functional
F32 = 6


def drawn(*shape: int, dtype: Any = torch.float32, scale: float = 1.0) -> Any:
    return (torch.from_numpy(np.random.default_rng(5).standard_normal(shape)) * scale).to(dtype)


def with_edges(grid: Any) -> Any:
    """Places on edges and corners, far outside, and no numbers among them."""
    flat = grid.reshape(-1)
    for i, value in enumerate((-1.0, 1.0, 0.0, -1.5, 2.5, 40.0, math.nan, math.inf, -math.inf, 1e30)):
        flat[i * 3] = value
    return grid


MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def sampled(rank: int) -> Any:
    """(dtype, x, grid, mode, padding) of every kind of one rank."""
    sizes = ((5, 7), (9, 11)) if rank == 2 else ((3, 4, 5), (2, 6, 7))
    modes = range(3 if rank == 2 else 2)
    for dtype, mode, padding in itertools.product((torch.float32, torch.float64), modes, range(3)):
        yield dtype, drawn(2, 3, *sizes[0], dtype=dtype), drawn(2, *sizes[1], rank, dtype=dtype), mode, padding


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample_is_what_the_composition_is(rank: int, align: bool) -> None:
    for dtype, x, grid, mode, padding in sampled(rank):
        with_edges(grid)
        options = dict(mode=MODES[mode], padding_mode=PADDINGS[padding], align_corners=align)
        native = F.grid_sample(x, grid, **options)
        recorded = F.grid_sample(x.clone().requires_grad_(), grid, **options)
        np.testing.assert_array_equal(recorded.detach().numpy(), native.numpy())
        parts = _sample(x, grid, mode, padding, align)
        # Beyond any plane of this size a place is lost in its own rounding.
        usual = (grid.abs() < 100).all(-1).unsqueeze(1).expand(native.shape)
        tolerance = 1e-4 if dtype is torch.float32 else 1e-12
        np.testing.assert_allclose(native[usual].numpy(), parts[usual].numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("align", [False, True])
def test_gradients_of_grid_sample_are_those_of_the_composition(rank: int, align: bool) -> None:
    for dtype, x, grid, mode, padding in sampled(rank):
        grid.view(-1)[3] = 40.0
        x.requires_grad_()
        grid.requires_grad_()
        out = F.grid_sample(x, grid, mode=MODES[mode], padding_mode=PADDINGS[padding], align_corners=align)
        seed = drawn(*out.shape, dtype=dtype)
        native = torch.autograd.grad(out, (x, grid), seed)
        parts = torch.autograd.grad(_sample(x, grid, mode, padding, align), (x, grid), seed)
        tolerance = 2e-3 if dtype is torch.float32 else 1e-10
        for ours, theirs in zip(native, parts):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=tolerance, atol=tolerance)
        out = F.grid_sample(x, grid, mode=MODES[mode], padding_mode=PADDINGS[padding], align_corners=align)
        (alone,) = torch.autograd.grad(out, grid, seed)
        assert alone.equal(native[1])


def test_grid_of_many_places_and_of_one_element() -> None:
    x = drawn(1, 2, 1, 1)
    grid = drawn(1, 20, 30, 2)
    assert F.grid_sample(x, grid, padding_mode="border", align_corners=True).allclose(x.expand(1, 2, 20, 30))
    before = torch.get_num_threads()
    try:
        x, grid = drawn(2, 5, 30, 40), drawn(2, 50, 60, 2)
        found = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            image, places = x.clone().requires_grad_(), grid.clone().requires_grad_()
            out = F.grid_sample(image, places, align_corners=False)
            found.append((out, *torch.autograd.grad(out, (image, places), out.detach())))
        assert all(a.equal(b) for other in found[1:] for a, b in zip(found[0], other))
    finally:
        torch.set_num_threads(before)


def test_grid_operands_are_checked() -> None:
    storage = _native.Storage(64)
    sizes = ((1, 2, 2), (1, 2, 2))
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        _native.grid_sample(storage, 0, F32, storage, 0, F32, storage, 1, F32, 4, 1, *sizes, 2, 0, 0, 0)
    with pytest.raises(ValueError, match="mode"):
        _native.grid_sample(storage, 0, F32, storage, 0, F32, storage, 0, F32, 1, 1, *sizes, 2, 3, 0, 0)
    with pytest.raises(ValueError, match="mode"):
        _native.grid_sample(storage, 0, F32, storage, 0, F32, storage, 0, F32, 0, 1, (1, 1, 1 << 24), (1, 1, 1), 2, 0,
                            0, 0)  # fmt: skip


def test_max_pool1d_is_what_the_composition_is() -> None:
    for dtype, n in itertools.product((torch.float32, torch.float64), (1, 2, 7, 33, 100)):
        x = drawn(2, 3, n, dtype=dtype)
        if n > 30:
            x[0, 1, 5], x[1, 2, 17], x[1, 0, 3] = math.nan, math.inf, -math.inf
        for kernel, stride, padding, dilation, ceil in itertools.product((1, 2, 3, 5), (1, 2, 3, 7), (0, 1, 2), (1, 2),
                                                                         (False, True)):  # fmt: skip
            if padding > kernel // 2 or n + 2 * padding < (kernel - 1) * dilation + 1:
                continue
            args = (kernel, stride, padding, dilation, ceil)
            native, parts = F.max_pool1d(x, *args), F.max_pool1d(x.clone().requires_grad_(), *args).detach()
            assert native.shape == parts.shape, args
            np.testing.assert_array_equal(native.numpy(), parts.numpy(), err_msg=str(args))
    assert F.max_pool1d(drawn(3, 8), 2).shape == (3, 4)
    assert F.max_pool1d(drawn(0, 3, 8), 2).shape == (0, 3, 4)
    turned = drawn(2, 8, 3).transpose(1, 2)
    assert F.max_pool1d(turned, 2).equal(F.max_pool1d(turned.contiguous(), 2))


def test_line_operands_are_checked() -> None:
    storage = _native.Storage(64)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        _native.pool_line(storage, 0, F32, storage, 0, F32, 2, 9, 4, 2, 2, 0, 1)
    with pytest.raises(ValueError, match="without elements"):
        _native.pool_line(storage, 0, F32, storage, 0, F32, 1, 8, 4, 2, 0, 0, 1)
    with pytest.raises(RuntimeError, match="overflowed"):
        _native.pool_line(storage, 0, F32, storage, 0, F32, 1, 8, 4, 1 << 62, 2, 0, 4)


@pytest.mark.parametrize("name", ["uint8", "int16", "float32", "float64", "bool"])
def test_transposed_copies(name: str) -> None:
    dtype = getattr(torch, name)
    for rows, columns in itertools.product((1, 7, 8, 33, 100), (3, 8, 31, 64, 129)):
        x = (torch.arange(2 * rows * columns) * 7 % 251).to(dtype).reshape(2, rows, columns)
        np.testing.assert_array_equal(x.transpose(1, 2).contiguous().numpy(), np.swapaxes(x.numpy(), 1, 2).copy())
        cut = x[:, :, 1:]
        np.testing.assert_array_equal(cut.transpose(1, 2).contiguous().numpy(), np.swapaxes(cut.numpy(), 1, 2).copy())
        out = torch.zeros(2, columns + 3, rows + 5, dtype=dtype)
        out[:, 2:-1, 4:-1] = x.transpose(1, 2)
        want = np.zeros(tuple(out.shape), x.numpy().dtype)
        want[:, 2:-1, 4:-1] = np.swapaxes(x.numpy(), 1, 2)
        np.testing.assert_array_equal(out.numpy(), want)


def test_selected_columns() -> None:
    index = torch.tensor([3, 0, 0, 6, 5, 1, 2])
    for name in ("uint8", "int16", "float32", "int64", "complex128"):
        x = torch.arange(35).reshape(5, 7).to(getattr(torch, name))
        np.testing.assert_array_equal(x.index_select(1, index).numpy(), x.numpy()[:, index.numpy()])
        np.testing.assert_array_equal(x[::2].index_select(1, index).numpy(), x.numpy()[::2][:, index.numpy()])
    with pytest.raises(RuntimeError, match="out of DATA bounds"):
        torch.ones(2, 3).index_select(1, torch.tensor([0, 3]))
