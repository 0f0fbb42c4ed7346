"""Launches of the pointwise operators.

Invariant: a number among the operands goes to the native module as it is, with nothing for its offset and strides.
"""

from __future__ import annotations

from typing import Any, Final, final

from .... import _native
from ...._dispatch.op import Kernel, Op, Spec
from ...._dtype import float8_e8m0fnu, uint8
from ...._mypyc import i64
from ...._ops.rules.layout import expand_strides
from ...._tensor_base import TensorBase
from .base import OneResult

_unary: Final[Any] = _native.unary
_binary: Final[Any] = _native.binary
_ternary: Final[Any] = _native.ternary
_WHERE: Final[int] = _native.WHERE
_ISFINITE: Final[int] = _native.ISFINITE


@final
class Unary(OneResult):
    """`out = code(a)`."""

    def __init__(self, code: int) -> None:
        self.code: Final = code

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return True

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        return _unary(
            self.code,
            a._storage, int(a._offset), a._stride, a._dtype.code,
            out, offset, stride, code,
            s.shape, s.compute.code)


@final
class IsFinite(OneResult):
    """Powers of two have no infinity to compare with, so PyTorch takes even their NaN for finite."""

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        return _unary(
            _ISFINITE,
            a._storage, int(a._offset), a._stride, uint8.code if a._dtype is float8_e8m0fnu else a._dtype.code,
            out, offset, stride, code,
            s.shape, uint8.code if a._dtype is float8_e8m0fnu else s.compute.code)


@final
class Binary(OneResult):
    """`out = code(a, b)`; `alpha` is the position of the scale argument, -1 for none; `swap` exchanges the operands."""

    def __init__(self, code: int, alpha: int, swap: bool) -> None:
        self.code: Final = code
        self.alpha: Final = alpha
        self.swap: Final = swap

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return True

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
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
                    a._storage, int(a._offset), expand_strides(a, shape), a._dtype.code,
                    b._storage, int(b._offset), expand_strides(b, shape), b._dtype.code,
                    out, offset, stride, code,
                    shape, s.compute.code, alpha)
            return _binary(
                self.code,
                a._storage, int(a._offset), expand_strides(a, shape), a._dtype.code,
                b, 0, (), 0,
                out, offset, stride, code,
                shape, s.compute.code, alpha)
        if not isinstance(b, TensorBase):
            return _binary(self.code, a, 0, (), 0, b, 0, (), 0, out, offset, stride, code, shape, s.compute.code, alpha)
        return _binary(
            self.code,
            a, 0, (), 0,
            b._storage, int(b._offset), expand_strides(b, shape), b._dtype.code,
            out, offset, stride, code,
            shape, s.compute.code, alpha)


@final
class Activation(OneResult):
    """`out = code(x)`, or `code(grad, x)` where `second` is the position of x; `numbers` are those of its numbers."""

    def __init__(self, code: int, second: int, numbers: tuple[int, ...]) -> None:
        self.code: Final = code
        self.second: Final = second
        self.numbers: Final = numbers

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return True

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        given: list[Any] = [0, 0, 0]
        k = 0
        for position in self.numbers:
            given[k] = args[position]
            k += 1
        a = args[0]
        assert isinstance(a, TensorBase)
        if self.second < 0:
            return _unary(
                self.code,
                a._storage, int(a._offset), a._stride, a._dtype.code,
                out, offset, stride, code,
                s.shape, s.compute.code, given[0], given[1], given[2])
        b = args[self.second]
        assert isinstance(b, TensorBase)
        shape = s.shape
        return _binary(
            self.code,
            a._storage, int(a._offset), expand_strides(a, shape), a._dtype.code,
            b._storage, int(b._offset), expand_strides(b, shape), b._dtype.code,
            out, offset, stride, code,
            shape, s.compute.code, 1, given[0], given[1], given[2])


@final
class Ternary(OneResult):
    """`out = code(a, b, c)`; `alpha` is the position of the scale argument, -1 for none."""

    def __init__(self, code: int, alpha: int) -> None:
        self.code: Final = code
        self.alpha: Final = alpha

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return True

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        alpha: Any = 1
        if self.alpha >= 0:
            alpha = args[self.alpha]
        return ternary(self.code, args[0], args[1], args[2], s, out, offset, stride, code, alpha)


@final
class MaskedFill(OneResult):
    """`where(mask, value, self)` over the arguments (self, mask, value)."""

    def writes(self, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return out._dtype is spec.dtype

    def launch(self, op: Op, args: tuple[Any, ...], s: Spec, out: Any, offset: int, stride: tuple[int, ...],
               code: int) -> Any:
        return ternary(_WHERE, args[1], args[2], args[0], s, out, offset, stride, code, 1)


def ternary(kernel: int, a: Any, b: Any, c: Any, s: Spec, out: Any, offset: int, stride: tuple[int, ...], code: int,
            alpha: Any) -> Any:
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
    return _ternary(
        kernel,
        a, a_offset, a_stride, a_code,
        b, b_offset, b_stride, b_code,
        c, c_offset, c_stride, c_code,
        out, offset, stride, code,
        shape, s.compute.code, alpha)


@final
class OfFloats(Kernel):
    """One kernel for floats, another for what else an operator takes. Looks at the first `count` arguments."""

    def __init__(self, count: int, floats: Kernel, rest: Kernel) -> None:
        self.count: Final = count
        self.floats: Final = floats
        self.rest: Final = rest
        self.calls_ops = True

    def pick(self, args: tuple[Any, ...]) -> Kernel:
        for i in range(self.count):
            a = args[i]
            if isinstance(a, TensorBase) and not a._dtype.is_floating_point:
                return self.rest
        return self.floats

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        return self.pick(args).run(op, args, keys)

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        return self.pick(args).into(op, args, spec, out)


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
