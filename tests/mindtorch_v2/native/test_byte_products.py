"""Products of matrices of bytes.

Invariant: sums are exact, for every layout, level of instructions and number of threads.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _native

SIZES = [(1, 1, 1), (3, 5, 7), (16, 64, 16), (33, 65, 31), (100, 300, 50), (130, 127, 257), (20, 1000, 40),
         (40, 2100, 33)]  # fmt: skip


def compare() -> None:
    torch.manual_seed(0)
    for m, k, n in SIZES:
        for dtype, low in ((torch.int8, -128), (torch.uint8, 0)):
            for turned in range(4):
                a = torch.randint(low, low + 256, (k, m) if turned & 1 else (m, k)).to(dtype)
                b = torch.randint(-128, 128, (n, k) if turned & 2 else (k, n)).to(torch.int8)
                a, b = a.t() if turned & 1 else a, b.t() if turned & 2 else b
                got = torch._int_mm(a, b)
                assert got.dtype is torch.int32 and torch.equal(got.long(), a.long() @ b.long()), (m, k, n, turned)
    a = torch.full((32, 4096), -128, dtype=torch.int8)
    assert torch._int_mm(a, a.t()).eq(128 * 128 * 4096).all()


@pytest.mark.parametrize("threads", [1, 16])
def test_against_int64(threads: int) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        compare()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_levels_of_instructions(level: str) -> None:
    run = "from tests.mindtorch_v2.native import test_byte_products as t; t.compare()"
    subprocess.run([sys.executable, "-c", run], check=True, env={**os.environ, "MINDTORCH_CPU": level})


def test_what_the_native_function_refuses() -> None:
    a, out = torch.zeros(4, 4, dtype=torch.int8), torch.zeros(4, 4, dtype=torch.int32)
    small, wide = (a._storage, 0, (4, 1), a.dtype.code), (out._storage, 0, (4, 1), out.dtype.code)
    with pytest.raises((ValueError, RuntimeError)):
        _native.gemm_bytes(*wide, *small, *wide, 4, 4, 4)
    with pytest.raises((ValueError, RuntimeError)):
        _native.gemm_bytes(*small, *small, *wide, 5, 4, 4)
