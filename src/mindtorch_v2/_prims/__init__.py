"""`torch._prims`: PyTorch's primitive operators, as far as they are operators here under another name or order.

Invariant: a primitive takes tensors of one dtype and shape where PyTorch's does, and computes what the operator does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2 as torch

from .. import _prims_common as utils
from .._prims_common import RETURN_TYPE as RETURN_TYPE

_UNARY = """abs acos acosh asin asinh atan atanh bitwise_not ceil conj_physical cos cosh digamma erf erfc exp exp2 expm1
    floor imag isfinite lgamma log log10 log1p log2 neg real reciprocal round rsqrt sign signbit sin sinh sqrt tan tanh
    trunc frexp"""
_BINARY = """add atan2 bitwise_and bitwise_or bitwise_xor eq fmax fmin fmod gcd ge gt hypot igamma igammac le lt maximum
    minimum mul ne nextafter pow remainder sub"""
# By the name of the primitive: the operator.
_RENAMED = dict(
    bessel_i0="special.i0", bessel_i0e="special.i0e", bessel_i1="special.i1", bessel_i1e="special.i1e",
    bessel_j0="special.bessel_j0", bessel_j1="special.bessel_j1", erf_inv="erfinv", erfcx="special.erfcx",
    ndtri="special.ndtri", spherical_bessel_j0="special.spherical_bessel_j0",
)  # fmt: skip
_RENAMED_PAIRS = dict(
    shift_left="bitwise_left_shift", shift_right_arithmetic="bitwise_right_shift", zeta="special.zeta"
)


def _found(path: str) -> Any:
    found: Any = torch
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _one(name: str, path: str) -> Callable[..., Any]:
    def primitive(self: Any) -> Any:
        return _found(path)(self)

    primitive.__name__ = primitive.__qualname__ = name
    return primitive


def _two(name: str, path: str) -> Callable[..., Any]:
    def primitive(self: Any, other: Any) -> Any:
        utils.check_same_dtype(self, other)
        utils.check_same_device(self, other, allow_cpu_scalar_tensors=True)
        utils.check_same_shape(self, other, allow_cpu_scalar_tensors=True)
        return _found(path)(self, other)

    primitive.__name__ = primitive.__qualname__ = name
    return primitive


globals().update({name: _one(name, name) for name in _UNARY.split()})
globals().update({name: _one(name, path) for name, path in _RENAMED.items()})
globals().update({name: _two(name, name) for name in _BINARY.split()})
globals().update({name: _two(name, path) for name, path in _RENAMED_PAIRS.items()})


def cbrt(self: Any) -> Any:
    """The cubic root, with its argument's sign."""
    return torch.copysign(torch.pow(self.abs(), 1 / 3), self)


def div(self: Any, other: Any) -> Any:
    """Division; of integers it is cut off towards zero."""
    utils.check_same_dtype(self, other)
    whole = not (self.dtype.is_floating_point or self.dtype.is_complex)
    return torch.div(self, other, rounding_mode="trunc") if whole else torch.true_divide(self, other)


def fill(self: Any, value: Any) -> Any:
    return torch.full_like(self, value)


# -- views and shapes ---------------------------------------------------------------------------------------------
def as_strided(a: Any, size: Any, stride: Any, storage_offset: int) -> Any:
    return torch.as_strided(a, size, stride, storage_offset)


