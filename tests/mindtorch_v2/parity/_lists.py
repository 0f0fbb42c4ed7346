"""Samples for the rows over lists of tensors (`_foreach_*`), made from their schemas.

Invariant: every overload of such a row gets one call that runs in either library.
"""

from __future__ import annotations

from typing import Any

from .._subject import submodule
from . import _infos
from ._own import Sample


def rows() -> list[str]:
    return [name for name in _infos.row_names() if name.startswith("_foreach_")]


def _argument(t: Any, kind: str, place: int) -> Any:
    if kind == "Tensor[]":
        return [t.tensor([0.25, 0.5, 0.75]) + 0.125 * place, t.full((2, 2), 0.5)]
    return {"Scalar": 2.0, "Scalar[]": [0.5, 2.0], "Tensor": t.tensor(3.0)}[kind]


class Call:
    """One overload; in place, the written list is the result."""

    def __init__(self, op: Any) -> None:
        self.name = op.title()
        self.kinds = [a.kind + ("[]" if a.is_list else "") for a in op.schema.args if not a.has_default]
        # A number for each pair of factors, in one tensor.
        self.packed = self.name.startswith("_foreach_addc") and self.kinds[-1] == "Tensor"

    def __call__(self, t: Any) -> Any:
        given = [_argument(t, kind, place) for place, kind in enumerate(self.kinds)]
        if self.packed:
            given[-1] = t.tensor([1.0, 2.0])
        if self.name == "_foreach_mm":
            given = [tensors[1:] for tensors in given]  # the matrices
        # One tensor for all is a form of its own beside a number only where something else sets it apart.
        with_alpha = self.name.startswith("_foreach_add") and self.kinds[-1] == "Tensor" and not self.packed
        more = {"alpha": 2.0} if with_alpha else {}
        made = getattr(t, self.name)(*given, **more)
        return list(given[0] if self.name.endswith("_") else made)


def samples(row: str) -> list[Sample]:
    return [Call(op) for op in submodule("_dispatch.registry").ops() if op.title() == row and op.row is not None]
