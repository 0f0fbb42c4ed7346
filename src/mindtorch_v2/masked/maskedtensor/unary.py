"""Operators of one masked tensor: the operator of the data, with the same mask."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .core import index_parts, mapped, with_values, wrapped

__all__: list[str] = []

UNARY_NAMES = (
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil "
    "clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 "
    "log1p log2 logit i0 isnan nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn "
    "signbit sin sinc sinh sqrt square tan tanh trunc"
).split()
INPLACE_UNARY_NAMES = [name + "_" for name in UNARY_NAMES if name not in ("angle", "positive", "signbit", "isnan")]
UNARY_NAMES_UNSUPPORTED = (
    "atan2 arctan2 bitwise_left_shift bitwise_right_shift copysign float_power fmod frexp gradient imag ldexp lerp "
    "logical_not hypot igamma igammac mvlgamma nextafter polygamma real remainder true_divide xlogy"
).split()

NATIVE_UNARY_FNS = [getattr(torch.ops.aten, name) for name in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [getattr(torch.ops.aten, name) for name in INPLACE_UNARY_NAMES]


def _is_native_unary(fn: Any) -> bool:
    return fn in NATIVE_UNARY_FNS or fn in NATIVE_INPLACE_UNARY_FNS


def _apply_native_unary(fn: Any, *args: Any, **kwargs: Any) -> Any:
    if not _is_native_unary(fn):
        return NotImplemented
    if kwargs:
        raise ValueError(
            "MaskedTensor unary ops require that len(kwargs) == 0. If you need support for this, please open an issue "
            "on Github."
        )
    if any(isinstance(a, torch.Tensor) for a in args[1:]):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    self = args[0]
    data, *rest = mapped(args, lambda t: t._masked_data)
    source = data.values() if index_parts(data) else data
    result = with_values(data, fn(source, *rest))
    if fn in NATIVE_INPLACE_UNARY_FNS:
        self._set_data_mask(result, self._masked_mask)
        return self
    return wrapped(result, self._masked_mask)
