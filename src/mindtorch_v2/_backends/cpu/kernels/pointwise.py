"""CPU kernels of pointwise operators whose arguments choose the native kernel, or come in another order.

Invariant: shapes and dtypes come from the row's rule.
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from .... import _native
from ...._device import CPU
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dispatch.op import Kernel, Op, Spec
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase, make
from .base import rule_of

_ternary: Final[Any] = _native.ternary
_WHERE: Final[int] = _native.WHERE


@final
class Choice(Kernel):
    """One of several kernels, by the value of an argument."""

    def __init__(self, position: int, kernels: dict[Any, Kernel]) -> None:
        self.position: Final = position
        self.kernels: Final = kernels

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        return self.pick(op, args).run(op, args, keys)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return self.pick(op, args).into(op, args, spec, out)

    def pick(self, op: Op, args: tuple[Any, ...]) -> Kernel:
        kernel = self.kernels.get(args[self.position])
        if kernel is None:
            # The rule knows which values exist, and how to say so.
            op.infer(args)
            raise NotImplementedError(f"'{op.name}' has no CPU kernel for {args[self.position]!r}")
        return kernel


@final
class MaskedFill(Kernel):
    """`where(mask, value, self)` over the arguments (self, mask, value)."""

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        assert isinstance(s, Spec)
        data = self.launch(args, s, None, 0, s.stride)
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        if out._dtype is not spec.dtype:
            return False
        self.launch(args, spec, out._storage, int(out._offset), out._stride)
        return True

    def launch(self, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...]) -> Any:
        t = args[0]
        mask = args[1]
        value = args[2]
        assert isinstance(t, TensorBase) and isinstance(mask, TensorBase)
        shape = s.shape
        code = s.dtype.code
        if isinstance(value, TensorBase):
            return _ternary(
                _WHERE,
                mask._storage,
                int(mask._offset),
                expand_strides(mask, shape),
                mask._dtype.code,
                value._storage,
                int(value._offset),
                expand_strides(value, shape),
                value._dtype.code,
                t._storage,
                int(t._offset),
                expand_strides(t, shape),
                code,
                out,
                offset,
                stride,
                code,
                shape,
                code,
                1,
            )
        return _ternary(
            _WHERE,
            mask._storage,
            int(mask._offset),
            expand_strides(mask, shape),
            mask._dtype.code,
            value,
            0,
            (),
            0,
            t._storage,
            int(t._offset),
            expand_strides(t, shape),
            code,
            out,
            offset,
            stride,
            code,
            shape,
            code,
            1,
        )
