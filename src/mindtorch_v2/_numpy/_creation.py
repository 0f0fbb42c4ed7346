"""Arrays from shapes, ranges and patterns.

Invariant: without a dtype the result has the default one that NumPy's function has in PyTorch's copy of it.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ._dtypes import default_dtypes, dtype_of_scalar, is_scalar, promote
from ._normalizations import ArrayLike, ArrayLikeOrScalar, DTypeLike, NotImplementedType, normalizer
from ._util import is_sequence


def _float(dtype: torch.dtype | None) -> torch.dtype:
    return default_dtypes().float_dtype if dtype is None else dtype


def _sizes(shape: Any) -> Any:
    """A shape in which arrays without dimensions stand for their numbers."""
    from ._ndarray import ndarray

    if isinstance(shape, ndarray):
        shape = shape.tolist()
    if is_sequence(shape):
        return tuple(int(n) if isinstance(n, ndarray) else n for n in shape)
    return shape


@normalizer
def empty(
    shape: Any, dtype: DTypeLike | None = None, order: NotImplementedType = "C", *, like: NotImplementedType = None
) -> Any:
    """An array that nobody has written."""
    return torch.empty(_sizes(shape), dtype=_float(dtype))


@normalizer
def zeros(
    shape: Any, dtype: DTypeLike | None = None, order: NotImplementedType = "C", *, like: NotImplementedType = None
) -> Any:
    """An array of zeros."""
    return torch.zeros(_sizes(shape), dtype=_float(dtype))


@normalizer
def ones(
    shape: Any, dtype: DTypeLike | None = None, order: NotImplementedType = "C", *, like: NotImplementedType = None
) -> Any:
    """An array of ones."""
    return torch.ones(_sizes(shape), dtype=_float(dtype))


@normalizer
def full(
    shape: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    order: NotImplementedType = "C",
    *,
    like: NotImplementedType = None,
) -> Any:
    """An array of one value."""
    sizes = _sizes(shape)
    if not isinstance(sizes, (tuple, list)):
        sizes = (sizes,)
    return torch.full(sizes, fill_value, dtype=fill_value.dtype if dtype is None else dtype)


def _shaped(result: torch.Tensor, shape: Any) -> Any:
    if shape is None:
        return result
    return result.reshape(_sizes(shape) if is_sequence(shape) else (_sizes(shape),))


@normalizer
def empty_like(
    prototype: ArrayLike,
    dtype: DTypeLike | None = None,
    order: NotImplementedType = "K",
    subok: NotImplementedType = False,
    shape: Any = None,
) -> Any:
    """An array like another that nobody has written."""
    return _shaped(torch.empty_like(prototype, dtype=dtype), shape)


@normalizer
def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: NotImplementedType = "K",
    subok: NotImplementedType = False,
    shape: Any = None,
) -> Any:
    """An array like another, of zeros."""
    return _shaped(torch.zeros_like(a, dtype=dtype), shape)


@normalizer
def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: NotImplementedType = "K",
    subok: NotImplementedType = False,
    shape: Any = None,
) -> Any:
    """An array like another, of ones."""
    return _shaped(torch.ones_like(a, dtype=dtype), shape)


@normalizer
def full_like(
    a: ArrayLike,
    fill_value: Any,
    dtype: DTypeLike | None = None,
    order: NotImplementedType = "K",
    subok: NotImplementedType = False,
    shape: Any = None,
) -> Any:
    """An array like another, of one value."""
    return _shaped(torch.full_like(a, fill_value, dtype=dtype), shape)


@normalizer
def eye(
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: DTypeLike | None = None,
    order: NotImplementedType = "C",
    *,
    like: NotImplementedType = None,
) -> Any:
    """Ones on a diagonal."""
    result = torch.zeros(N, N if M is None else M, dtype=_float(dtype))
    if -result.shape[0] <= k <= result.shape[1]:
        result.diagonal(k).fill_(1)
    return result


@normalizer
def identity(n: Any, dtype: DTypeLike | None = None, *, like: NotImplementedType = None) -> Any:
    """Ones on the main diagonal of a square."""
    return torch.eye(n, dtype=dtype)


@normalizer
def tri(N: Any, M: Any = None, k: Any = 0, dtype: DTypeLike | None = None, *, like: NotImplementedType = None) -> Any:
    """Ones at and below a diagonal."""
    return torch.tril(torch.ones(N, N if M is None else M, dtype=dtype), diagonal=k)


@normalizer
def diag(v: ArrayLike, k: Any = 0) -> Any:
    """A diagonal, or the matrix that has it."""
    return torch.diag(v, k)


@normalizer
def diagflat(v: ArrayLike, k: Any = 0) -> Any:
    """The matrix with all elements on a diagonal."""
    return torch.diagflat(v, k)


@normalizer
def vander(x: ArrayLike, N: Any = None, increasing: bool = False) -> Any:
    """Powers of the elements, by columns."""
    return torch.vander(x, N, increasing)


# -- ranges -----------------------------------------------------------------------------------------------------------
@normalizer
def arange(
    start: ArrayLikeOrScalar | None = None,
    stop: ArrayLikeOrScalar | None = None,
    step: ArrayLikeOrScalar | None = 1,
    dtype: DTypeLike | None = None,
    *,
    like: NotImplementedType = None,
) -> Any:
    """Numbers at equal steps from a start up to a stop."""
    first: Any = start
    last: Any = stop
    by: Any = step
    if by == 0:
        raise ZeroDivisionError
    if last is None and first is None:
        raise TypeError
    if last is None:
        first, last = 0, first
    first = 0 if first is None else first
    kinds = [dtype_of_scalar(type(x)) if is_scalar(x) else x.dtype for x in (first, last, by)]
    found = promote(promote(kinds[0], kinds[1]), kinds[2])
    if found.is_complex:
        raise NotImplementedError
    wanted = found if dtype is None else dtype
    if found is torch.bool:
        wanted = default_dtypes().int_dtype if dtype is None else dtype
    # Ranges of complex and of small numbers are made wider and cast.
    work = torch.float64 if wanted.is_complex else wanted
    if (by > 0 and first > last) or (by < 0 and first < last):
        return torch.empty(0, dtype=wanted)
    result = torch.arange(_number(first), _number(last), _number(by), dtype=work)
    return result.to(wanted)


def _number(x: Any) -> Any:
    return x if is_scalar(x) else x.item()


@normalizer
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: DTypeLike | None = None,
    axis: Any = 0,
) -> Any:
    """Numbers at equal steps, both ends among them."""
    if axis != 0 or retstep or not endpoint:
        raise NotImplementedError
    wanted = _float(dtype)
    return torch.linspace(start, stop, num, dtype=wanted)


@normalizer
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: Any = 50,
    endpoint: Any = True,
    dtype: DTypeLike | None = None,
    axis: Any = 0,
) -> Any:
    """Numbers at equal ratios, both ends among them."""
    if axis != 0 or not endpoint:
        raise NotImplementedError
    base = torch.pow(stop / start, 1.0 / (num - 1))
    return torch.logspace(torch.log(start) / torch.log(base), torch.log(stop) / torch.log(base), num, base=base)


@normalizer
def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    base: Any = 10.0,
    dtype: DTypeLike | None = None,
    axis: Any = 0,
) -> Any:
    """Powers of a base at equal steps of the exponent."""
    if axis != 0 or not endpoint:
        raise NotImplementedError
    return torch.logspace(start, stop, num, base=base, dtype=dtype)


# -- indices ----------------------------------------------------------------------------------------------------------
@normalizer
def indices(dimensions: Any, dtype: DTypeLike | None = int, sparse: Any = False) -> Any:
    """The indices of every element, by dimension."""
    sizes = tuple(dimensions)
    n = len(sizes)
    found = []
    for i, size in enumerate(sizes):
        line = torch.arange(size, dtype=dtype).reshape((1,) * i + (size,) + (1,) * (n - i - 1))
        found.append(line if sparse else line.expand(sizes))
    if sparse:
        return tuple(found)
    return torch.stack(found) if found else torch.empty(0, dtype=dtype)


@normalizer
def tril_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """Rows and columns at and below a diagonal."""
    return torch.tril_indices(n, n if m is None else m, offset=k)


@normalizer
def triu_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """Rows and columns at and above a diagonal."""
    return torch.triu_indices(n, n if m is None else m, offset=k)


@normalizer
def tril_indices_from(arr: ArrayLike, k: Any = 0) -> Any:
    """Rows and columns of a matrix at and below a diagonal."""
    if arr.dim() != 2:
        raise ValueError("input array must be 2-d")
    return torch.tril_indices(arr.shape[0], arr.shape[1], offset=k)


@normalizer
def triu_indices_from(arr: ArrayLike, k: Any = 0) -> Any:
    """Rows and columns of a matrix at and above a diagonal."""
    if arr.dim() != 2:
        raise ValueError("input array must be 2-d")
    return torch.triu_indices(arr.shape[0], arr.shape[1], offset=k)


@normalizer
def diag_indices(n: Any, ndim: Any = 2) -> Any:
    """The indices of a main diagonal."""
    return (torch.arange(n),) * ndim


@normalizer
def diag_indices_from(arr: ArrayLike) -> Any:
    """The indices of the main diagonal of an array."""
    if not arr.dim() >= 2:
        raise ValueError("input array must be at least 2-d")
    if any(s != arr.shape[0] for s in arr.shape):
        raise ValueError("All dimensions of input must be of equal length")
    return (torch.arange(arr.shape[0]),) * arr.dim()


@normalizer
def meshgrid(*xi: ArrayLike, copy: Any = True, sparse: Any = False, indexing: Any = "xy") -> Any:
    """Coordinates of a grid from coordinates of its axes."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    n = len(xi)
    lines = [x.reshape((1,) * i + (-1,) + (1,) * (n - i - 1)) for i, x in enumerate(xi)]
    if indexing == "xy" and n > 1:
        lines[0] = lines[0].reshape((1, -1) + (1,) * (n - 2))
        lines[1] = lines[1].reshape((-1, 1) + (1,) * (n - 2))
    if not sparse:
        lines = list(torch.broadcast_tensors(*lines)) if lines else []
    return [line.clone() for line in lines] if copy else lines


