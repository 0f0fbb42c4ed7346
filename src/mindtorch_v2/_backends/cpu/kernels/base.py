"""From operators to native kernels: unpack tensors into (storage, offset, strides, dtype); the rule shapes the result.

Invariant: shapes and dtypes come from the row's rule; nothing here works one out.
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from .... import _native
from ...._device import CPU, device
from ...._dispatch.keys import CPU as CPU_KEY
from ...._dispatch.op import Kernel, Op, Rule, Spec
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase, make
from ...common.runtime import RUNTIMES, Runtime

_unary: Final[Any] = _native.unary
_binary: Final[Any] = _native.binary
_ternary: Final[Any] = _native.ternary
_copy: Final[Any] = _native.copy
_fill: Final[Any] = _native.fill
_Storage: Final[Any] = _native.Storage


@final
class CpuRuntime(Runtime):
    def allocate(self, nbytes: int, dev: device) -> Any:
        return _Storage(nbytes)

    def copy(self, dst: TensorBase, src: TensorBase) -> None:
        _copy(
            dst._storage,
            int(dst._offset),
            dst._stride,
            dst._dtype.code,
            src._storage,
            int(src._offset),
            expand_strides(src, dst._shape),
            src._dtype.code,
            dst._shape,
        )

    def fill(self, dst: TensorBase, value: Any) -> None:
        _fill(dst._storage, int(dst._offset), dst._stride, dst._dtype.code, dst._shape, value)


RUNTIMES[int(CPU_KEY)] = CpuRuntime()


def rule_of(op: Op) -> Rule:
    rule = op.rule
    if rule is None:
        raise NotImplementedError(f"operator '{op.name}' has no shape rule")
    return rule


@final
class Unary(Kernel):
    """`out = code(a)`."""

    def __init__(self, code: int) -> None:
        self.code: Final = code

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        assert isinstance(s, Spec)
        a = args[0]
        assert isinstance(a, TensorBase)
        data = _unary(
            self.code,
            a._storage,
            int(a._offset),
            a._stride,
            a._dtype.code,
            None,
            0,
            s.stride,
            s.dtype.code,
            s.shape,
            s.compute.code,
        )
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        a = args[0]
        assert isinstance(a, TensorBase)
        _unary(
            self.code,
            a._storage,
            int(a._offset),
            a._stride,
            a._dtype.code,
            out._storage,
            int(out._offset),
            out._stride,
            out._dtype.code,
            out._shape,
            spec.compute.code,
        )
        return True


@final
class Binary(Kernel):
    """`out = code(a, b)`; `alpha` is the position of the scale argument, -1 for none; `swap` exchanges the operands."""

    def __init__(self, code: int, alpha: int, swap: bool) -> None:
        self.code: Final = code
        self.alpha: Final = alpha
        self.swap: Final = swap

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        assert isinstance(s, Spec)
        data = self.launch(args, s, None, 0, s.stride, s.dtype.code)
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        self.launch(args, spec, out._storage, int(out._offset), out._stride, out._dtype.code)
        return True

    def launch(self, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...], code: int) -> Any:
        a = args[0]
        b = args[1]
        if self.swap:
            a, b = b, a
        alpha: Any = 1
        if self.alpha >= 0:
            alpha = args[self.alpha]
        shape = s.shape
        if isinstance(a, TensorBase):
            if isinstance(b, TensorBase):
                return _binary(
                    self.code,
                    a._storage,
                    int(a._offset),
                    expand_strides(a, shape),
                    a._dtype.code,
                    b._storage,
                    int(b._offset),
                    expand_strides(b, shape),
                    b._dtype.code,
                    out,
                    offset,
                    stride,
                    code,
                    shape,
                    s.compute.code,
                    alpha,
                )
            return _binary(
                self.code,
                a._storage,
                int(a._offset),
                expand_strides(a, shape),
                a._dtype.code,
                b,
                0,
                (),
                0,
                out,
                offset,
                stride,
                code,
                shape,
                s.compute.code,
                alpha,
            )
        if not isinstance(b, TensorBase):
            return _binary(self.code, a, 0, (), 0, b, 0, (), 0, out, offset, stride, code, shape, s.compute.code, alpha)
        return _binary(
            self.code,
            a,
            0,
            (),
            0,
            b._storage,
            int(b._offset),
            expand_strides(b, shape),
            b._dtype.code,
            out,
            offset,
            stride,
            code,
            shape,
            s.compute.code,
            alpha,
        )


@final
class Ternary(Kernel):
    """`out = code(a, b, c)`; operands by position in the arguments."""

    def __init__(self, code: int, alpha: int) -> None:
        self.code: Final = code
        self.alpha: Final = alpha

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        s = rule_of(op).infer(args)
        assert isinstance(s, Spec)
        data = self.launch(args, s, None, 0, s.stride, s.dtype.code)
        return make(data, 0, s.shape, s.stride, s.dtype, CPU, CPU_KEY)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        self.launch(args, spec, out._storage, int(out._offset), out._stride, out._dtype.code)
        return True

    def launch(self, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...], code: int) -> Any:
        # A number stands for itself; what it has instead of an offset, strides and a dtype is ignored.
        a: Any = args[0]
        b: Any = args[1]
        c: Any = args[2]
        a_offset = b_offset = c_offset = 0
        a_stride: tuple[int, ...] = ()
        b_stride: tuple[int, ...] = ()
        c_stride: tuple[int, ...] = ()
        a_code = b_code = c_code = 0
        shape = s.shape
        if isinstance(a, TensorBase):
            a_offset, a_stride, a_code = int(a._offset), expand_strides(a, shape), int(a._dtype.code)
            a = a._storage
        if isinstance(b, TensorBase):
            b_offset, b_stride, b_code = int(b._offset), expand_strides(b, shape), int(b._dtype.code)
            b = b._storage
        if isinstance(c, TensorBase):
            c_offset, c_stride, c_code = int(c._offset), expand_strides(c, shape), int(c._dtype.code)
            c = c._storage
        alpha: Any = 1
        if self.alpha >= 0:
            alpha = args[self.alpha]
        return _ternary(
            self.code,
            a,
            a_offset,
            a_stride,
            a_code,
            b,
            b_offset,
            b_stride,
            b_code,
            c,
            c_offset,
            c_stride,
            c_code,
            out,
            offset,
            stride,
            code,
            shape,
            s.compute.code,
            alpha,
        )
