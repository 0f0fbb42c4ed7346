"""NumPy's universal functions: one operator each, with NumPy's promotion, `out=`, `dtype=` and `casting=`.

Invariant: operands are cast before the operator runs, so that the operator never promotes by its own rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from ._dtypes import dtype_of_scalar, is_scalar, promote, scalar_beside
from ._normalizations import (
    ArrayLike,
    ArrayLikeOrScalar,
    CastingModes,
    DTypeLike,
    NotImplementedType,
    OutArray,
    normalizer,
)
from ._util import cast_int_to_float, typecast_tensor, typecast_tensors

Operator = Callable[..., Any]


def _result(result: torch.Tensor, out: Any, casting: Any) -> Any:
    """The result as the array to write into wants it."""
    if out is None:
        return result
    result = typecast_tensor(result, out.dtype.torch_dtype, casting)
    return torch.broadcast_to(result, out.shape)


# -- one operand ------------------------------------------------------------------------------------------------------
def _absolute(x: torch.Tensor) -> Any:
    return x if x.dtype is torch.bool else torch.absolute(x)


def _cube_root(x: torch.Tensor) -> Any:
    return torch.pow(x, 1 / 3)


def _conjugate(x: torch.Tensor) -> Any:
    return torch.conj_physical(x)


_UNARY: dict[str, Operator] = {
    "abs": _absolute,
    "absolute": _absolute,
    "arccos": torch.arccos,
    "arccosh": torch.arccosh,
    "arcsin": torch.arcsin,
    "arcsinh": torch.arcsinh,
    "arctan": torch.arctan,
    "arctanh": torch.arctanh,
    "bitwise_not": torch.bitwise_not,
    "cbrt": _cube_root,
    "ceil": torch.ceil,
    "conj": _conjugate,
    "conjugate": _conjugate,
    "cos": torch.cos,
    "cosh": torch.cosh,
    "deg2rad": torch.deg2rad,
    "degrees": torch.rad2deg,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "fabs": torch.absolute,
    # PyTorch's rounds to the nearest, and so does this one.
    "fix": torch.round,
    "floor": torch.floor,
    "invert": torch.bitwise_not,
    "isfinite": torch.isfinite,
    "isinf": torch.isinf,
    "isnan": torch.isnan,
    "log": torch.log,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "logical_not": torch.logical_not,
    "negative": torch.negative,
    "positive": torch.positive,
    "rad2deg": torch.rad2deg,
    "radians": torch.deg2rad,
    "reciprocal": torch.reciprocal,
    "rint": torch.round,
    "sign": torch.sign,
    "signbit": torch.signbit,
    "sin": torch.sin,
    "sinh": torch.sinh,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "tan": torch.tan,
    "tanh": torch.tanh,
    "trunc": torch.trunc,
}
# Those that compute with floating numbers what is given as whole ones.
_fp_unary = [
    *("arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "cos", "cosh", "deg2rad", "degrees"),
    *("exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "rad2deg", "radians", "reciprocal", "sin", "sinh"),
    *("sqrt", "square", "tan", "tanh", "trunc"),
]


def _unary_function(name: str, operator: Operator) -> Any:
    floating = name in _fp_unary

    @normalizer
    def function(
        x: ArrayLike,
        /,
        out: OutArray | None = None,
        *,
        where: Any = True,
        casting: CastingModes | None = "same_kind",
        order: Any = "K",
        dtype: DTypeLike | None = None,
        subok: NotImplementedType = False,
        signature: Any = None,
        extobj: Any = None,
    ) -> Any:
        if dtype is not None:
            x = typecast_tensor(x, dtype, casting)
        if floating:
            x = cast_int_to_float(x)
        return _result(operator(x), out, casting)

    return _named(function, name)


def _named(function: Any, name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"NumPy's `{name}`."
    return function


# -- two operands -----------------------------------------------------------------------------------------------------
def _matmul(x: torch.Tensor, y: torch.Tensor) -> Any:
    # Products of truth values are computed as whole numbers and given back as truth values.
    if x.dtype is torch.bool:
        return torch.matmul(x.to(torch.uint8), y.to(torch.uint8)).to(torch.bool)
    if x.dtype is torch.float16:
        return torch.matmul(x.to(torch.float32), y.to(torch.float32)).to(torch.float16)
    return torch.matmul(x, y)


def _ldexp(x: torch.Tensor, y: torch.Tensor) -> Any:
    if y.dtype.is_floating_point or y.dtype.is_complex:
        raise ValueError("ldexp 2nd arg must be integer")
    result = torch.ldexp(x, y)
    return result.to(torch.float16) if x.dtype is torch.float16 else result


_BINARY: dict[str, Operator] = {
    "add": torch.add,
    "arctan2": torch.arctan2,
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor,
    "copysign": torch.copysign,
    "divide": torch.divide,
    "equal": torch.eq,
    "float_power": torch.float_power,
    "floor_divide": torch.floor_divide,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "fmod": torch.fmod,
    "gcd": torch.gcd,
    "greater": torch.greater,
    "greater_equal": torch.greater_equal,
    "heaviside": torch.heaviside,
    "hypot": torch.hypot,
    "lcm": torch.lcm,
    "left_shift": torch.bitwise_left_shift,
    "less": torch.less,
    "less_equal": torch.less_equal,
    "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "mod": torch.remainder,
    "multiply": torch.multiply,
    "nextafter": torch.nextafter,
    "not_equal": torch.not_equal,
    "power": torch.pow,
    "remainder": torch.remainder,
    "right_shift": torch.bitwise_right_shift,
    "subtract": torch.subtract,
    "true_divide": torch.true_divide,
}
_binary = [*_BINARY, "divmod", "modf", "matmul", "ldexp"]
_unary = list(_UNARY)


def _tensors(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Both operands as tensors; a Python number beside a tensor takes its dtype where it can."""
    scalars = is_scalar(x1), is_scalar(x2)
    if all(scalars):
        return tuple(torch.as_tensor(x, dtype=dtype_of_scalar(type(x))) for x in (x1, x2))
    if scalars[0]:
        x1 = torch.as_tensor(x1, dtype=scalar_beside(x1, x2), device=x2.device)
    elif scalars[1]:
        x2 = torch.as_tensor(x2, dtype=scalar_beside(x2, x1), device=x1.device)
    return x1, x2


