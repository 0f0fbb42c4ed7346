"""Short rows and scattered operands, which have ways of their own through the kernels, against NumPy.

Invariant: widths cross every limit between those ways.
"""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch

WIDTHS = (1, 2, 3, 7, 8, 10, 16, 31, 32, 33, 64, 65, 95, 96, 100)
DTYPES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8")


def rows_of(width: int, dtype: str) -> np.ndarray:
    """37 rows with many equal elements; floats with both zeros, infinities and NaN."""
    random = np.random.default_rng(width)
    x = random.integers(-9 if dtype != "uint8" else 0, 10, (37, width)).astype(dtype)
    if dtype.startswith("float"):
        x.flat[:: 3 * width + 1] = np.nan
        x.flat[2 :: 2 * width + 1] = -np.inf
        x.flat[1 :: 2 * width + 3] = -0.0
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_order_of_short_rows(width: int, dtype: str) -> None:
    x = rows_of(width, dtype)
    up = np.argsort(x, 1, kind="stable")
    # The largest first, of equals the first: NaN counts as the largest.
    rank = np.where(np.isnan(x), np.inf, x.astype("float64")) if dtype.startswith("float") else x.astype("int64")
    keys = np.where(np.isnan(x), 1, 0) if dtype.startswith("float") else np.zeros_like(x)
    down = np.stack([np.lexsort((np.arange(width), -r, -k)) for r, k in zip(rank, keys)])
    t = torch.from_numpy(x)
    for descending, order in ((False, up), (True, down)):
        values, places = t.sort(dim=1, descending=descending, stable=True)
        np.testing.assert_array_equal(places.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, 1))
        k = min(width, 5)
        best, at = t.topk(k, 1, largest=descending)
        np.testing.assert_array_equal(best.numpy(), np.take_along_axis(x, order, 1)[:, :k])
        np.testing.assert_array_equal(np.take_along_axis(x, at.numpy(), 1), best.numpy())
    for k in {1, (width + 1) // 2, width}:
        value, place = t.kthvalue(k, 1)
        np.testing.assert_array_equal(value.numpy(), np.take_along_axis(x, up, 1)[:, k - 1])
        np.testing.assert_array_equal(x[np.arange(37), place.numpy()], value.numpy())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_reductions_of_short_rows(width: int, dtype: str) -> None:
    x = rows_of(width, dtype)
    t = torch.from_numpy(x)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(t.amax(1).numpy(), x.max(1))
        np.testing.assert_array_equal(t.amin(1).numpy(), x.min(1))
        np.testing.assert_array_equal(t.argmax(1).numpy(), x.argmax(1))
        np.testing.assert_array_equal(t.argmin(1).numpy(), x.argmin(1))
        np.testing.assert_array_equal(t.any(1).numpy(), x.any(1))
        np.testing.assert_array_equal(t.all(1).numpy(), x.all(1))
        np.testing.assert_array_equal(t.sum(1).numpy(), x.sum(1, dtype=x.dtype if dtype[0] == "f" else "int64"))
        # Rows that do not lie one after the other.
        np.testing.assert_array_equal(t[::2].amax(1).numpy(), x[::2].max(1))
        np.testing.assert_array_equal(t[:, ::2].amin(1).numpy(), x[:, ::2].min(1))
        np.testing.assert_array_equal(t.flip(0).argmax(1).numpy(), x[::-1].argmax(1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bfloat16", "bool"])
def test_scattered_operands_that_are_read_again(dtype: str) -> None:
    base = (torch.arange(3 * 70 * 9 * 9) * 7 % 23).reshape(3, 70, 9, 9)
    images = base.to(getattr(torch, dtype)).contiguous(memory_format=torch.channels_last)
    for other in (images[0, :, :1, :1], images[:, :, :1, :1], images[:, :1], images[..., 3:4]):
        other = other.to(getattr(torch, dtype))
        want = images.contiguous() + other.expand(images.shape).contiguous()
        assert torch.equal(images + other, want)
        assert torch.equal(other + images, want)
        if dtype != "bool":
            assert torch.equal(images.clone().mul_(other), images.contiguous() * other.contiguous())


WINDOWS = [
    (2, 2, 0, 1),
    (3, 2, 1, 1),
    (3, 1, 1, 1),
    (3, 1, 0, 2),
    (5, 3, 2, 1),
    (7, 1, 3, 1),
    (2, 5, 1, 3),
    (20, 1, 0, 1),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("kernel, stride, padding, dilation", WINDOWS)
def test_largest_of_windows(kernel: int, stride: int, padding: int, dilation: int, dtype: str) -> None:
    x = rows_of(29 * 33, dtype).reshape(37, 29, 33)[:2]
    found = torch.nn.functional.max_pool2d(torch.from_numpy(x), kernel, stride, padding, dilation, return_indices=True)
    values, places = (t.numpy() for t in found)
    for plane, (many, where) in enumerate(zip(values, places)):
        for (i, j), value in np.ndenumerate(many):
            best, at = None, -1
            for y in range(i * stride - padding, i * stride - padding + kernel * dilation, dilation):
                for c in range(j * stride - padding, j * stride - padding + kernel * dilation, dilation):
                    if not (0 <= y < 29 and 0 <= c < 33):
                        continue
                    e = x[plane, y, c]
                    if best is None or e > best or e != e:
                        best, at = e, y * 33 + c
            assert (value == best or (value != value and best != best)) and where[i, j] == at
