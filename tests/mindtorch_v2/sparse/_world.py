"""Tensors of every layout under short names, in both libraries, for calls that are written as text.

Invariant: both worlds hold the same tensors; a call sees fresh copies only where it asks for them with `cl`.
"""

from __future__ import annotations

import copy
import functools
from math import prod
from typing import Any

from .. import _oracle
from .._subject import subject
from . import _compare


def _tensors(t: Any, dtype: str) -> dict[str, Any]:
    dt = getattr(t, dtype)

    def some(*shape: int) -> Any:
        return (t.arange(1, 1 + prod(shape)).reshape(shape) % 7 - 3).to(dt)

    d = some(4, 6) if dtype in ("bool", "complex128") else some(4, 6) * (some(4, 6) > 0)
    d[1] = 0
    d[:, 2] = 0
    at = t.tensor([[1, 0, 1, 3, 3], [2, 5, 2, 0, 0]])
    found = {
        "d": d,
        "e": some(6, 5),
        "w": some(4, 6),
        "q": some(4, 4),
        "vec": some(6),
        "vec4": some(4),
        "three": some(2, 2, 5),
        "f45": t.ones(4, 5, dtype=dt),
        "s": d.to_sparse(),
        "u": t.sparse_coo_tensor(at, some(5), (4, 6)),
        "h": t.sparse_coo_tensor(at[:1], some(5, 6), (4, 6)),
        "x": t.sparse_coo_tensor(t.tensor([[0, 1, 1], [2, 0, 3], [1, 1, 0]]), some(3), (2, 4, 2)),
        "g": t.sparse_coo_tensor(t.tensor([[0, 1, 1], [2, 0, 3]]), some(3, 2), (2, 4, 2)),
        "o": t.sparse_coo_tensor(t.tensor([[1, 2, 1]]), some(3), (5,)),
        "z": t.sparse_coo_tensor((4, 6), dtype=dt),
        "c": d.to_sparse_csr(),
        "cc": d.to_sparse_csc(),
        "b": d.to_sparse_bsr((2, 3)),
        "bc": d.to_sparse_bsc((2, 2)),
        "c2": some(4, 6).to_sparse_csr(),
        "es": some(6, 5).to_sparse(),
        "e5": some(6, 5).to_sparse_csr(),
        "ch": some(2, 3, 2).to_sparse_csr(dense_dim=1),
        "cb": t.sparse_csr_tensor(
            t.tensor([[0, 2, 3], [0, 1, 3]]), t.tensor([[0, 1, 1], [0, 0, 1]]), some(2, 3), (2, 2, 3)
        ),
    }
    found["hc"] = found["h"].coalesce()
    return found


@functools.cache
def worlds(dtype: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the library under test, the oracle)"""
    oracle = _oracle.load()
    theirs = _tensors(oracle, dtype)
    ours = {name: _compare.converted(value) for name, value in theirs.items()}
    for world, library in ((ours, subject), (theirs, oracle)):
        world.update({"torch": library, "copy": copy, "cl": lambda v: v.clone()})
    return ours, theirs


def outcome(call: str, world: dict[str, Any]) -> tuple[Any, Exception | None]:
    try:
        return eval(call, dict(world)), None
    except Exception as error:
        return None, error