def _plain_tensors(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Both operands as tensors, a Python number in its default dtype."""
    return tuple(torch.as_tensor(x, dtype=dtype_of_scalar(type(x))) if is_scalar(x) else x for x in (x1, x2))


# Operators of which a Python number beside an array does not take the dtype: they compare values, or have a dtype of
# their own.
_OWN_PROMOTION = frozenset(
    (
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "float_power", "nextafter"),
        *("logical_and", "logical_or", "logical_xor"),
    )
)


def _binary_function(name: str, operator: Operator) -> Any:
    own_promotion = name in _OWN_PROMOTION

    @normalizer
    def function(
        x1: ArrayLikeOrScalar,
        x2: ArrayLikeOrScalar,
        /,
        out: OutArray | None = None,
        *,
        where: NotImplementedType = True,
        casting: CastingModes | None = "same_kind",
        order: NotImplementedType = "K",
        dtype: DTypeLike | None = None,
        subok: NotImplementedType = False,
        signature: NotImplementedType = None,
        extobj: NotImplementedType = None,
    ) -> Any:
        if own_promotion and dtype is None and is_scalar(x1) is not is_scalar(x2):
            return _result(operator(*_plain_tensors(x1, x2)), out, casting)
        number = x2 if name == "power" and dtype is None and is_scalar(x2) and not is_scalar(x1) else None
        x1, x2 = _tensors(x1, x2)
        wanted = promote(x1.dtype, x2.dtype) if dtype is None else dtype
        x1, x2 = typecast_tensors((x1, x2), wanted, casting if dtype is not None else "safe")
        # Powers with a number refuse what powers with an array of it do not.
        return _result(operator(x1, x2 if number is None else number), out, casting)

    return _named(function, name)


@normalizer
def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    out: OutArray | None = None,
    *,
    casting: CastingModes | None = "same_kind",
    order: NotImplementedType = "K",
    dtype: DTypeLike | None = None,
    subok: NotImplementedType = False,
    signature: NotImplementedType = None,
    extobj: NotImplementedType = None,
    axes: NotImplementedType = None,
    axis: NotImplementedType = None,
) -> Any:
    """NumPy's `matmul`."""
    wanted = promote(x1.dtype, x2.dtype) if dtype is None else dtype
    x1, x2 = typecast_tensors((x1, x2), wanted, casting)
    return _result(_matmul(x1, x2), out, casting)


@normalizer
def ldexp(
    x1: ArrayLikeOrScalar,
    x2: ArrayLikeOrScalar,
    /,
    out: OutArray | None = None,
    *,
    where: NotImplementedType = True,
    casting: CastingModes | None = "same_kind",
    order: NotImplementedType = "K",
    dtype: DTypeLike | None = None,
    subok: NotImplementedType = False,
    signature: NotImplementedType = None,
    extobj: NotImplementedType = None,
) -> Any:
    """NumPy's `ldexp`."""
    x1, x2 = _plain_tensors(x1, x2)
    if dtype is not None:
        x1 = typecast_tensor(x1, dtype, casting)
    return _result(_ldexp(x1, x2), out, casting)


@normalizer
def divmod(
    x1: ArrayLike,
    x2: ArrayLike,
    out1: OutArray | None = None,
    out2: OutArray | None = None,
    /,
    out: Any = (None, None),
    *,
    where: NotImplementedType = True,
    casting: CastingModes | None = "same_kind",
    order: NotImplementedType = "K",
    dtype: DTypeLike | None = None,
    subok: NotImplementedType = False,
    signature: NotImplementedType = None,
    extobj: NotImplementedType = None,
) -> Any:
    """NumPy's `divmod`: quotient and remainder."""
    out1, out2 = _two_outs(out1, out2, out)
    wanted = promote(x1.dtype, x2.dtype) if dtype is None else dtype
    x1, x2 = typecast_tensors((x1, x2), wanted, casting)
    return _two(torch.floor_divide(x1, x2), torch.remainder(x1, x2), out1, out2, casting)


def _two_outs(out1: Any, out2: Any, out: Any) -> tuple[Any, Any]:
    first, second = out
    if (out1 is not None or out2 is not None) and (first is not None or second is not None):
        raise TypeError("cannot specify 'out' as both a positional and keyword argument")
    if out1 is None and out2 is None:
        return first, second
    # As in PyTorch, where arrays given by position are written and not given back themselves.
    fresh = [None if o is None else type(o)(o.tensor) for o in (out1, out2)]
    return fresh[0], fresh[1]


def _two(one: torch.Tensor, other: torch.Tensor, out1: Any, out2: Any, casting: Any) -> tuple[Any, Any]:
    """Two results, each written where it was asked for."""
    results = []
    for result, out in ((one, out1), (other, out2)):
        if out is not None:
            out.tensor.copy_(_result(result, out, casting))
            result = out
        results.append(result)
    return results[0], results[1]


def modf(x: Any, /, *args: Any, **kwds: Any) -> Any:
    """NumPy's `modf`: the part behind the point and the part before it."""
    quotient, rest = divmod(x, 1, *args, **kwds)
    return rest, quotient


for _name, _operator in _UNARY.items():
    globals()[_name] = _unary_function(_name, _operator)
for _name, _operator in _BINARY.items():
    globals()[_name] = _binary_function(_name, _operator)

NAMES = [*_unary, *_binary]
