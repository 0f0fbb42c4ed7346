"""Products of two-byte floats that are not packed: few rows, short sums, every layout.

Invariant: operands are taken as they are, sums are float32's and results are rounded once; results do not depend on the
number of threads.
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

SIZES = [(1, 64, 40), (1, 700, 33), (3, 33, 300), (4, 1030, 17), (16, 32, 19), (13, 90, 150), (40, 64, 2), (5, 5, 5),
         (50, 1, 70), (37, 2, 129), (18, 9, 64), (65, 16, 65), (64, 15, 16), (60, 600, 70), (40, 130, 64),
         (150, 600, 3), (33, 1100, 100), (16, 31, 48), (12, 300, 100), (6, 65, 129), (100, 130, 9), (29, 66, 31),
         (130, 512, 33), (20, 2048, 40), (28, 1538, 16)]  # fmt: skip


def matrix(rng: Any, rows: int, columns: int, dtype: Any, layout: str) -> Any:
    """The same kind of numbers in memory that is dense by rows, by columns, or has gaps."""
    if layout == "columns":
        return torch.from_numpy(rng.standard_normal((columns, rows))).to(dtype).t()
    if layout == "gaps":
        return torch.from_numpy(rng.standard_normal((rows, columns, 2))).to(dtype)[:, :, 1]
    return torch.from_numpy(rng.standard_normal((rows, columns))).to(dtype)


def compare(dtype: Any) -> None:
    step = 2.0**-8 if dtype is torch.bfloat16 else 2.0**-11
    rng = np.random.default_rng(5)
    for m, k, n in SIZES:
        for one in ("rows", "columns", "gaps"):
            for two in ("rows", "columns", "gaps"):
                a, b = matrix(rng, m, k, dtype, one), matrix(rng, k, n, dtype, two)
                c = matrix(rng, m, n, dtype, two)
                want = a.double().numpy() @ b.double().numpy()
                scale = max(1.0, float(np.abs(want).max()))
                for got, exact in (
                    (a @ b, want),
                    (torch.addmm(c, a, b, beta=0.5, alpha=2), 0.5 * c.double().numpy() + 2 * want),
                    (torch.addmm(c[0], a, b), c[0].double().numpy() + want),
                    (torch.baddbmm(c[None], a[None], b[None])[0], c.double().numpy() + want),
                    (torch.mm(a, b, out=torch.empty((n, m), dtype=dtype).t()), want),
                    (torch.stack([a, a]) @ torch.stack([b, b]), np.stack([want, want])),
                ):
                    np.testing.assert_allclose(
                        got.double().numpy() / scale,
                        exact / scale,
                        rtol=step,
                        atol=2.0**-18,
                        err_msg=f"{m, k, n, one, two}",
                    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_against_doubles(dtype: Any) -> None:
    compare(dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_any_number_of_threads(dtype: Any) -> None:
    before = torch.get_num_threads()
    rng = np.random.default_rng(6)
    try:
        for m, k, n in [(3, 700, 3000), (2, 3000, 900), (900, 8, 700), (300, 300, 260), (260, 1100, 190)]:
            for two in ("rows", "columns"):
                a, b = matrix(rng, m, k, dtype, "rows"), matrix(rng, k, n, dtype, two)
                found = []
                for threads in (1, 2, 16):
                    torch.set_num_threads(threads)
                    found.append((a @ b).float().numpy())
                for other in found[1:]:
                    np.testing.assert_array_equal(found[0], other)
    finally:
        torch.set_num_threads(before)


def test_what_is_not_finite_and_what_is_tiny() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        a, b = torch.ones(2, 40, dtype=dtype), torch.ones(40, 64, dtype=dtype)
        a[0, 3], b[5, 7] = float("inf"), float("nan")
        for other in (b, b.t().contiguous().t()):
            got = (a @ other).float()
            assert got[:, 7].isnan().all() and int(got[0].isinf().sum()) == 63 and int(got[1].isfinite().sum()) == 63


LOWER = """
import os
from mindtorch_v2 import _native
from tests.mindtorch_v2.native import test_half_products as t
assert os.environ["MINDTORCH_CPU"].startswith(_native.cpu_level())
assert not _native.cpu_products()[1]
for dtype in (t.torch.bfloat16, t.torch.float16):
    t.compare(dtype)
"""


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512", "avx512_bf16"])
def test_levels_of_instructions(level: str) -> None:
    levels = ["baseline", "avx2", "avx512"]
    if levels.index(level.partition("_")[0]) > levels.index(_native.cpu_level()):
        pytest.skip("this CPU has no such level")
    subprocess.run([sys.executable, "-c", LOWER], check=True, env={**os.environ, "MINDTORCH_CPU": level})
