"""How a CPU line is written: `cpu("relu", unary("RELU"))`.

Invariant: a line names an operator that some row declares; a wrong name fails at import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _native
from ..._dispatch import registry
from ..._dispatch.keys import CPU
from ..._dispatch.op import FnKernel, Kernel
from ..common.kernels import IntoKernel
from .kernels.pointwise import Binary, Ternary, Unary


def cpu(name: str, kernel: Kernel) -> None:
    """Serve operator `name` on the CPU."""
    op = registry.get(name)
    op.kernels[int(CPU)] = kernel
    op.forget()


def unary(code: str) -> Kernel:
    return Unary(getattr(_native, code))


def binary(code: str, alpha: int = -1, swap: bool = False) -> Kernel:
    return Binary(getattr(_native, code), alpha, swap)


def ternary(code: str, alpha: int = -1) -> Kernel:
    return Ternary(getattr(_native, code), alpha)


def into(fn: Callable[..., Any], aliasing: bool = False, calls_ops: bool = False) -> Kernel:
    """`fn(out, *args)` writes into the result(s) the rule described. aliasing: `out` may be an input."""
    return IntoKernel(fn, aliasing, calls_ops)


def makes(fn: Callable[..., Any]) -> Kernel:
    """`fn(*args)` makes its own results (shapes that depend on data; kernels in terms of other operators)."""
    return FnKernel(fn)
