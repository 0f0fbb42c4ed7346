"""The functions of `torch.fft` in terms of the three rows that transform.

Invariant: the table fills `TRANSFORMS` as it declares the rows; nothing here is called before it is loaded.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._core_operators import CORE
from ..._dispatch.op import Op
from ..._dtype import DEFAULTS
from ..._dtype import dtype as DType
from ..._tensor_base import TensorBase
from ..rules.base import wrap_dim

Ints = tuple[int, ...]
# How a transform is scaled.
NONE: Final = 0
ROOT: Final = 1
BY_N: Final = 2


@final
class _Transforms:
    """From complex to complex numbers, from reals and to reals; what fills up with zeros."""

    c2c: Op
    r2c: Op
    c2r: Op
    pad: Op
    conj: Op


TRANSFORMS: Final = _Transforms()


# -- what the functions share -----------------------------------------------------------------------------------------
def _scaling(norm: str | None, forward: bool) -> int:
    if norm is None or norm == "backward":
        return NONE if forward else BY_N
    if norm == "forward":
        return BY_N if forward else NONE
    if norm == "ortho":
        return ROOT
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _promoted(t: TensorBase, complex_: bool) -> TensorBase:
    """The input as floats, or as complex numbers."""
    dt: DType = t._dtype if t._dtype.is_inexact else DEFAULTS.dtype
    if dt.itemsize == 2 and t._device.type in (("cpu",) if dt.name == "float16" else ("cpu", "meta")):
        raise RuntimeError(f"Unsupported dtype {dt.scalar_name}")
    if complex_ and not dt.is_complex:
        dt = dt.to_complex()
    if t._dtype is dt:
        return t
    cast: TensorBase = CORE.to_copy.call((t, dt, None, None, False))
    return cast


def _sized(t: TensorBase, dims: Ints, sizes: Ints) -> TensorBase:
    """Cut, or filled up with zeros, to these sizes."""
    pad: list[int] = []
    for d, n in zip(dims, sizes):
        have = t._shape[d]
        if n == -1 or have == n:
            continue
        if have > n:
            cut: Any = t
            t = cut.narrow(d, 0, n)
        else:
            if not pad:
                pad = [0] * (2 * len(t._shape))
            pad[2 * (len(t._shape) - 1 - d) + 1] = n - have
    if not pad:
        return t
    filled: TensorBase = TRANSFORMS.pad.call((t, tuple(pad), 0))
    return filled


def _conj(t: Any) -> Any:
    return TRANSFORMS.conj.call((t,))


def _dimension(t: TensorBase, dim: int) -> int:
    d = wrap_dim(dim, len(t._shape))
    if not t._shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return d


def _points(size: int) -> int:
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return size


def _many(t: TensorBase, s: Ints | None, dim: Ints | None) -> tuple[Ints, Ints]:
    """The dimensions, and how many samples of each are wanted."""
    ndim = len(t._shape)
    if dim is not None:
        if not ndim and dim:
            raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
        dims = tuple([wrap_dim(d, ndim) for d in dim])
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
        dims = tuple(range(ndim - len(s), ndim))
    else:
        dims = tuple(range(ndim))
    if s is None:
        sizes = tuple([t._shape[d] for d in dims])
    else:
        sizes = tuple([t._shape[d] if n == -1 else n for d, n in zip(dims, s)])
    for n in sizes:
        _points(n)
    return dims, sizes


# -- one dimension ----------------------------------------------------------------------------------------------------
def fft(t: TensorBase, n: int | None, dim: int, norm: str | None, forward: bool) -> Any:
    if t._dtype.is_complex:
        x = _promoted(t, True)
        d = _dimension(x, dim)
        x = _sized(x, (d,), (_points(x._shape[d] if n is None else n),))
        return TRANSFORMS.c2c.call((x, (d,), _scaling(norm, forward), forward))
    x = _promoted(t, False)
    d = _dimension(x, dim)
    x = _sized(x, (d,), (_points(x._shape[d] if n is None else n),))
    out = TRANSFORMS.r2c.call((x, (d,), _scaling(norm, forward), False))
    return out if forward else _conj(out)


def rfft(name: str, t: TensorBase, n: int | None, dim: int, norm: str | None, forward: bool) -> Any:
    """`rfft`, and `ihfft` on the way back."""
    if t._dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {t._dtype.scalar_name}")
    x = _promoted(t, False)
    d = _dimension(x, dim)
    x = _sized(x, (d,), (_points(x._shape[d] if n is None else n),))
    out = TRANSFORMS.r2c.call((x, (d,), _scaling(norm, forward), True))
    return out if forward else _conj(out)


def irfft(t: TensorBase, n: int | None, dim: int, norm: str | None, forward: bool) -> Any:
    """`irfft`, and `hfft` on the way forward."""
    x = _promoted(t, True)
    d = _dimension(x, dim)
    size = _points(2 * (x._shape[d] - 1) if n is None else n)
    x = _sized(x, (d,), (size // 2 + 1,))
    return TRANSFORMS.c2r.call((_conj(x) if forward else x, (d,), _scaling(norm, forward), size))


# -- several dimensions -----------------------------------------------------------------------------------------------
def fftn(t: TensorBase, s: Ints | None, dim: Ints | None, norm: str | None, forward: bool) -> Any:
    dims, sizes = _many(t, s, dim)
    x = _sized(_promoted(t, True), dims, sizes)
    if not dims:
        return CORE.clone.call((x, None))
    return TRANSFORMS.c2c.call((x, dims, _scaling(norm, forward), forward))


def rfftn(t: TensorBase, s: Ints | None, dim: Ints | None, norm: str | None) -> Any:
    if t._dtype.is_complex:
        raise RuntimeError(f"rfftn expects a real-valued input tensor, but got {t._dtype.scalar_name}")
    dims, sizes = _many(t, s, dim)
    if not dims:
        raise RuntimeError("rfftn must transform at least one axis")
    return TRANSFORMS.r2c.call((_sized(_promoted(t, False), dims, sizes), dims, _scaling(norm, True), True))


def _last(t: TensorBase, s: Ints | None, dim: Ints | None, name: str) -> tuple[Ints, Ints, int]:
    """As `_many`, for results whose last dimension is longer than the input's."""
    given = s is not None and len(s) > 0 and s[-1] != -1
    dims, sizes = _many(t, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    size = _points(sizes[-1] if given else 2 * (t._shape[dims[-1]] - 1))
    return dims, sizes[:-1] + (size // 2 + 1,), size


def irfftn(t: TensorBase, s: Ints | None, dim: Ints | None, norm: str | None) -> Any:
    dims, sizes, size = _last(t, s, dim, "irfftn")
    return TRANSFORMS.c2r.call((_sized(_promoted(t, True), dims, sizes), dims, _scaling(norm, False), size))


def hfftn(t: TensorBase, s: Ints | None, dim: Ints | None, norm: str | None) -> Any:
    dims, sizes, size = _last(t, s, dim, "hfftn")
    x: Any = _sized(_promoted(t, True), dims, sizes)
    if len(dims) > 1:
        x = TRANSFORMS.c2c.call((x, dims[:-1], _scaling(norm, True), True))
    return TRANSFORMS.c2r.call((_conj(x), dims[-1:], _scaling(norm, True), size))


def ihfftn(t: TensorBase, s: Ints | None, dim: Ints | None, norm: str | None) -> Any:
    if t._dtype.is_complex:
        raise RuntimeError(f"ihfftn expects a real-valued input tensor, but got {t._dtype.scalar_name}")
    dims, sizes = _many(t, s, dim)
    if not dims:
        raise RuntimeError("ihfftn must transform at least one axis")
    x = _sized(_promoted(t, False), dims, sizes)
    out = _conj(TRANSFORMS.r2c.call((x, dims[-1:], _scaling(norm, False), True)))
    return TRANSFORMS.c2c.call((out, dims[:-1], _scaling(norm, False), False)) if len(dims) > 1 else out


# -- order of frequencies ---------------------------------------------------------------------------------------------
def shift(t: TensorBase, dim: Ints | None, back: bool) -> Any:
    ndim = len(t._shape)
    if dim and not ndim:
        raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
    dims = tuple(range(ndim)) if dim is None else tuple([wrap_dim(d, ndim) for d in dim])
    if not dims:
        raise RuntimeError("`shifts` required")
    rolled: Any = t
    return rolled.roll(tuple([(t._shape[d] + (1 if back else 0)) // 2 for d in dims]), dims)
