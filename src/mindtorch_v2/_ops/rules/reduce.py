"""Shape rules of reductions, scans and sorts, and the way back from a reduced gradient to the input's shape.

Invariant: a set of reduced dimensions is an integer of bits that `dim_mask` has wrapped and checked; results are
row-major, as PyTorch's are whatever the input's strides.
"""
from __future__ import annotations

from typing import Any, Final, final

from ..._device import CPU
from ..._dispatch.op import Rule, Spec
from ..._dtype import bool as bool_
from ..._dtype import dtype, float32, int64, uint8
from ..._mypyc import i64
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase, numel
from ..._warn import warn
from .base import like, wrap_dim
from .dtype_checks import not_implemented

# How the result's dtype follows from the input's.
SAME: Final[i64] = 0
SUM: Final[i64] = 1
MEAN: Final[i64] = 2
BOOL: Final[i64] = 3
INDEX: Final[i64] = 4
# Codes behind bfloat16's are float8's kinds, wide unsigned integers and complex32.
_LAST_USUAL: Final[i64] = 12

ZEROS: Final[list[tuple[int, ...]]] = [(0,) * n for n in range(129)]


# -- sets of dimensions -------------------------------------------------------------------------------------------
def dim_mask(dim: Any, ndim: i64) -> i64:
    """The dimensions `dim` names (an int, a tuple, None for all), as bits."""
    if dim is None:
        return all_dims(ndim)
    if isinstance(dim, tuple):
        if len(dim) == 1:
            return one_dim(dim[0], ndim)
        return many_dims(dim, ndim)
    return one_dim(dim, ndim)


def many_dims(dims: tuple[int, ...], ndim: i64) -> i64:
    mask: i64 = 0
    for x in dims:
        bit = one_dim(x, ndim)
        if mask & bit:
            raise RuntimeError(f"dim {wrap_dim(x, int(ndim))} appears multiple times in the list of dims")
        mask |= bit
    return mask


def one_dim(dim: int, ndim: i64) -> i64:
    d: i64 = dim
    if d < 0:
        d += ndim
    if d < 0 or d >= ndim:
        d = wrap_dim(dim, int(ndim))
    if ndim > 64:
        raise RuntimeError("only tensors with up to 64 dims are supported")
    bit: i64 = 1
    return bit << d


def all_dims(ndim: i64) -> i64:
    if ndim >= 64:
        if ndim > 64:
            raise RuntimeError("only tensors with up to 64 dims are supported")
        return -1
    full: i64 = 1
    return (full << ndim) - 1


def dim_mask_or_all(dim: Any, ndim: i64) -> i64:
    """As `dim_mask`, for operators to which no dimensions means all of them."""
    if isinstance(dim, tuple) and len(dim) == 0:
        return all_dims(ndim)
    return dim_mask(dim, ndim)


def reduced_shape(shape: tuple[int, ...], mask: i64, keepdim: bool) -> tuple[int, ...]:
    n: i64 = len(shape)
    if not keepdim and mask == all_dims(n):
        return ()
    if n == 2 and not keepdim:
        return (shape[1],) if mask == 1 else (shape[0],) if mask == 2 else shape
    out: list[int] = []
    i: i64 = 0
    while i < n:
        if (mask >> i) & 1 == 0:
            out.append(shape[i])
        elif keepdim:
            out.append(1)
        i += 1
    return tuple(out)


def spread_strides(stride: tuple[int, ...], mask: i64, ndim: i64, keepdim: bool) -> tuple[int, ...]:
    """Strides of a reduced result seen with the input's dimensions: 0 along the reduced ones."""
    if mask == all_dims(ndim):
        return ZEROS[ndim]
    if mask == 0:
        return stride
    if ndim == 2:
        if mask == 2:
            return (stride[0], 0)
        return (0, stride[1] if keepdim else stride[0])
    out: list[int] = [0] * ndim
    i: i64 = 0
    j: i64 = 0
    while i < ndim:
        if (mask >> i) & 1 == 0:
            out[i] = stride[j]
            j += 1
        elif keepdim:
            j += 1
        i += 1
    return tuple(out)


