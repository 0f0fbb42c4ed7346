"""`torch._decomp`: operators in terms of others, for `make_fx`.

Invariant: an entry gives what the operator gives; what is registered by others is used as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import _operators
from .._operators import OpOverload, OpOverloadPacket

__all__ = [
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "meta_table",
    "pre_autograd_decomposition_table",
    "register_decomposition",
]

global_decomposition_table: dict[str, dict[Any, Callable[..., Any]]] = {
    "post_autograd": {},
    "pre_autograd": {},
    "meta": {},
}
decomposition_table = global_decomposition_table["post_autograd"]
pre_autograd_decomposition_table = global_decomposition_table["pre_autograd"]
meta_table = global_decomposition_table["meta"]


def _overloads(op: Any) -> list[Any]:
    if isinstance(op, OpOverloadPacket):
        return [getattr(op, name) for name in op.overloads()]
    return [op]


def register_decomposition(
    aten_op: Any, registry: dict[Any, Any] | None = None, *, type: str = "post_autograd", unsafe: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function stands for an operator, or for several."""
    if type not in global_decomposition_table:
        raise AssertionError(f"type must be one of {sorted(global_decomposition_table)}, got {type!r}")
    table = global_decomposition_table[type] if registry is None else registry

    def noted(fn: Callable[..., Any]) -> Callable[..., Any]:
        given = aten_op if isinstance(aten_op, (list, tuple, set)) else [aten_op]
        for op in [o for each in given for o in _overloads(each)]:
            if op in table and not unsafe:
                raise RuntimeError(f"duplicate registrations for {op}")
            table[op] = fn
        return fn

    return noted


def get_decompositions(
    aten_ops: Sequence[OpOverload | OpOverloadPacket], type: str = "post_autograd"
) -> dict[OpOverload, Callable[..., Any]]:
    """The functions that stand for the given operators; those without one are left out."""
    if type not in global_decomposition_table:
        raise AssertionError(f"type must be one of {sorted(global_decomposition_table)}, got {type!r}")
    table = global_decomposition_table[type]
    return {op: table[op] for each in aten_ops for op in _overloads(each) if op in table}


def remove_decompositions(
    decompositions: dict[OpOverload, Callable[..., Any]], aten_ops: Iterable[OpOverload | OpOverloadPacket]
) -> None:
    """Take operators out of a table."""
    for each in aten_ops:
        for op in _overloads(each):
            decompositions.pop(op, None)


def core_aten_decompositions() -> dict[OpOverload, Callable[..., Any]]:
    """The functions for operators that are not among PyTorch's core ones."""
    return dict(decomposition_table)


def _own() -> None:
    """Enter what stands in `decompositions`."""
    from . import decompositions

    for name, fn in decompositions.OWN.items():
        packet, _, overload = name.partition(".")
        op = getattr(getattr(_operators.ops.aten, packet), overload or "default")
        decomposition_table[op] = fn


_own()
