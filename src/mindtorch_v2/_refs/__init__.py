"""`torch._refs`: PyTorch's references are operators written in terms of simpler ones. Here each is the operator itself.

Invariant: a reference gives what the operator of its name gives; nothing is decomposed by calling it.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from . import _conversions as _conversions
from . import fft as fft
from . import linalg as linalg
from . import nn as nn
from . import special as special
from ._names import finder

_NAMES = """
    abs acos acosh asinh asin atan atanh bitwise_not ceil conj_physical cos cosh count_nonzero deg2rad digamma
    erf erfinv erfc exp expm1 exp2 fill fill_ floor frac index_add index_copy index_copy_ index_select
    index_fill index_fill_ isfinite isinf isposinf isneginf isnan isreal i0 lerp lgamma log log1p log2 log10
    log_softmax mvlgamma norm normal nan_to_num neg positive rad2deg reciprocal round sigmoid sgn sign signbit
    sin sinc sinh softmax sqrt square tan tanh trace trunc add atan2 bitwise_and bitwise_left_shift bitwise_or
    bitwise_right_shift bitwise_xor clamp_min clamp_max copysign div eq float_power floor_divide fmax fmin fmod
    gcd ge gt heaviside hypot igamma igammac imag isclose lcm le logaddexp logaddexp2 logical_and logical_not
    logical_or logical_xor logsumexp lt maximum minimum mul ne nextafter pow real remainder rsub sub true_divide
    xlogy addcdiv addcmul clamp masked_fill masked_fill_ where clone all amax amin any cumsum cumprod mean dot
    vdot std std_mean sum var var_mean addr alias_copy atleast_1d atleast_2d atleast_3d as_strided
    as_strided_copy as_strided_scatter block_diag broadcast_shapes broadcast_tensors broadcast_to cat chunk
    column_stack conj constant_pad_nd contiguous diag_embed diag diagonal diagonal_copy diagonal_scatter dsplit
    dstack expand expand_as expand_copy flatten flip fliplr flipud hsplit hstack meshgrid movedim narrow
    narrow_copy native_group_norm native_layer_norm permute permute_copy ravel repeat reshape reshape_as roll
    rot90 rsqrt split_with_sizes stack squeeze squeeze_copy t t_copy take_along_dim tensor_split transpose
    transpose_copy unbind_copy unfold unfold_copy unsqueeze unsqueeze_copy view view_as view_copy vsplit vstack
    view_as_complex unflatten unbind triu tril triu_indices tril_indices arange empty empty_like empty_permuted
    empty_strided eye full full_like linspace logspace new_empty new_empty_strided new_full new_ones new_zeros
    ones ones_like randn scalar_tensor zeros zeros_like allclose equal bucketize is_complex renorm stft istft
    abs_ acos_ acosh_ add_ addcmul_ addcdiv_ asin_ asinh_ atan_ atanh_ atan2_ bitwise_and_ bitwise_left_shift_
    bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ ceil_ clamp_ clamp_min_ clamp_max_ conj_physical_
    copysign_ cos_ cosh_ cumsum_ cumprod_ deg2rad_ digamma_ div_ eq_ erf_ erfc_ erfinv_ exp_ exp2_ expm1_
    float_power_ floor_ floor_divide_ fmod_ frac_ gcd_ ge_ gt_ heaviside_ hypot_ igamma_ igammac_ i0_ lcm_ le_
    lerp_ lgamma_ log10_ log1p_ log2_ log_ logical_and_ logical_not_ logical_or_ logical_xor_ lt_ mul_ mvlgamma_
    nan_to_num_ ne_ neg_ nextafter_ pow_ rad2deg_ reciprocal_ remainder_ rsqrt_ sgn_ sigmoid_ sign_ sin_ sinc_
    sinh_ sqrt_ square_ sub_ tan_ tanh_ tril_ triu_ true_divide_ trunc_ xlogy_ cauchy_ exponential_ geometric_
    log_normal_ zero_ frexp select_scatter select slice_scatter unsqueeze_ squeeze_ tensor
    """


def T(a: Any) -> Any:
    """The transpose of a matrix; PyTorch's reference refuses more dimensions."""
    if a.dim() not in (0, 2):
        raise RuntimeError(
            "The use of `x.T` on tensors of dimension other than 0 or 2 to reverse their shape is not supported."
        )
    return a.T


def alias(a: Any) -> Any:
    """A view of the whole."""
    return torch.ops.aten.alias.default(a)


def copy_to(a: Any, b: Any, *, allow_cross_device: bool = True) -> Any:
    """Write b into a."""
    if not allow_cross_device and a.device != b.device:
        raise RuntimeError(
            f"Attempting to copy from device {b.device} to device {a.device}, but cross-device copies are not allowed!"
        )
    return a.copy_(b)


def cauchy(self: Any, median: float = 0, sigma: float = 1, generator: Any = None) -> Any:
    """A new tensor of Cauchy's numbers, in the form of self."""
    return torch.empty_like(self).cauchy_(median, sigma, generator=generator)


def exponential(self: Any, rate: float = 1, generator: Any = None) -> Any:
    """A new tensor of exponential numbers, in the form of self."""
    return torch.empty_like(self).exponential_(rate, generator=generator)


def geometric(self: Any, p: float, generator: Any = None) -> Any:
    """A new tensor of geometric numbers, in the form of self."""
    return torch.empty_like(self).geometric_(p, generator=generator)


def log_normal(self: Any, mean: float = 1, std: float = 2, generator: Any = None) -> Any:
    """A new tensor of log-normal numbers, in the form of self."""
    return torch.empty_like(self).log_normal_(mean, std, generator=generator)


def prod(a: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    """The product over all dimensions, one, or several."""
    if dim is None and not keepdim:
        found = torch.prod(a, dtype=dtype)
    else:
        dims = range(a.ndim) if dim is None or dim == [] else dim
        found = a if dims != range(0) else torch.prod(a, dtype=dtype)
        dims = (dims,) if isinstance(dims, int) else dims
        for each in sorted((d % max(a.ndim, 1) for d in dims), reverse=True):
            found = torch.prod(found, each, keepdim, dtype=dtype)
    return found if out is None else out.resize_(found.shape).copy_(found)


def item(a: Any) -> Any:
    """The number in a tensor of one element."""
    return a.item()


def rfloordiv(a: Any, b: Any) -> Any:
    return torch.floor_divide(b, a)


def rpow(a: Any, b: Any) -> Any:
    return torch.pow(b, a)


def rtruediv(a: Any, b: Any) -> Any:
    return torch.true_divide(b, a)


def trunc_divide(a: Any, b: Any) -> Any:
    return torch.div(a, b, rounding_mode="trunc")


def swap_axes(a: Any, axis0: int, axis1: int) -> Any:
    return torch.transpose(a, axis0, axis1)


def zero(input: Any) -> Any:
    return torch.zeros_like(input)


def to(a: Any, *args: Any, **kwargs: Any) -> Any:
    """`Tensor.to`."""
    return a.to(*args, **kwargs)


def sum_to_size(a: Any, *shape: Any) -> Any:
    """`Tensor.sum_to_size`."""
    return a.sum_to_size(*shape)


__getattr__ = finder("_refs", _NAMES, lambda: torch, lambda: torch.Tensor)
__all__ = [*_NAMES.split(), "T", "alias", "cauchy", "copy_to", "exponential", "geometric", "item", "log_normal", "prod"]  # noqa: PLE0604
__all__ += ["rfloordiv", "rpow", "rtruediv", "sum_to_size", "swap_axes", "to", "trunc_divide", "zero"]
