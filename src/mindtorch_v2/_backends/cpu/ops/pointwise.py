"""CPU lines of the pointwise operators.

Invariant: every line is a native kernel.
"""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dispatch.op import PartsKernel
from ...._finfo import finfo
from ...._ops.pointwise import equal, logaddexp_parts, nan_to_num_parts
from ...._tensor_base import is_contiguous
from ..kernels.pointwise import Choice, IsFinite, MaskedFill, OfFloats
from ..lines import binary, cpu, into, makes, ternary, unary

for _name in ("neg", "abs", "sign", "sgn", "reciprocal", "sqrt", "rsqrt", "square", "exp", "exp2", "expm1", "log",
              "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh",
              "atanh", "sinc", "erf", "erfc", "erfinv", "lgamma", "digamma", "ceil", "floor", "trunc", "round", "frac",
              "isnan", "isinf", "signbit", "logical_not", "bitwise_not", "angle"):
    cpu(_name, unary(_name.upper()))
for _name in ("mul", "div", "remainder", "fmod", "pow", "atan2", "hypot", "xlogy", "maximum", "minimum", "fmax", "fmin",
              "copysign", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "bitwise_and",
              "bitwise_or", "bitwise_xor", "lshift", "rshift"):
    cpu(_name, binary(_name.upper()))
cpu("isfinite", IsFinite())
cpu("logaddexp", OfFloats(2, binary("LOGADDEXP"), PartsKernel(logaddexp_parts)))
cpu("logaddexp2", binary("LOGADDEXP2"))
cpu("add", binary("ADD", alpha=2))
cpu("sub", binary("SUB", alpha=2))
cpu("rsub", binary("SUB", alpha=2, swap=True))
cpu("div.Tensor_mode", Choice(2, {None: binary("DIV"), "trunc": binary("TRUNC_DIV"), "floor": binary("FLOOR_DIV")}))
cpu("floor_divide", binary("FLOOR_DIV"))
cpu("clamp", ternary("CLAMP"))
cpu("clamp_min", binary("MAXIMUM"))
cpu("clamp_max", binary("MINIMUM"))
cpu("lerp", ternary("LERP"))
cpu("addcmul", ternary("ADDCMUL", alpha=3))
cpu("addcdiv", ternary("ADDCDIV", alpha=3))
cpu("bitwise_left_shift", binary("LSHIFT"))
cpu("bitwise_right_shift", binary("RSHIFT"))
cpu("where", ternary("WHERE"))
cpu("masked_fill", MaskedFill())
cpu("_abs_real", unary("ABS"))
cpu("_conj_physical", unary("CONJ"))


def _nan_to_num(out: Any, self: Any, nan: float | None, posinf: float | None, neginf: float | None) -> None:
    largest = finfo(self._dtype).max
    _native.unary(_native.NAN_TO_NUM, self._storage, int(self._offset), self._stride, self._dtype.code,
                  out._storage, int(out._offset), out._stride, out._dtype.code, self._shape, self._dtype.code,
                  0.0 if nan is None else nan, largest if posinf is None else posinf,
                  -largest if neginf is None else neginf)


cpu("nan_to_num", OfFloats(1, into(_nan_to_num, aliasing=True), PartsKernel(nan_to_num_parts)))


def _polygamma(out: Any, n: int, self: Any) -> None:
    code = out._dtype.code
    if n == 0:
        _native.unary(_native.DIGAMMA, self._storage, int(self._offset), self._stride, self._dtype.code,
                      out._storage, int(out._offset), out._stride, code, self._shape, code)
        return
    # The kernel reads the order as a number of its dtype: of larger ones only the sign, by their last bit, is left.
    order = n if n < 2**24 else 2**24 - 2 + (n & 1)
    _native.binary(_native.POLYGAMMA, self._storage, int(self._offset), self._stride, self._dtype.code, order, 0, (), 0,
                   out._storage, int(out._offset), out._stride, code, self._shape, code, 1)


cpu("polygamma", into(_polygamma, aliasing=True))
cpu("polygamma.method", into(lambda out, self, n: _polygamma(out, n, self), aliasing=True))


def _equal(self: Any, other: Any) -> bool:
    if (
        self._shape == other._shape and self._dtype is other._dtype and is_contiguous(self) and is_contiguous(other)
    ):
        found: bool | None = _native.equal(
            self._storage, int(self._offset), self._stride, self._dtype.code,
            other._storage, int(other._offset), other._stride, other._dtype.code, self._shape)
        if found is not None:
            return found
    return equal(self, other)


cpu("equal", makes(_equal))