# -- windows ----------------------------------------------------------------------------------------------------------
@normalizer
def bartlett(M: Any) -> Any:
    """Bartlett's window."""
    return torch.bartlett_window(M, periodic=False, dtype=default_dtypes().float_dtype)


@normalizer
def blackman(M: Any) -> Any:
    """Blackman's window."""
    return torch.blackman_window(M, periodic=False, dtype=default_dtypes().float_dtype)


@normalizer
def hamming(M: Any) -> Any:
    """Hamming's window."""
    return torch.hamming_window(M, periodic=False, dtype=default_dtypes().float_dtype)


@normalizer
def hanning(M: Any) -> Any:
    """Hann's window."""
    return torch.hann_window(M, periodic=False, dtype=default_dtypes().float_dtype)


@normalizer
def kaiser(M: Any, beta: Any) -> Any:
    """Kaiser's window."""
    return torch.kaiser_window(M, periodic=False, beta=beta, dtype=default_dtypes().float_dtype)


NAMES = [
    *("arange", "bartlett", "blackman", "diag", "diag_indices", "diag_indices_from", "diagflat", "empty"),
    *("empty_like", "eye", "full", "full_like", "geomspace", "hamming", "hanning", "identity", "indices", "kaiser"),
    *("linspace", "logspace", "meshgrid", "ones", "ones_like", "tri", "tril_indices", "tril_indices_from"),
    *("triu_indices", "triu_indices_from", "vander", "zeros", "zeros_like"),
]
