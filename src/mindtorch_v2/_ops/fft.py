"""Fourier transforms: three rows that transform, and the functions of `torch.fft` made of them.

Invariant: a transform's result has the layout PyTorch's has: the dimensions that were not transformed come first in
memory, in the order of the input's strides, and those that were come last.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .composites import fft as parts
from .composites.fft import TRANSFORMS
from .rules.base import KeptRule, wrap_dim, wrap_dims
from .rules.shape import check_sizes
from .table import composite, op

Ints = tuple[int, ...]


# -- layout -------------------------------------------------------------------------------------------------------
def _by_stride(stride: Ints, dims: Ints) -> Ints:
    return tuple(sorted(dims, key=lambda d: -stride[d]))


def _strides(stride: Ints, shape: Ints, dims: Ints) -> Ints:
    """Strides of a result of that shape, from the input's and the dimensions in the order they are transformed."""
    if not shape:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    others = _by_stride(stride, tuple(d for d in range(len(shape)) if d not in dims))
    out, step = [0] * len(shape), 1
    for d in (*reversed(dims), *reversed(others)):
        out[d] = step
        step *= shape[d]
    return tuple(out)


def _check(self: Any, dims: Ints, complex_: bool) -> Ints:
    if not self._dtype.is_inexact or self._dtype.is_complex != complex_:
        raise RuntimeError(f"Only supports {'complex' if complex_ else 'floating-point'} dtypes, but found: "
                           f"{self._dtype.scalar_name}")
    if not dims:
        raise RuntimeError("a Fourier transform needs at least one dimension")
    if self._dtype.itemsize == (4 if complex_ else 2) and self._device.type == "cpu":
        raise RuntimeError("MKL FFT doesn't support tensors of type: Half")
    if not self._shape:
        raise RuntimeError("shape '[-1, 0]' is invalid for input of size 1")
    return wrap_dims(dims, self.dim())


def _c2c_meta(self: Any, dim: Ints, normalization: int, forward: bool) -> Spec:
    dims = _by_stride(self._stride, _check(self, dim, True))
    return Spec(self._shape, _strides(self._stride, self._shape, dims), self._dtype, self._dtype, self._device)


def _r2c_meta(self: Any, dim: Ints, normalization: int, onesided: bool) -> Spec:
    dims = _check(self, dim, False)
    shape = list(self._shape)
    if onesided:
        shape[dims[-1]] = shape[dims[-1]] // 2 + 1
    order = (*_by_stride(self._stride, dims[:-1]), dims[-1])
    dt = self._dtype.to_complex()
    return Spec(tuple(shape), _strides(self._stride, tuple(shape), order), dt, dt, self._device)


def _c2r_meta(self: Any, dim: Ints, normalization: int, last_dim_size: int) -> Spec:
    dims = _check(self, dim, True)
    shape = list(self._shape)
    shape[dims[-1]] = last_dim_size
    check_sizes("fft", tuple(shape))
    have, need = self._shape[dims[-1]], last_dim_size // 2 + 1
    if last_dim_size < 1 or have < need:
        raise RuntimeError(f"_fft_c2r: {last_dim_size} elements need at least {need} frequencies, got {have}")
    stride = self._stride
    if len(dims) > 1:
        stride = _strides(stride, self._shape, _by_stride(stride, dims[:-1]))
    dt = self._dtype.to_real()
    return Spec(tuple(shape), _strides(stride, tuple(shape), dims[-1:]), dt, dt, self._device)


# -- rows ---------------------------------------------------------------------------------------------------------
C2C: Op = op("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", meta=KeptRule(_c2c_meta),
             method=False, node="FftC2CBackward0",
             grad=dict(self=lambda g, dim, normalization, forward: C2C.call((g, dim, normalization, not forward))))


def _r2c_grad(g: Any, self_shape: Ints, dim: Ints, normalization: int, onesided: bool) -> Any:
    if onesided:
        last = wrap_dim(dim[-1], len(self_shape))
        missing = self_shape[last] - g._shape[last]
        pad = (0, 0) * (len(self_shape) - 1 - last) + (0, missing)
        g = registry.get("constant_pad_nd").call((g, pad, 0))
    return C2C.call((g, dim, normalization, False)).real


R2C: Op = op("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", meta=KeptRule(_r2c_meta),
             method=False, node="FftR2CBackward0", grad=dict(self=_r2c_grad))


def _c2r_grad(g: Any, dim: Ints, normalization: int, last_dim_size: int) -> Any:
    """What stands for two frequencies counts twice."""
    half = R2C.call((g, dim, normalization, True))
    last = wrap_dim(dim[-1], g.dim())
    n = half._shape[last]
    double = last_dim_size - n
    if double <= 0:
        return half
    weights = g.new_ones((n,))
    weights[1:1 + double] = 2
    return half * weights.view((-1,) + (1,) * (g.dim() - 1 - last))


C2R: Op = op("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
             meta=KeptRule(_c2r_meta), method=False, node="FftC2RBackward0", grad=dict(self=_c2r_grad))


TRANSFORMS.c2c, TRANSFORMS.r2c, TRANSFORMS.c2r = C2C, R2C, C2R
TRANSFORMS.pad, TRANSFORMS.conj = registry.get("constant_pad_nd"), registry.get("conj")

# -- the functions --------------------------------------------------------------------------------------------------
_ONE: dict[str, Any] = dict(
    fft=lambda self, n, dim, norm: parts.fft(self, n, dim, norm, True),
    ifft=lambda self, n, dim, norm: parts.fft(self, n, dim, norm, False),
    rfft=lambda self, n, dim, norm: parts.rfft("rfft", self, n, dim, norm, True),
    ihfft=lambda self, n, dim, norm: parts.rfft("ihfft", self, n, dim, norm, False),
    irfft=lambda self, n, dim, norm: parts.irfft(self, n, dim, norm, False),
    hfft=lambda self, n, dim, norm: parts.irfft(self, n, dim, norm, True))
_MANY: dict[str, Any] = dict(
    fft=lambda self, s, dim, norm: parts.fftn(self, s, dim, norm, True),
    ifft=lambda self, s, dim, norm: parts.fftn(self, s, dim, norm, False),
    rfft=parts.rfftn, irfft=parts.irfftn, hfft=parts.hfftn, ihfft=parts.ihfftn)
for _name, _fn in _ONE.items():
    composite(f"fft_{_name}(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor", _fn, out=True,
              function=False, method=False)
for _name, _fn in _MANY.items():
    composite(f"fft_{_name}2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor", _fn,
              out=True, function=False, method=False)
    composite(f"fft_{_name}n(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", _fn,
              out=True, function=False, method=False)
composite("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", lambda self, dim: parts.shift(self, dim, False),
          function=False, method=False)
composite("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", lambda self, dim: parts.shift(self, dim, True),
          function=False, method=False)
