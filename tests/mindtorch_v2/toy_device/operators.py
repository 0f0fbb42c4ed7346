"""The toy's operators, one line each. Shapes, views, in-place forms and gradients come with the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from mindtorch_v2._backends.common.kernels import IntoKernel
from mindtorch_v2._dispatch import registry

from . import NAME, array

calls: list[str] = []


def toy(name: str, fn: Callable[..., Any]) -> None:
    """Serve an operator with a function of arrays."""

    def run(out: Any, *args: Any) -> None:
        calls.append(name)
        array(out)[...] = fn(*[array(a) if hasattr(a, "_storage") else a for a in args])

    registry.register(name, NAME, IntoKernel(run, False, False))


toy("add", lambda a, b, alpha: a + alpha * b)
toy("sub", lambda a, b, alpha: a - alpha * b)
toy("mul", lambda a, b: a * b)
toy("neg", lambda a: -a)
toy("exp", numpy.exp)
toy("sin", numpy.sin)
toy("cos", numpy.cos)
toy("relu", lambda a: numpy.maximum(a, 0))
toy("threshold_backward", lambda grad, a, threshold: numpy.where(a > threshold, grad, 0))
toy("sum", lambda a, dim, keepdim, dtype: a.sum(tuple(dim) if dim else None, keepdims=keepdim))
toy("mm", lambda a, b: a @ b)
toy("eq", lambda a, b: a == b)
