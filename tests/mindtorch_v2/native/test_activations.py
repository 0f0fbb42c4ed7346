"""Activation functions and their gradients: how far they are from float64, and what they make of special values.

Invariant: in float32 the largest error is at most one and a half times PyTorch's on the same numbers, and NaN and
infinities are where PyTorch has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch

Call = Callable[[Any, Any], Any]
FUNCTIONS: dict[str, Call] = {
    "log1p": lambda t, x: t.log1p(x),
    "expm1": lambda t, x: t.expm1(x),
    "elu": lambda t, x: t.nn.functional.elu(x, 0.7),
    "celu": lambda t, x: t.nn.functional.celu(x, 1.3),
    "selu": lambda t, x: t.nn.functional.selu(x),
    "leaky_relu": lambda t, x: t.nn.functional.leaky_relu(x, 0.2),
    "softplus": lambda t, x: t.nn.functional.softplus(x),
    "softplus, beta 2": lambda t, x: t.nn.functional.softplus(x, 2, 10),
    "logsigmoid": lambda t, x: t.nn.functional.logsigmoid(x),
    "mish": lambda t, x: t.nn.functional.mish(x),
    "hardswish": lambda t, x: t.nn.functional.hardswish(x),
    "hardsigmoid": lambda t, x: t.nn.functional.hardsigmoid(x),
    "hardtanh": lambda t, x: t.nn.functional.hardtanh(x, -0.5, 0.7),
    "hardshrink": lambda t, x: t.nn.functional.hardshrink(x),
    "softshrink": lambda t, x: t.nn.functional.softshrink(x),
}
SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-45,
    1e-38,
    88.7,
    -87.5,
    -104.0,
    3.0,
    -3.0,
    20.0,
    1.0,
    -0.99999,
]


def numbers() -> Any:
    """Of every magnitude, special ones among them, in such a number that vectors do not come out even."""
    normal = np.random.default_rng(0).standard_normal((7, 2000))
    scaled = normal * np.array([1e-40, 1e-6, 1e-3, 0.3, 1, 5, 60])[:, None]
    return np.concatenate([scaled.ravel(), SPECIAL]).astype(np.float32)


def both_ways(t: Any, call: Call, values: Any) -> tuple[Any, Any]:
    """The result and the gradient of a weighted sum of it."""
    x = t.from_numpy(values.copy()).requires_grad_()
    weights = t.from_numpy(np.cos(np.arange(values.size)).astype(values.dtype))
    with np.errstate(all="ignore"):
        out = call(t, x)
        (grad,) = t.autograd.grad(out, x, weights)
    return out.detach().numpy(), grad.numpy()


def worst(got: Any, exact: Any) -> float:
    """The largest error in units of float32's rounding, where the exact result is an ordinary number."""
    with np.errstate(all="ignore"):
        ordinary = np.isfinite(exact) & np.isfinite(exact.astype(np.float32))
        unit = np.maximum(np.abs(exact[ordinary]), np.finfo(np.float32).tiny) * 2.0**-24
        return float(np.max(np.abs(got[ordinary].astype(np.float64) - exact[ordinary]) / unit))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_at_most_pytorchs(name: str, oracle: Any) -> None:
    values = numbers()
    exact = both_ways(oracle, FUNCTIONS[name], values.astype(np.float64))
    theirs = both_ways(oracle, FUNCTIONS[name], values)
    mine = both_ways(torch, FUNCTIONS[name], values)
    for got, wanted, true in zip(mine, theirs, exact):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
        np.testing.assert_array_equal(got[np.isinf(wanted)], wanted[np.isinf(wanted)])
        assert worst(got, true) <= 1.5 * worst(wanted, true) + 0.5


@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes_and_layouts_agree(name: str) -> None:
    """float64, rounded, is what float32 says; two-byte floats are float32, rounded; strides change nothing."""
    values = np.random.default_rng(1).standard_normal((40, 30)).astype(np.float32) * 3
    call = FUNCTIONS[name]
    result = call(torch, torch.from_numpy(values))
    wide = call(torch, torch.from_numpy(values).double())
    np.testing.assert_allclose(result.numpy(), wide.numpy(), rtol=2e-5, atol=1e-6)
    for half in (torch.float16, torch.bfloat16):
        small = torch.from_numpy(values).to(half)
        assert torch.equal(call(torch, small).nan_to_num(), call(torch, small.float()).to(half).nan_to_num())
    spread = torch.from_numpy(np.repeat(values.T, 2, axis=1).copy())[:, ::2].t()
    assert torch.equal(call(torch, spread).nan_to_num(), result.nan_to_num())
