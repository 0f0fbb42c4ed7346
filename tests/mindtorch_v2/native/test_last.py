"""Kernels that read images with channels last: the numbers of the same images row by row, in the order of the input.

Invariant: what is computed channels last is compared with what the row-major kernels compute, which other files compare
with NumPy and PyTorch; results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native

F = torch.nn.functional

# Channels below, at and beyond what a vector and a chunk of them hold; planes of odd sizes.
SHAPES = [(2, 3, 9, 7), (1, 64, 12, 10), (3, 67, 11, 13), (2, 130, 6, 5)]
IMAGES: dict[str, Callable[[Any], Any]] = {
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "max_pool2d, padded": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "max_pool2d, dilated": lambda x: F.max_pool2d(x, 2, 1, dilation=2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "avg_pool2d, padded": lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    "avg_pool2d, divided": lambda x: F.avg_pool2d(x, (3, 2), 2, divisor_override=5),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (4, 3)),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, (4, 3)),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "nearest, smaller": lambda x: F.interpolate(x, size=(4, 3)),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "bilinear, aligned": lambda x: F.interpolate(x, size=(5, 17), mode="bilinear", align_corners=True),
    "bilinear, smooth": lambda x: F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True),
    "bicubic": lambda x: F.interpolate(x, scale_factor=1.7, mode="bicubic"),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "reflect": lambda x: F.pad(x, (1, 2, 0, 3), mode="reflect"),
    "replicate": lambda x: F.pad(x, (2, -1, 4, 1), mode="replicate"),
}


def values(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    drawn = np.random.default_rng(seed).standard_normal(shape) * 2 + 0.5
    return torch.from_numpy(drawn).to(getattr(torch, dtype))


def last(x: Any) -> Any:
    return x.contiguous(memory_format=torch.channels_last if x.ndim == 4 else torch.channels_last_3d)


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def both_ways(code: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """The result, and the gradient of the input for a gradient in the order of the result."""
    leaf = x.detach().requires_grad_()
    y = code(leaf)
    g = torch.empty_like(y).copy_(values(*y.shape, seed=3))
    return y.detach(), torch.autograd.grad(y, leaf, g)[0]


def close(a: Any, b: Any, dtype: str) -> None:
    tolerance = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 1.6e-2, "float16": 2e-3}[dtype]
    want = b.double().numpy()
    np.testing.assert_allclose(a.double().numpy(), want, rtol=tolerance, atol=tolerance * (1 + np.abs(want).max()))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", IMAGES)
def test_images(name: str, shape: tuple[int, ...], dtype: str) -> None:
    if name == "bilinear, smooth" and dtype == "bfloat16":
        pytest.skip("PyTorch has no smooth resampling of halves")
    x = values(*shape, dtype=dtype)
    plain, turned = both_ways(IMAGES[name], x), both_ways(IMAGES[name], last(x))
    for a, b in zip(turned, plain):
        assert a.is_contiguous(memory_format=torch.channels_last)
        close(a, b, dtype)


@pytest.mark.parametrize("name", IMAGES)
def test_any_number_of_threads(name: str, threads: Callable[[int], None]) -> None:
    x = last(values(4, 70, 40, 37))
    seen = []
    for n in (1, 2, 5):
        threads(n)
        seen.append([part.numpy() for part in both_ways(IMAGES[name], x)])
    for other in seen[1:]:
        for a, b in zip(seen[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(2, 6, 5, 4), (2, 128, 40, 30), (3, 132, 9, 7), (2, 8, 2, 1)], ids=str)
@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_norms(groups: int, shape: tuple[int, ...], dtype: str, threads: Callable[[int], None]) -> None:
    weight, bias = values(shape[1], dtype=dtype, seed=1), values(shape[1], dtype=dtype, seed=2)
    g = values(*shape, dtype=dtype, seed=3)

    def code(x: Any) -> list[Any]:
        leaves = [x.detach().requires_grad_(), weight.detach().requires_grad_(), bias.detach().requires_grad_()]
        x, w, b = leaves
        y = F.group_norm(x, groups, w, b) if groups else F.batch_norm(x, None, None, w, b, True)
        return [y.detach(), *torch.autograd.grad(y, leaves, torch.empty_like(y).copy_(g))]

    x = values(*shape, dtype=dtype)
    want = code(x)
    seen = []
    for n in (1, 2, 5):
        threads(n)
        seen.append(code(last(x)))
    assert seen[0][0].is_contiguous(memory_format=torch.channels_last)
    for a, b in zip(seen[0], want):
        close(a, b, dtype)
    for other in seen[1:]:
        for a, b in zip(other, seen[0]):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


CONVOLUTIONS: dict[str, tuple[int, int, int, int, int, int]] = {  # results, kernel, stride, padding, dilation, groups
    "of one place": (5, 1, 1, 0, 1, 1),
    "of each": (0, 3, 1, 1, 1, 0),
    "of each, strided": (0, 3, 2, 1, 1, 0),
    "of each, dilated": (0, 2, 2, 3, 2, 0),
    "of each, wide": (0, 5, 1, 2, 1, 0),
    "plain": (4, 3, 1, 1, 1, 1),
    "of many results": (70, 2, 1, 1, 1, 1),
    "strided": (33, 3, 2, 1, 1, 1),
    "dilated": (17, 2, 1, 2, 2, 1),
    "of one place, strided": (20, 1, 2, 0, 1, 1),
    "in groups": (12, 3, 1, 1, 1, 2),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(2, 6, 9, 8), (3, 83, 7, 6), (1, 4, 1, 5)], ids=str)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(
    name: str, shape: tuple[int, ...], bias: bool, dtype: str, threads: Callable[[int], None]
) -> None:
    results, kernel, stride, padding, dilation, groups = CONVOLUTIONS[name]
    if name == "plain" and shape[2] == 1:
        padding = 2
    channels = shape[1] // 2 * 2 if groups == 2 else shape[1]
    shape = (shape[0], channels, *shape[2:])
    weight = values(results or channels, channels // groups if groups else 1, kernel, kernel, seed=1, dtype=dtype)
    if stride > 1:  # weights may have their channels last as well
        weight = last(weight)
    parameters = [weight, values(results or channels, seed=2, dtype=dtype)] if bias else [weight]

    def code(x: Any) -> list[Any]:
        leaves = [t.detach().requires_grad_() for t in (x, *parameters)]
        b = leaves[2] if bias else None
        y = F.conv2d(leaves[0], leaves[1], b, stride, padding, dilation, groups or channels)
        return [y.detach(), *torch.autograd.grad(y, leaves, torch.empty_like(y).copy_(values(*y.shape, seed=3)))]

    x = values(*shape, dtype=dtype)
    want = code(x)
    seen = []
    for n in (1, 2, 5):
        threads(n)
        seen.append(code(last(x)))
    assert seen[0][0].is_contiguous(memory_format=torch.channels_last)
    for a, b in zip(seen[0], want):
        close(a, b, dtype)
    for other in seen[1:]:
        for a, b in zip(other, seen[0]):
            np.testing.assert_array_equal(a.float().numpy(), b.float().numpy())


def test_convolution_of_volumes() -> None:
    x, weight = values(2, 5, 4, 6, 5), values(9, 5, 2, 3, 3, seed=1)
    for stride in (1, 2):

        def code(x: Any, stride: int = stride) -> Any:
            return F.conv3d(x, weight, None, stride, 1)

        for a, b in zip(both_ways(code, last(x)), both_ways(code, x)):
            close(a, b, "float32")


def test_what_is_not_finite_stays_where_its_windows_reach() -> None:
    for dtype, channels in (("float32", 6), ("bfloat16", 5)):
        x, weight = values(1, channels, 8, 8, dtype=dtype), values(4, channels, 3, 3, seed=1, dtype=dtype)
        x[0, channels - 1, 2, 3] = float("inf")
        found, want = (F.conv2d(t, weight, None, 1, 1).float().numpy() for t in (last(x), x))
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(want))


def test_operands_of_convolutions_are_checked() -> None:
    storage, ones = _native.Storage(64), (1, 1, 1)
    window = ((1, 4, 4), (1, 4, 4), ones, ones, (0, 0, 0), ones)
    for kernel in (_native.conv_channels, _native.conv_input_channels):
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            kernel(storage, 1, 6, storage, 0, 6, None, 0, 0, storage, 0, 6, 0, 1, 1, 1, 1, *window)
        with pytest.raises(ValueError, match="two dtypes"):
            kernel(storage, 0, 6, _native.Storage(256), 0, 7, None, 0, 0, storage, 0, 6, 0, 1, 1, 1, 1, *window)
        with pytest.raises(RuntimeError, match="overflowed"):
            kernel(storage, 0, 6, storage, 0, 6, None, 0, 0, storage, 0, 6, 0, 1 << 62, 1, 4, 1, *window)


def test_fixed_statistics() -> None:
    x, mean, var = values(3, 20, 7, 9), values(20, seed=1), values(20, seed=2).abs() + 0.1

    def code(x: Any) -> Any:
        return F.batch_norm(x, mean, var)

    for a, b in zip(both_ways(code, last(x)), both_ways(code, x)):
        close(a, b, "float32")


@pytest.mark.parametrize("code", [lambda x: F.max_pool3d(x, 2), lambda x: F.avg_pool3d(x, 2)], ids=["max", "mean"])
def test_volumes(code: Callable[[Any], Any]) -> None:
    x = values(2, 19, 6, 5, 8)
    for a, b in zip(both_ways(code, last(x)), both_ways(code, x)):
        close(a, b, "float32")


@pytest.mark.parametrize("name", ["max_pool2d, padded", "adaptive_max_pool2d"])
def test_places_and_nan(name: str) -> None:
    x = values(2, 21, 9, 8)
    x[0, 3, 4, 5] = x[1, 20, 0, 0] = float("nan")
    x[1, 7] = -float("inf")
    pool = (lambda t: F.max_pool2d(t, 3, 2, 1, return_indices=True)) if "padded" in name else (
        lambda t: F.adaptive_max_pool2d(t, (4, 3), return_indices=True))  # fmt: skip
    for a, b in zip(pool(last(x)), pool(x)):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_integers() -> None:
    x = torch.from_numpy(np.random.default_rng(0).integers(-9, 9, (2, 70, 6, 7)))
    for code in (lambda t: F.max_pool2d(t, 2), lambda t: F.avg_pool2d(t, 2)):
        np.testing.assert_array_equal(code(last(x)).numpy(), code(x).numpy())
    small = x.to(torch.uint8)
    np.testing.assert_array_equal(F.max_pool2d(last(small), 3, 2).numpy(), F.max_pool2d(small, 3, 2).numpy())


def test_nothing() -> None:
    x = last(values(2, 4, 6, 6))[:0]
    assert F.max_pool2d(x, 2).shape == (0, 4, 3, 3)
    assert F.interpolate(x, scale_factor=2).shape == (0, 4, 12, 12)


def test_places_outside_are_refused() -> None:
    g, places, dx = (torch.zeros(1, 4, 2, 2, dtype=d) for d in (torch.float32, torch.int64, torch.float32))
    places[0, 0, 0, 0] = 4
    args = [part for t in (g, places, dx) for part in (t._storage, 0, t._dtype.code)]
    with pytest.raises(IndexError, match="out of bounds"):
        _native.pool_max_backward_last(*args, 1, 4, (1, 2, 2), (1, 2, 2))
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        _native.pool_max_backward_last(*args, 2, 4, (1, 2, 2), (1, 2, 2))
