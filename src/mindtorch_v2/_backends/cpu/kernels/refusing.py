"""Kernels whose operator refuses some dtypes (`cpu/refused.py`).

Invariant: what the operator's rule says of the arguments comes first; nothing has been written when a dtype is refused.
"""

from __future__ import annotations

from typing import Any, Final, final

from ...._device import CPU
from ...._dispatch.op import Kernel, Op, Spec
from ...._mypyc import i64
from ...._ops.rules.dtype_checks import not_implemented
from ...._tensor_base import TensorBase, numel
from ..refused import REFUSED


@final
class Refusing(Kernel):
    """`kernel`, but for tensors on the CPU of the dtypes whose bits are set."""

    def __init__(self, kernel: Kernel, refused: int, name: str) -> None:
        self.kernel: Final = kernel
        self.refused: Final[i64] = refused
        self.name: Final = name
        self.calls_ops = kernel.calls_ops
        self.guarded = kernel.guarded

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        a = args[0]
        if isinstance(a, TensorBase) and (self.refused >> a._dtype.code) & 1:
            self.refuse(op, args, a)
        return self.kernel.run(op, args, keys)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        a = args[0]
        if isinstance(a, TensorBase) and (self.refused >> a._dtype.code) & 1:
            self.refuse(op, args, a)
        return self.kernel.into(op, args, spec, out)

    def parts_into(self, args: tuple[Any, ...], out: TensorBase) -> bool:
        a = args[0]
        if isinstance(a, TensorBase) and (self.refused >> a._dtype.code) & 1:
            return False  # `run` refuses it
        return self.kernel.parts_into(args, out)

    def refuse(self, op: Op, args: tuple[Any, ...], a: TensorBase) -> None:
        # Without elements there is nothing to compute, and PyTorch asks no kernel.
        if a._device is CPU and numel(a) > 0 and not promotes(a, args):
            if op.rule is not None:
                op.rule.infer(args)
            raise not_implemented(self.name, a._dtype)


def promotes(a: TensorBase, args: tuple[Any, ...]) -> bool:
    """Whether another operand gives the kernel another dtype; indices and masks do not."""
    b = args[1] if len(args) > 1 else None
    return isinstance(b, TensorBase) and b._dtype is not a._dtype and b._dtype.is_inexact


def refusing(op: Op, kernel: Kernel) -> Kernel:
    """The kernel that serves the operator on the CPU: itself, unless some dtypes are refused."""
    found: Any = REFUSED.get(op.name)
    return kernel if found is None else Refusing(kernel, found[0], found[1])
