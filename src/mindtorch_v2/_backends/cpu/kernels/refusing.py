"""Kernels whose operator refuses some dtypes, or several in one call (`cpu/refused.py`).

Invariant: what the operator's rule says of the arguments comes first; nothing has been written when a dtype is refused.
"""

from __future__ import annotations

from typing import Any, Final, final

from ...._device import CPU
from ...._dispatch.op import Kernel, Op, Spec
from ...._dtype import dtype, float32, int64
from ...._dtype_names import cpp_name
from ...._mypyc import i64
from ...._ops.rules.dtype_checks import not_implemented
from ...._promotion import can_cast
from ...._tensor_base import TensorBase, numel
from ..refused import ALIKE, REFUSED


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


@final
class OneDtype(Kernel):
    """`kernel`, but for tensors on the CPU of several dtypes that PyTorch's kernel does not take together."""

    def __init__(self, kernel: Kernel, said: Any) -> None:
        self.kernel: Final = kernel
        self.said: Final = said
        self.first: Final[i64] = said.first
        self.others: Final[tuple[int, ...]] = said.others + said.parameters
        self.whole: Final[i64] = said.whole
        self.calls_ops = kernel.calls_ops
        self.guarded = kernel.guarded

    def mixed(self, args: tuple[Any, ...]) -> bool:
        first = args[self.first]
        if not isinstance(first, TensorBase):
            return False
        dt = first._dtype
        for i in self.others:
            t = args[i] if i < len(args) else None
            if isinstance(t, TensorBase) and t._dtype is not dt:
                return True
        if self.whole >= 0:
            places = args[self.whole]
            return isinstance(places, TensorBase) and places._dtype is not int64
        return False

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        if self.mixed(args):
            self.refuse(op, args)
        return self.kernel.run(op, args, keys)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        if self.mixed(args):
            self.refuse(op, args)
        return self.kernel.into(op, args, spec, out)

    def parts_into(self, args: tuple[Any, ...], out: TensorBase) -> bool:
        return not self.mixed(args) and self.kernel.parts_into(args, out)  # `run` refuses it

    def refuse(self, op: Op, args: tuple[Any, ...]) -> None:
        first = args[self.first]
        if first._device is not CPU or (self.said.idle and numel(first) == 0):
            return
        why = self.reason(args, first._dtype)
        if why is None:
            return
        if op.rule is not None:
            try:
                op.rule.infer(args)
            except NotImplementedError:
                pass  # which dtypes fit together comes before which are served
        raise why

    def reason(self, args: tuple[Any, ...], want: dtype) -> Exception | None:
        said = self.said
        for i in self.others:
            t = args[i]
            if not isinstance(t, TensorBase) or t._dtype is want:
                continue
            got = t._dtype
            if i in said.parameters and got is float32 and want.is_floating_point and want.itemsize == 2:
                continue
            if (int(said.accepts) >> int(want.code)) & 1 == 0:
                return not_implemented(said.kernel, want)
            if said.casts and can_cast(got, want):
                continue
            words: str = said.own.get(int(i), said.words)
            return RuntimeError(words.format(want=want.scalar_name, got=got.scalar_name, c_want=cpp_name(want),
                                             c_got=cpp_name(got)))
        if self.whole >= 0 and args[self.whole]._dtype is not int64:
            return RuntimeError(f"expected scalar type Long but found {args[self.whole]._dtype.scalar_name}")
        return None


def refusing(op: Op, kernel: Kernel) -> Kernel:
    """The kernel that serves the operator on the CPU: itself, unless some dtypes are refused."""
    found: Any = REFUSED.get(op.name)
    if found is not None:
        kernel = Refusing(kernel, found[0], found[1])
    alike: Any = ALIKE.get(op.name)
    return kernel if alike is None else OneDtype(kernel, alike)
