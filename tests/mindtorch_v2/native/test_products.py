"""Large matrix products: packed panels, dot products, complex parts, two-byte floats.

Invariant: every way a product can be computed is met by some size here, in every layout; the results are compared with
float64 sums, and do not depend on the number of threads. The levels of instructions are tested by `MINDTORCH_CPU`.
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

from ._arrays import BFLOAT16, Array, close, code, layouts, new, operand, random, read, tensor, values

# Edges of tiles and blocks; more k than one block; few rows, few columns; one row, one column.
SIZES = [(130, 113, 129), (70, 260, 257), (5, 300, 520), (300, 9, 300), (12, 40, 600), (1, 700, 70), (700, 1, 70),
         (1, 130, 33), (64, 64, 1300), (200, 1030, 17), (300, 130, 1), (33, 700, 1)]  # fmt: skip
DTYPES = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]


def dtype_of(name: str) -> Any:
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def exact(a: Array, b: Array) -> Array:
    kind = np.complex128 if a.dtype.kind == "c" else np.float64
    return a.astype(kind) @ b.astype(kind)


def gemm(a: Array, b: Array, alpha: Any = 1) -> Array:
    (m, k), n = a.shape, b.shape[1]
    out = _native.gemm(*operand(a)[:3], *operand(b)[:3], *new((m, n), a.dtype)[:3], code(a.dtype), m, n, k, alpha, 0)
    return read(out, (m, n), a.dtype)


@pytest.mark.parametrize("name", DTYPES)
def test_sizes_and_layouts(name: str) -> None:
    dtype = dtype_of(name)
    for m, n, k in SIZES:
        a, b = random((m, k), dtype), random((k, n), dtype, seed=1)
        want, scale = exact(a, b), float(np.sqrt(k))
        for x in layouts(a):
            for y in layouts(b):
                close(gemm(x, y), want, scale)


@pytest.mark.parametrize("name", DTYPES)
def test_results_into_layouts(name: str) -> None:
    dtype = dtype_of(name)
    for m, n, k in [(130, 113, 129), (6, 300, 520), (300, 1, 80)]:
        a, b, bias = random((m, k), dtype), random((k, n), dtype, seed=1), random((n,), dtype, seed=3)
        scale = 6 * float(np.sqrt(k))
        for target in layouts(random((m, n), dtype, seed=2)):
            old = target.astype(np.complex128 if dtype.kind == "c" else np.float64)
            _native.gemm(*operand(a)[:3], *operand(b)[:3], *operand(target)[:3], code(dtype), m, n, k, 2, 3)
            close(target, 2 * exact(a, b) + 3 * old, scale)
            _native.addmm(
                *operand(np.broadcast_to(bias, (m, n)))[:3], *operand(a)[:3], *operand(b)[:3], *operand(target)[:3],
                code(dtype), m, n, k, 1, -1,
            )  # fmt: skip
            close(target, exact(a, b) - bias.astype(old.dtype), scale)
            target[...] = np.nan
            _native.gemm(*operand(a)[:3], *operand(b)[:3], *operand(target)[:3], code(dtype), m, n, k, 1, 0)
            close(target, exact(a, b), scale)


@pytest.mark.parametrize("name", DTYPES)
def test_batches(name: str) -> None:
    dtype = dtype_of(name)
    for batch, m, n, k in [(3, 120, 115, 113), (9, 130, 64, 180), (5, 2, 90, 64)]:
        a, b = random((batch, m, k), dtype), random((batch, k, n), dtype, seed=1)
        for x, y in zip(layouts(a), layouts(b)):
            out = _native.bgemm(
                *operand(x)[:3], *operand(y)[:3], *new((batch, m, n), dtype)[:3], code(dtype), batch, m, n, k, 1, 0
            )
            close(read(out, (batch, m, n), dtype), exact(a, b), float(np.sqrt(k)))


def test_any_number_of_threads() -> None:
    before = torch.get_num_threads()
    try:
        for name in DTYPES:
            dtype = dtype_of(name)
            for m, n, k in [(257, 300, 300), (7, 1500, 300), (2000, 33, 130)]:
                a, b = random((m, k), dtype), random((k, n), dtype, seed=1)
                found = []
                for threads in (1, 2, 3, 16):
                    torch.set_num_threads(threads)
                    found.append(gemm(a, b).copy())
                for other in found[1:]:
                    np.testing.assert_array_equal(found[0].view(np.uint8), other.view(np.uint8))
    finally:
        torch.set_num_threads(before)


def test_numbers_that_are_none() -> None:
    a, b = random((130, 129), np.float32), random((129, 120), np.float32, seed=1)
    a[3, 7], b[5, 9] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        want = exact(a, b)
    close(gemm(a, b), want, 20)
    assert np.isnan(gemm(a, b)[:, 9]).all()


@pytest.mark.oracle
def test_error_as_small_as_pytorch_s(torch: Any) -> None:
    for m, n, k in [(128, 128, 128), (100, 300, 1000), (300, 100, 3000), (4, 512, 2048), (1, 512, 2048)]:
        a, b = random((m, k), np.float32), random((k, n), np.float32, seed=1)
        want = exact(a, b)

        def error(got: Array, want: Array = want) -> float:
            return float(np.sqrt(np.mean((got.astype(np.float64) - want) ** 2)))

        theirs = error(values(torch, tensor(torch, a) @ tensor(torch, b)))
        assert error(gemm(a, b)) <= 1.5 * theirs, (m, n, k)


LEVELS = """
import numpy as np
from mindtorch_v2 import _native
from tests.mindtorch_v2.native import test_products as t
assert _native.cpu_level() == {level!r}, _native.cpu_level()
for name in t.DTYPES:
    t.test_sizes_and_layouts(name)
"""


@pytest.mark.parametrize("level", ["baseline", "avx2"])
def test_levels_of_instructions(level: str) -> None:
    order = ["baseline", "avx2", "avx512"]
    if order.index(level) >= order.index(_native.cpu_level()):
        level = _native.cpu_level()
    subprocess.run([sys.executable, "-c", LEVELS.format(level=level)], check=True,
                   env={**os.environ, "MINDTORCH_CPU": level})  # fmt: skip