def reduced_count(shape: tuple[int, ...], mask: i64) -> i64:
    """How many elements go into one result."""
    out: i64 = 1
    i: i64 = 0
    for s in shape:
        if (mask >> i) & 1:
            m: i64 = s
            out *= m
        i += 1
    return out


def check_nonempty(name: str, t: TensorBase, dim: Any, mask: i64) -> None:
    """Refuse a reduction without identity over nothing."""
    if numel(t) != 0:
        return
    index_error = name.startswith("arg")
    if dim is None or dim == ():
        text = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        if index_error:
            raise IndexError(text)
        raise RuntimeError(text + " Specify the reduction dim with the 'dim' argument.")
    if isinstance(dim, tuple):
        for d in dim:
            # Shown as given.
            if t._shape[d] == 0:
                raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        return
    i: i64 = 0
    for s in t._shape:
        if (mask >> i) & 1 and s == 0:
            raise IndexError(f"{name}(): Expected reduction dim {i} to have non-zero size.")
        i += 1


# -- rules --------------------------------------------------------------------------------------------------------
@final
class Reduction(Rule):
    """Arguments (self, dim, keepdim[, dtype]); without `dim` in the schema, everything is reduced.

    nonempty: there is no identity, so nothing cannot be reduced. empty_is_none: an empty tuple of dimensions reduces
    nothing (any, all) instead of everything.
    """

    def __init__(self, name: str, kind: i64, nonempty: bool = False, empty_is_none: bool = False) -> None:
        self.name: Final = name
        self.kind: Final = kind
        self.nonempty: Final = nonempty
        self.empty_is_none: Final = empty_is_none

    def mask(self, args: tuple[Any, ...], ndim: i64) -> i64:
        if len(args) == 1:
            return all_dims(ndim)
        return dim_mask(args[1], ndim) if self.empty_is_none else dim_mask_or_all(args[1], ndim)

    def infer(self, args: tuple[Any, ...]) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        return self.spec(a, args, self.mask(args, len(a._shape)))

    def spec(self, a: TensorBase, args: tuple[Any, ...], mask: i64) -> Spec:
        keepdim = False
        given: dtype | None = None
        if len(args) > 2:
            keepdim = args[2]
            if len(args) > 3:
                given = args[3]
        kind = self.kind
        dt = a._dtype
        compute = dt
        if kind == SUM:
            if given is not None:
                dt = given
            elif not dt.is_inexact:
                dt = int64
            compute = dt
        elif kind == MEAN:
            if given is not None:
                dt = given
            if not dt.is_inexact:
                raise RuntimeError(
                    f"{self.name}(): could not infer output dtype. {'Input' if given is None else 'Optional'} dtype "
                    f"must be either a floating point or complex dtype. Got: {dt.scalar_name}")
            compute = dt
        elif kind == BOOL:
            dt = dt if dt is uint8 else bool_
        elif kind == INDEX:
            if dt.is_complex or dt is bool_:
                raise RuntimeError(
                    f"{self.name}(): does not support {'complex' if dt.is_complex else 'bool'} input")
            dt = int64
        elif dt.is_complex:
            kernel = self.name + "_all" if len(args) == 1 else self.name[1:] + "_values_cpu"
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")
        if self.nonempty and numel(a) == 0:
            check_nonempty(self.name, a, args[1] if len(args) > 1 else None, mask)
        if compute.code > _LAST_USUAL and kind != BOOL:
            self.refuse_unusual(a, args, compute)
        out = reduced_shape(a._shape, mask, keepdim)
        return Spec(out, contiguous_strides(out), dt, compute, a._device)

    def refuse_unusual(self, a: TensorBase, args: tuple[Any, ...], dt: dtype) -> None:
        """PyTorch's CPU kernels reduce in none of the small floats, wide unsigned integers and complex32."""
        if a._device is CPU and numel(a) > 0:
            kernel = self.name + "_cpu"
            if self.kind == SUM or self.kind == MEAN:
                kernel = "prod_out_cpu" if self.name == "prod" else "sum_cpu"
            elif self.kind != INDEX:
                kernel = self.name + "_all" if len(args) == 1 else self.name[1:] + "_values_cpu"
            raise not_implemented(kernel, dt)


