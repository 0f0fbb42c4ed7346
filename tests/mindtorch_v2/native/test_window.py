"""The native kernels of windows: columns, pooling, resampling, called as the CPU lines call them.

Invariant: operands that do not fit their storage, windows and taps that leave their plane, and operands of two dtypes
are refused before memory is touched.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from .._subject import IS_ORACLE, submodule

pytestmark = pytest.mark.skipif(IS_ORACLE, reason="PyTorch has no such module")

U8, F32, F64, I64 = 0, 6, 7, 4
ONE = (1, 1, 1)
NONE = (0, 0, 0)
PLANE = (1, 3, 3)


def native() -> object:
    return submodule("_native")


def storage(values: list[float]) -> object:
    made = native().Storage(4 * len(values))  # type: ignore[attr-defined]
    memoryview(made)[:] = struct.pack(f"{len(values)}f", *values)
    return made


def read(made: object, count: int) -> list[float]:
    return list(struct.unpack(f"{count}f", bytes(memoryview(made))[: 4 * count]))


def nine() -> object:
    return storage([float(n) for n in range(9)])


def test_columns_and_back() -> None:
    columns = storage([0.0] * 16)
    n = native()
    window = (PLANE, (1, 2, 2), (1, 2, 2), ONE, NONE, ONE)
    n.im2col(nine(), 0, F32, columns, 0, F32, 1, 1, *window)  # type: ignore[attr-defined]
    assert read(columns, 16) == [0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7, 4, 5, 7, 8]
    back = storage([9.0] * 9)
    n.col2im(columns, 0, F32, back, 0, F32, 1, 1, *window)  # type: ignore[attr-defined]
    assert read(back, 9) == [0, 2, 2, 6, 16, 10, 6, 14, 8]


def test_nan_is_the_largest() -> None:
    n = native()
    out, places = storage([0.0]), n.Storage(8)  # type: ignore[attr-defined]
    source = storage([1.0, float("nan"), 5.0, 2.0])
    n.pool_max(source, 0, F32, out, 0, F32, places, 0, I64, 1, (1, 1, 4), ONE, NONE, (1, 1, 4), ONE)  # type: ignore[attr-defined]
    assert read(out, 1)[0] != read(out, 1)[0]
    assert struct.unpack("q", bytes(memoryview(places))) == (1,)


def test_means_and_taps() -> None:
    n = native()
    out = storage([0.0])
    ranges = (NONE, (1, 2, 2), (1, 2, 2))
    n.pool_mean(nine(), 0, F32, out, 0, F32, 1, PLANE, ONE, *ranges, 0)  # type: ignore[attr-defined]
    assert read(out, 1) == [2.0]
    taps = ((1, 1, 2), (0, 1, 0, 2), (1.0, 1.0, 0.25, 0.75))
    n.resample(nine(), 0, F32, out, 0, F32, 1, 1, PLANE, ONE, *taps, False)  # type: ignore[attr-defined]
    assert read(out, 1) == [4.5]


def fractional(n: object, x: object, starts: tuple[int, ...]) -> tuple[object, object]:
    """The largest of one window of 2 x 2 of the plane, and its place."""
    out, places, listed = storage([0.0]), n.Storage(8), n.Storage(8 * len(starts))  # type: ignore[attr-defined]
    memoryview(listed)[:] = struct.pack(f"{len(starts)}q", *starts)
    window = (PLANE, ONE, (1, 2, 2))
    n.pool_fractional(x, 0, F32, out, 0, F32, places, 0, I64, listed, 0, I64, 1, *window)  # type: ignore[attr-defined]
    return out, places


def test_listed_windows() -> None:
    out, places = fractional(native(), nine(), (0, 1, 0))
    assert read(out, 1) == [7.0]
    assert struct.unpack("q", bytes(memoryview(places))) == (7,)


@pytest.mark.parametrize("inner", [1, 3, 32, 45])
def test_bytes_in_fixed_point(inner: int) -> None:
    """Vectors run along the inner dimension, or along the outer one where that is short."""
    n = native()
    outer, size = 70, 4
    given = bytes((7 * k * k + k) % 256 for k in range(outer * size * inner))
    x, out = n.Storage(len(given)), n.Storage(2 * outer * inner)  # type: ignore[attr-defined]
    memoryview(x)[:] = given
    counts, places, weights = (5, 1), (0, 1, 2, 3, 0, 2), (3, -2, 6, 1, 1, 20)
    n.resample_bytes(x, 0, U8, out, 0, U8, outer, size, inner, 2, counts, places, weights, 3)  # type: ignore[attr-defined]
    want = []
    for o in range(outer):
        for taps in (range(5), range(5, 6)):
            for c in range(inner):
                total = 4 + sum(weights[t] * given[(o * size + places[t]) * inner + c] for t in taps)
                want.append(min(max(total >> 3, 0), 255))
    assert list(bytes(memoryview(out))) == want


WINDOW = (PLANE, (1, 2, 2), (1, 2, 2), ONE, NONE, ONE)
WRONG: dict[str, tuple[str, Callable[[object, object], object]]] = {
    "columns too small": (
        "out of bounds for storage",
        lambda n, x: n.im2col(x, 0, F32, storage([0.0]), 0, F32, 1, 1, *WINDOW),  # type: ignore[attr-defined]
    ),
    "offset too large": (
        "out of bounds for storage",
        lambda n, x: n.im2col(x, 5, F32, storage([0.0] * 16), 0, F32, 1, 1, *WINDOW),  # type: ignore[attr-defined]
    ),
    "two dtypes": (
        "two dtypes",
        lambda n, x: n.im2col(x, 0, F32, storage([0.0] * 32), 0, F64, 1, 1, *WINDOW),  # type: ignore[attr-defined]
    ),
    "window outside": (
        "leaves its plane",
        lambda n, x: n.pool_mean(  # type: ignore[attr-defined]
            x, 0, F32, storage([0.0]), 0, F32, 1, PLANE, ONE, NONE, (1, 4, 2), (1, 4, 2), 0
        ),
    ),
    "tap outside": (
        "leaves its plane",
        lambda n, x: n.resample(  # type: ignore[attr-defined]
            x, 0, F32, storage([0.0]), 0, F32, 1, 1, PLANE, ONE, ONE, (0, 3, 0), (1.0, 1.0, 1.0), False
        ),
    ),
    "nearest place outside, with channels": (
        "leaves its plane",
        lambda n, x: n.resample(  # type: ignore[attr-defined]
            x, 0, F32, storage([0.0] * 9), 0, F32, 1, 9, ONE, ONE, ONE, (0, 0, 1), (1.0, 1.0, 1.0), False
        ),
    ),
    "channels beyond the storage": (
        "out of bounds for storage",
        lambda n, x: n.resample(  # type: ignore[attr-defined]
            x, 0, F32, storage([0.0] * 9), 0, F32, 1, 10, ONE, ONE, ONE, (0, 0, 0), (1.0, 1.0, 1.0), False
        ),
    ),
    "tap of bytes outside": (
        "leaves its plane",
        lambda n, x: n.resample_bytes(x, 0, U8, x, 9, U8, 1, 9, 1, 1, (1,), (9,), (1,), 0),  # type: ignore[attr-defined]
    ),
    "weight of 17 bits": (
        "16 bits",
        lambda n, x: n.resample_bytes(x, 0, U8, x, 9, U8, 1, 9, 1, 1, (1,), (0,), (1 << 16,), 0),  # type: ignore[attr-defined]
    ),
    "fewer taps than counted": (
        "tuple of 2 ints",
        lambda n, x: n.resample_bytes(x, 0, U8, x, 9, U8, 1, 9, 1, 1, (2,), (0,), (1,), 0),  # type: ignore[attr-defined]
    ),
    "bytes beyond the storage": (
        "out of bounds for storage",
        lambda n, x: n.resample_bytes(x, 0, U8, x, 36, U8, 1, 9, 1, 1, (1,), (0,), (1,), 0),  # type: ignore[attr-defined]
    ),
    "listed window outside": ("leaves its plane", lambda n, x: fractional(n, x, (0, 0, 2))),
    "listed window before": ("leaves its plane", lambda n, x: fractional(n, x, (0, -1, 0))),
    "listed windows of other sizes": ("out of bounds", lambda n, x: fractional(n, x, (0, 0))),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_operands_are_refused(name: str) -> None:
    text, call = WRONG[name]
    with pytest.raises((ValueError, RuntimeError), match=text):
        call(native(), nine())