def broadcast_in_dim(a: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
    """A view of `shape`, whose dimensions `broadcast_dimensions` are those of the tensor."""
    view = a
    for i in range(len(shape)):
        if i not in broadcast_dimensions:
            view = view.unsqueeze(i)
    return view.expand(shape)


def collapse_view(a: Any, start: int, end: int) -> Any:
    """A view with the dimensions from `start` to `end` (itself included) made one."""
    shape = list(a.shape)
    return a.view(*shape[:start], utils.prod(shape[start : end + 1]), *shape[end + 1 :])


def collapse(a: Any, start: int, end: int) -> Any:
    """A copy with the dimensions from `start` to `end` (itself included) made one."""
    shape = list(a.shape)
    return a.clone().reshape(*shape[:start], utils.prod(shape[start : end + 1]), *shape[end + 1 :])


def conj(a: Any) -> Any:
    return torch.conj(a)


def expand_dims(a: Any, dimensions: Any, ndim: int | None = None) -> Any:
    """A view with dimensions of one element where `dimensions` says."""
    rank = a.ndim + len(dimensions) if ndim is None else ndim
    for i in sorted(utils.canonicalize_dims(rank, dimensions)):
        a = a.unsqueeze(i)
    return a


def slice_in_dim(a: Any, start_index: int, limit_index: int, stride: int = 1, axis: int = 0) -> Any:
    """A part of one dimension."""
    return torch.ops.aten.slice.Tensor(a, axis, start_index, limit_index, stride)


def split_dim(a: Any, dim: int, outer_length: int) -> Any:
    """A view with one dimension made two."""
    if a.shape[dim] % outer_length:
        raise ValueError(
            f"Attempting to split dimension of length {a.shape[dim]}, but outer length of {outer_length} divides it "
            "with a remainder!"
        )
    return a.unflatten(dim, (outer_length, a.shape[dim] // outer_length))


def squeeze(a: Any, dimensions: Any) -> Any:
    return torch.squeeze(a, tuple(dimensions))


def transpose(a: Any, permutation: Any) -> Any:
    return torch.permute(a, tuple(permutation))


def view_of(a: Any) -> Any:
    return torch.ops.aten.alias.default(a)


def view_element_type(a: Any, dtype: Any) -> Any:
    return a.view(dtype)


def as_strided_scatter(self: Any, src: Any, size: Any, stride: Any, storage_offset: int) -> Any:
    return torch.as_strided_scatter(self, src, size, stride, storage_offset)


def cat(tensors: Any, dim: int) -> Any:
    return torch.cat(tuple(tensors), dim)


def reshape(a: Any, shape: Any) -> Any:
    """A copy in another shape."""
    return a.clone(memory_format=torch.contiguous_format).view(tuple(shape))


def rev(a: Any, dims: Any) -> Any:
    return torch.flip(a, tuple(dims))


def where(pred: Any, a: Any, b: Any) -> Any:
    return torch.where(pred, a, b)


# -- copies and conversions ---------------------------------------------------------------------------------------
def clone(self: Any, *, memory_format: Any = None) -> Any:
    return torch.clone(self, memory_format=torch.preserve_format if memory_format is None else memory_format)


def convert_element_type(a: Any, dtype: Any) -> Any:
    """A copy in another dtype."""
    return a.to(dtype, copy=True)


def device_put(a: Any, device: Any, non_blocking: bool = False) -> Any:
    return a.to(device, non_blocking=non_blocking)


def item(a: Any) -> Any:
    return a.item()


def copy_to(a: Any, b: Any) -> Any:
    return a.copy_(b)


def copy_strided(a: Any, stride: Any) -> Any:
    """A copy with given strides."""
    made = torch.empty_strided(a.shape, tuple(stride), dtype=a.dtype, device=a.device, requires_grad=a.requires_grad)
    return made.copy_(a)


def resize(a: Any, shape: Any) -> Any:
    return a.resize_(tuple(shape))


def maximum_value(dtype: Any) -> Any:
    """The greatest value of a dtype."""
    if dtype == torch.bool:
        return True
    return torch.finfo(dtype).max if dtype.is_floating_point or dtype.is_complex else torch.iinfo(dtype).max


def minimum_value(dtype: Any) -> Any:
    """The least value of a dtype."""
    if dtype == torch.bool:
        return False
    return torch.finfo(dtype).min if dtype.is_floating_point or dtype.is_complex else torch.iinfo(dtype).min


# -- reductions ---------------------------------------------------------------------------------------------------
def sum(inp: Any, dims: Any, *, output_dtype: Any = None) -> Any:
    return torch.sum(inp, tuple(dims), dtype=output_dtype) if dims else inp.clone()


def prod(inp: Any, dims: Any, *, output_dtype: Any = None) -> Any:
    """The product over some dimensions."""
    for dim in sorted(dims, reverse=True):
        inp = torch.prod(inp, dim, dtype=output_dtype)
    return inp


def amax(inp: Any, dims: Any, *, output_dtype: Any = None) -> Any:
    return torch.amax(inp, tuple(dims)) if dims else inp.clone()


def amin(inp: Any, dims: Any, *, output_dtype: Any = None) -> Any:
    return torch.amin(inp, tuple(dims)) if dims else inp.clone()


def var(inp: Any, dims: Any, correction: float = 1, *, output_dtype: Any = None) -> Any:
    return torch.var(inp, tuple(dims), correction=correction)


# -- new tensors --------------------------------------------------------------------------------------------------
def empty_strided(shape: Any, strides: Any, *, dtype: Any, device: Any, requires_grad: bool) -> Any:
    return torch.empty_strided(shape, strides, dtype=dtype, device=device, requires_grad=requires_grad)


def empty_permuted(shape: Any, physical_layout: Any, *, dtype: Any, device: Any, requires_grad: bool) -> Any:
    return torch.empty_permuted(shape, physical_layout, dtype=dtype, device=device, requires_grad=requires_grad)


def scalar_tensor(s: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return torch.scalar_tensor(s, dtype=dtype, device=device)


def iota(length: int, *, start: int, step: int, dtype: Any, device: Any, requires_grad: bool) -> Any:
    """Evenly spaced integers."""
    end = start + length * step
    return torch.arange(start, end, step, dtype=dtype, device=device, requires_grad=requires_grad)


def svd(A: Any, *, full_matrices: bool) -> Any:
    return torch.linalg.svd(A, full_matrices=full_matrices)


def normal(
    shape: Any, *, mean: Any, std: Any, dtype: Any, device: Any, requires_grad: bool, generator: Any = None
) -> Any:
    """Normal numbers."""
    made = torch.empty(shape, dtype=dtype, device=device)
    return made.normal_(mean, std, generator=generator).requires_grad_(requires_grad)


def fft_r2c(self: Any, *, dim: Any, onesided: bool) -> Any:
    return torch.ops.aten._fft_r2c.default(self, tuple(dim), 0, onesided)


def fft_c2c(self: Any, *, dim: Any, forward: bool) -> Any:
    return torch.ops.aten._fft_c2c.default(self, tuple(dim), 0, forward)


def fft_c2r(self: Any, *, dim: Any, last_dim_size: int) -> Any:
    return torch.ops.aten._fft_c2r.default(self, tuple(dim), 0, last_dim_size)