@final
class ValueIndex(Rule):
    """Arguments (self, dim, keepdim): the values and where they stood."""

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def infer(self, args: tuple[Any, ...]) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        shape = reduced_shape(a._shape, self.mask(a, args[1]), args[2])
        stride = contiguous_strides(shape)
        return [Spec(shape, stride, a._dtype, a._dtype, a._device), Spec(shape, stride, int64, int64, a._device)]

    def mask(self, a: TensorBase, dim: Any) -> i64:
        if a._dtype.is_complex:
            raise RuntimeError(f"{self.name}(): does not support complex input")
        mask = dim_mask(dim, len(a._shape))
        if numel(a) == 0:
            check_nonempty(self.name, a, dim, mask)
        return mask


@final
class Moments(Rule):
    """Arguments (self, dim, correction, keepdim): a variance, and with `mean` the mean as a second result."""

    def __init__(self, name: str, title: str, mean: bool) -> None:
        self.name: Final = name
        self.title: Final = title
        self.mean: Final = mean

    def infer(self, args: tuple[Any, ...]) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        dt = a._dtype
        if not dt.is_inexact:
            raise RuntimeError(f"{self.title} only support floating point and complex dtypes")
        mask = dim_mask_or_all(args[1], len(a._shape))
        shape = reduced_shape(a._shape, mask, args[3])
        stride = contiguous_strides(shape)
        correction = args[2]
        if isinstance(correction, complex):
            if a._device.type == "meta":
                raise ValueError("correction argument should be integer or float")
            raise RuntimeError("value cannot be converted to type double without overflow")
        if reduced_count(a._shape, mask) <= (1 if correction is None else correction):
            warn(
                f"{self.name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction "
                "factor (input numel divided by output numel).")
        real = dt.to_real() if dt.is_complex else dt
        first = Spec(shape, stride, real, dt, a._device)
        if not self.mean:
            return first
        return [first, Spec(shape, stride, dt, dt, a._device)]


@final
class Scan(Rule):
    """Arguments (self, dim[, dtype]): same shape; integers become int64 unless a dtype is given."""

    def infer(self, args: tuple[Any, ...]) -> Any:
        a = args[0]
        assert isinstance(a, TensorBase)
        wrap_dim(args[1], len(a._shape))
        dt = a._dtype
        if len(args) > 2 and args[2] is not None:
            dt = args[2]
        elif not dt.is_inexact:
            dt = int64
        return Spec(a._shape, contiguous_strides(a._shape), dt, dt, a._device)


# -- rules of single operators ----------------------------------------------------------------------------------------
_LOGSUMEXP: Final = Reduction("logsumexp", MEAN)


def aminmax(self: TensorBase, dim: int | None, keepdim: bool) -> list[Spec]:
    if self._dtype.is_complex:
        raise NotImplementedError(f"\"aminmax_cpu\" not implemented for '{self._dtype.scalar_name}'")
    if numel(self) == 0 and dim is None:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
                           "identity.")
    mask = dim_mask(dim, len(self._shape))
    if dim is not None and len(self._shape) > 0 and self._shape[dim] == 0:
        raise IndexError(f"aminmax: Expected reduction dim {dim} to have non-zero size.")
    one = like(self, reduced_shape(self._shape, mask, keepdim))
    return [one, one]


def count_nonzero(self: TensorBase, dim: Any) -> Spec:
    return like(self, reduced_shape(self._shape, dim_mask_or_all(dim, len(self._shape)), False), int64)


def logsumexp(self: TensorBase, dim: Any, keepdim: bool) -> Any:
    if not self._dtype.is_inexact:
        return like(self, reduced_shape(self._shape, dim_mask(dim, len(self._shape)), keepdim), float32)
    return _LOGSUMEXP.infer((self, dim, keepdim))


_NOT_TRACED: Final = frozenset(("bool", "uint16", "uint32", "uint64", "complex32"))


def trace(self: TensorBase) -> Spec:
    if len(self._shape) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {len(self._shape)}")
    name = self._dtype.name
    if self._device.type == "cpu" and (name in _NOT_TRACED or name.startswith("float8")):
        raise not_implemented("trace", self._dtype)
    return like(self, (), int64 if not self._dtype.is_inexact else None)
