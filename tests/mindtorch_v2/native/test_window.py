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

F32, F64, I64 = 6, 7, 4
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
    n.resample(nine(), 0, F32, out, 0, F32, 1, PLANE, ONE, *taps, False)  # type: ignore[attr-defined]
    assert read(out, 1) == [4.5]


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
            x, 0, F32, storage([0.0]), 0, F32, 1, PLANE, ONE, ONE, (0, 3, 0), (1.0, 1.0, 1.0), False
        ),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_operands_are_refused(name: str) -> None:
    text, call = WRONG[name]
    with pytest.raises((ValueError, RuntimeError), match=text):
        call(native(), nine())
