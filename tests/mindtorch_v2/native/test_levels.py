"""Loops that are compiled for each level of instructions, against NumPy, at levels below the CPU's own.

Invariant: which level runs is MINDTORCH_CPU's choice, made when the module is loaded, so each has a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch

SIZES = (0, 1, 7, 33, 1000)
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")


def drawn(name: str, *shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if name in INTEGERS:
        return rng.integers(0 if name == "uint8" else -9, 10, shape).astype(name)
    return rng.uniform(-3, 3, shape).astype(name)


def same(got: Any, want: Any, rtol: float = 0.0) -> None:
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=rtol)


def check_pointwise() -> None:
    for name in (*INTEGERS, *FLOATS):
        for n in SIZES:
            x, y = drawn(name, n), drawn(name, n, seed=1)
            a, b = torch.from_numpy(x), torch.from_numpy(y)
            for function in ("add", "multiply", "subtract", "maximum", "less", "not_equal"):
                same(getattr(torch, function)(a, b), getattr(np, function)(x, y))
            same(a + 2, x + x.dtype.type(2))
            same(3 - a, x.dtype.type(3) - x)
            same(-a, -x)
            same(a == 2, x == 2)
            same(torch.abs(a), np.abs(x))
            same(torch.addcmul(a, a, b), x + x * y, 1e-6 if name == "float32" else 1e-14)
    for name, rtol in (("float32", 2e-6), ("float64", 1e-14)):
        x = drawn(name, 1000)
        a = torch.from_numpy(x)
        same(torch.sqrt(a.abs()), np.sqrt(np.abs(x)))
        same(torch.exp(a), np.exp(x), rtol)
        same(torch.tanh(a), np.tanh(x), rtol)
        same(a**3, x * x * x, rtol)
        same(torch.nn.functional.silu(a), x / (1 + np.exp(-x)), rtol)
        z = torch.complex(a, a + 1)
        same(torch.angle(z), np.angle(z.numpy()), rtol)
        same(torch.reciprocal(z), 1 / z.numpy(), 4 * rtol)


def check_reductions() -> None:
    for name in (*INTEGERS, *FLOATS):
        for rows, columns in ((1, 1), (3, 7), (40, 33), (5, 700), (700, 5)):
            x = drawn(name, rows, columns)
            a = torch.from_numpy(x)
            for dim in (0, 1):
                wide = x.astype("float64" if name in FLOATS else "int64")
                same(a.sum(dim), wide.sum(dim), 1e-5 if name == "float32" else 1e-13)
                same(torch.amax(a, dim), x.max(dim))
                same(torch.amin(a, dim), x.min(dim))
                same(torch.argmax(a, dim), x.argmax(dim))
                same(torch.any(a > 8, dim), (x > 8).any(dim))
                same(torch.all(a != 0, dim), (x != 0).all(dim))
                if name in FLOATS:
                    same(torch.linalg.vector_norm(a, 2, dim), np.sqrt((wide * wide).sum(dim)), 1e-5)


def check_casts() -> None:
    names = ("bool", *INTEGERS, *FLOATS)
    for source in names:
        for n in SIZES:
            x = np.abs(drawn(source, n))
            for target in names:
                same(torch.from_numpy(x).to(getattr(torch, target)), x.astype(target))
            if source in FLOATS:
                for half in (torch.float16, torch.bfloat16):
                    same(torch.from_numpy(x).to(half).float(), x, 8e-3)


def check_optimizers() -> None:
    """First steps, which are short formulas."""
    for name in FLOATS:
        p, g = drawn(name, 1000), drawn(name, 1000, seed=1)
        for kind, options, step in (
            (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}, 1.9 * g),
            (torch.optim.Adam, {"amsgrad": True}, g / (np.abs(g) + 1e-8)),
            (torch.optim.Adagrad, {}, g / (np.abs(g) + 1e-10)),
        ):
            for fused in (False, True):
                parameter = torch.nn.Parameter(torch.from_numpy(p.copy()))
                parameter.grad = torch.from_numpy(g.copy())
                kind([parameter], lr=0.1, fused=fused, **options).step()
                same(parameter.detach(), p - 0.1 * step, 2e-6)


def check() -> None:
    check_pointwise()
    check_reductions()
    check_casts()
    check_optimizers()


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_loops_of_a_level(level: str) -> None:
    run = "from tests.mindtorch_v2.native.test_levels import check; check()"
    subprocess.run([sys.executable, "-c", run], check=True, env={**os.environ, "MINDTORCH_CPU": level})
