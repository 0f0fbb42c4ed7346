"""CPU lines of the pointwise operators.

Invariant: every line is a native kernel; the long tail goes through SciPy on views of the same memory.
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
from ..numpy_view import np_view

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
    import numpy
    from scipy import special

    wide = "float64" if out._dtype.itemsize == 8 else "float32"
    x = np_view(self).astype(wide)
    with numpy.errstate(all="ignore"):
        np_view(out)[...] = _trigamma(x) if n == 1 else special.polygamma(n, x.astype("float64"))


def _trigamma(x: Any) -> Any:
    """PyTorch's series, in the precision of its argument, so that both err alike near the poles."""
    import numpy

    reflected = x < 0.5
    sine = numpy.sin(numpy.asarray(numpy.pi, x.dtype) * x)
    result = numpy.where(reflected, -(numpy.asarray(numpy.pi ** 2, x.dtype) / (sine * sine)), 0).astype(x.dtype)
    x = numpy.where(reflected, 1 - x, x)
    for _ in range(6):
        result += 1 / (x * x)
        x = x + 1
    z = 1 / (x * x)
    result += (1 + 1 / (2 * x) + z * (1 / 6 - z * (1 / 30 - z * (1 / 42)))) / x
    return numpy.where(reflected, -result, result)


cpu("polygamma", into(_polygamma))


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
