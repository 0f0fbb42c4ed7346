"""The transforms of `torch.func` where PyTorch has them."""

from __future__ import annotations

from typing import Any

from ..func import debug_unwrap, functionalize, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ..func._arguments import check_argnums

__all__ = ["debug_unwrap", "functionalize", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


def _as_tuple(val: Any) -> tuple[Any, ...]:
    """A tuple, of one value if it is none."""
    return val if isinstance(val, tuple) else (val,)


def _slice_argnums(args: tuple[Any, ...], argnums: int | tuple[int, ...], as_tuple: bool = True) -> Any:
    """The arguments that `argnums` means."""
    check_argnums(argnums, len(args))
    if isinstance(argnums, int):
        return (args[argnums],) if as_tuple else args[argnums]
    return tuple(args[i] for i in argnums)
