"""Fourier transforms: three rows that transform, and the functions of `torch.fft` made of them.

Invariant: a transform's result has the layout PyTorch's has: the dimensions that were not transformed come first in
memory, in the order of the input's strides, and those that were come last.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import DEFAULTS, dtype
from .rules.base import KeptRule, wrap_dim, wrap_dims
from .rules.shape import check_sizes
from .table import composite, op

Ints = tuple[int, ...]
# How a transform is scaled.
NONE, ROOT, BY_N = 0, 1, 2


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
        raise RuntimeError(f"Expected a {'complex' if complex_ else 'real'} input to a Fourier transform, got "
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


# -- what the functions share ---------------------------------------------------------------------------------------
def _scaling(norm: str | None, forward: bool) -> int:
    if norm is None or norm == "backward":
        return NONE if forward else BY_N
    if norm == "forward":
        return BY_N if forward else NONE
    if norm == "ortho":
        return ROOT
    raise RuntimeError(f"Invalid normalization mode: \"{norm}\"")


def _promoted(self: Any, complex_: bool) -> Any:
    """The input as floats, or as complex numbers."""
    dt: dtype = self._dtype if self._dtype.is_inexact else DEFAULTS.dtype
    if dt.itemsize == 2 and self._device.type in (("cpu",) if dt.name == "float16" else ("cpu", "meta")):
        raise RuntimeError(f"Unsupported dtype {dt.scalar_name}")
    if complex_ and not dt.is_complex:
        dt = dt.to_complex()
    return self if self._dtype is dt else self.to(dt)


def _sized(self: Any, dims: Ints, sizes: Ints) -> Any:
    """Cut, or filled up with zeros, to these sizes."""
    pad: list[int] = []
    for d, n in zip(dims, sizes):
        have = self._shape[d]
        if n == -1 or have == n:
            continue
        if have > n:
            self = self.narrow(d, 0, n)
        else:
            pad = pad or [0] * (2 * self.dim())
            pad[2 * (self.dim() - 1 - d) + 1] = n - have
    return registry.get("constant_pad_nd").call((self, tuple(pad), 0)) if pad else self


def _one(name: str, self: Any, n: int | None, dim: int, least: int | None = None) -> tuple[int, int]:
    """The dimension, and how many samples of it are wanted."""
    d = wrap_dim(dim, self.dim())
    if not self.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    size = (self._shape[d] if least is None else least) if n is None else n
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return d, size


def _many(self: Any, s: Ints | None, dim: Ints | None) -> tuple[Ints, Ints]:
    """The dimensions, and how many samples of each are wanted."""
    if dim is not None:
        if not self.dim() and dim:
            raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
        dims = tuple(wrap_dim(d, self.dim()) for d in dim)
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > self.dim():
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {self.dim()} dimensions.")
        dims = tuple(range(self.dim() - len(s), self.dim()))
    else:
        dims = tuple(range(self.dim()))
    sizes = tuple(self._shape[d] for d in dims) if s is None else tuple(
        self._shape[d] if n == -1 else n for d, n in zip(dims, s))
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dims, sizes


# -- one dimension --------------------------------------------------------------------------------------------------
def _fft(name: str, forward: bool) -> Any:
    def fn(self: Any, n: int | None, dim: int, norm: str | None) -> Any:
        if self._dtype.is_complex:
            x = _promoted(self, True)
            d, size = _one(name, x, n, dim)
            return C2C.call((_sized(x, (d,), (size,)), (d,), _scaling(norm, forward), forward))
        x = _promoted(self, False)
        d, size = _one(name, x, n, dim)
        out = R2C.call((_sized(x, (d,), (size,)), (d,), _scaling(norm, forward), False))
        return out if forward else out.conj()

    return fn


def _rfft(name: str, forward: bool) -> Any:
    def fn(self: Any, n: int | None, dim: int, norm: str | None) -> Any:
        if self._dtype.is_complex:
            raise RuntimeError(f"{name} expects a real input tensor, but got {self._dtype.scalar_name}")
        x = _promoted(self, False)
        d, size = _one(name, x, n, dim)
        out = R2C.call((_sized(x, (d,), (size,)), (d,), _scaling(norm, forward), True))
        return out if forward else out.conj()

    return fn


def _irfft(name: str, forward: bool) -> Any:
    def fn(self: Any, n: int | None, dim: int, norm: str | None) -> Any:
        x = _promoted(self, True)
        d = wrap_dim(dim, x.dim())
        d, size = _one(name, x, n, dim, 2 * (x._shape[d] - 1) if x.dim() else None)
        x = _sized(x, (d,), (size // 2 + 1,))
        return C2R.call((x.conj() if forward else x, (d,), _scaling(norm, forward), size))

    return fn


# -- several dimensions -----------------------------------------------------------------------------------------------
def _fftn(forward: bool) -> Any:
    def fn(self: Any, s: Ints | None, dim: Ints | None, norm: str | None) -> Any:
        dims, sizes = _many(self, s, dim)
        x = _sized(_promoted(self, True), dims, sizes)
        return C2C.call((x, dims, _scaling(norm, forward), forward)) if dims else x.clone()

    return fn


def _rfftn(self: Any, s: Ints | None, dim: Ints | None, norm: str | None) -> Any:
    if self._dtype.is_complex:
        raise RuntimeError(f"rfftn expects a real-valued input tensor, but got {self._dtype.scalar_name}")
    dims, sizes = _many(self, s, dim)
    if not dims:
        raise RuntimeError("rfftn must transform at least one axis")
    return R2C.call((_sized(_promoted(self, False), dims, sizes), dims, _scaling(norm, True), True))


def _last(self: Any, s: Ints | None, dim: Ints | None, name: str) -> tuple[Ints, Ints, int]:
    """As `_many`, for results whose last dimension is longer than the input's."""
    given = s is not None and s[-1] != -1 if s else False
    dims, sizes = _many(self, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    size = sizes[-1] if given else 2 * (self._shape[dims[-1]] - 1)
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return dims, (*sizes[:-1], size // 2 + 1), size


def _irfftn(self: Any, s: Ints | None, dim: Ints | None, norm: str | None) -> Any:
    dims, sizes, size = _last(self, s, dim, "irfftn")
    return C2R.call((_sized(_promoted(self, True), dims, sizes), dims, _scaling(norm, False), size))


def _hfftn(self: Any, s: Ints | None, dim: Ints | None, norm: str | None) -> Any:
    dims, sizes, size = _last(self, s, dim, "hfftn")
    x = _sized(_promoted(self, True), dims, sizes)
    if len(dims) > 1:
        x = C2C.call((x, dims[:-1], _scaling(norm, True), True))
    return C2R.call((x.conj(), dims[-1:], _scaling(norm, True), size))


def _ihfftn(self: Any, s: Ints | None, dim: Ints | None, norm: str | None) -> Any:
    if self._dtype.is_complex:
        raise RuntimeError(f"ihfftn expects a real-valued input tensor, but got {self._dtype.scalar_name}")
    dims, sizes = _many(self, s, dim)
    if not dims:
        raise RuntimeError("ihfftn must transform at least one axis")
    out = R2C.call((_sized(_promoted(self, False), dims, sizes), dims[-1:], _scaling(norm, False), True)).conj()
    return C2C.call((out, dims[:-1], _scaling(norm, False), False)) if len(dims) > 1 else out


_ONE = {"fft": _fft("fft", True), "ifft": _fft("ifft", False), "rfft": _rfft("rfft", True),
        "ihfft": _rfft("ihfft", False), "irfft": _irfft("irfft", False), "hfft": _irfft("hfft", True)}
_MANY = {"fft": _fftn(True), "ifft": _fftn(False), "rfft": _rfftn, "irfft": _irfftn, "hfft": _hfftn, "ihfft": _ihfftn}
for _name, _fn in _ONE.items():
    composite(f"fft_{_name}(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor", _fn, out=True,
              function=False, method=False)
for _name, _fn in _MANY.items():
    composite(f"fft_{_name}2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor", _fn,
              out=True, function=False, method=False)
    composite(f"fft_{_name}n(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", _fn,
              out=True, function=False, method=False)


# -- order of frequencies ------------------------------------------------------------------------------------------
def _shift(self: Any, dim: Ints | None, back: bool) -> Any:
    if dim and not self._shape:
        raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
    dims = tuple(range(self.dim())) if dim is None else tuple(wrap_dim(d, self.dim()) for d in dim)
    if not dims:
        raise RuntimeError("`shifts` required")
    return self.roll(tuple((self._shape[d] + back) // 2 for d in dims), dims)


composite("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", lambda self, dim: _shift(self, dim, False),
          function=False, method=False)
composite("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", lambda self, dim: _shift(self, dim, True),
          function=False, method=False)
