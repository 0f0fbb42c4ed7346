"""The transforms of `torch.func` where PyTorch has them."""

from __future__ import annotations

from ..func import debug_unwrap, functionalize, hessian, jacfwd, jacrev, jvp, linearize, vjp

__all__ = ["debug_unwrap", "functionalize", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]
