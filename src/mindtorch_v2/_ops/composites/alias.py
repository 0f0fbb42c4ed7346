"""Other names for operators.

Invariant: an alias has no kernels, rule or derivative; its calls are calls of the operator it names.
"""
from __future__ import annotations

from typing import Any, Final, final

from ..._dispatch.op import Kernel, Op
from ..._mypyc import i64


@final
class Renamed(Kernel):
    """A composite kernel that is one call of another operator with the same arguments."""

    def __init__(self, target: Op) -> None:
        self.target: Final = target
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        return self.target.call(args)
