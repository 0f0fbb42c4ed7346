"""Products, differences, rounding and comparisons that are no universal functions.

Invariant: two operands are promoted by NumPy's rules before the operator runs.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ._dtypes import default_dtypes, promote
from ._normalizations import (
    ArrayLike,
    DTypeLike,
    NotImplementedType,
    OutArray,
    casting_mode,
    copy_to,
    dtype_like,
    normalizer,
    out_array,
    wrap_tensors,
)
from ._reductions import _sum_dtype
from ._util import (
    cast_if_needed,
    coerce_to_tensor,
    ndarrays_to_tensors,
    normalize_axis_index,
    normalize_axis_tuple,
    typecast_tensor,
)


def _promoted(*tensors: torch.Tensor) -> tuple[Any, ...]:
    wanted = tensors[0].dtype
    for t in tensors:
        wanted = promote(wanted, t.dtype)
    return tuple(cast_if_needed(t, wanted) for t in tensors)


def _as_computed(a: torch.Tensor, b: torch.Tensor, operator: Any) -> Any:
    """A product of two tensors; of truth values and half precision by way of a dtype that has products."""
    a, b = _promoted(a, b)
    work = {torch.bool: torch.uint8, torch.float16: torch.float32}.get(a.dtype)
    if work is None:
        return operator(a, b)
    return operator(a.to(work), b.to(work)).to(a.dtype)


# -- products ---------------------------------------------------------------------------------------------------------
@normalizer
def dot(a: ArrayLike, b: ArrayLike, out: OutArray | None = None) -> Any:
    """NumPy's `dot`."""
    return _as_computed(a, b, lambda x, y: x * y if not x.dim() or not y.dim() else torch.matmul(x, y))


@normalizer
def vdot(a: ArrayLike, b: ArrayLike, /) -> Any:
    """The product of two lines, the first one conjugated."""
    return _as_computed(torch.flatten(a), torch.flatten(b), torch.vdot)


@normalizer
def inner(a: ArrayLike, b: ArrayLike, /) -> Any:
    """The product over the last axes."""
    return _as_computed(a, b, torch.inner)


@normalizer
def outer(a: ArrayLike, b: ArrayLike, out: OutArray | None = None) -> Any:
    """The product of each element with each."""
    return torch.outer(a, b)


@normalizer
def tensordot(a: ArrayLike, b: ArrayLike, axes: Any = 2) -> Any:
    """The product over chosen axes."""
    if isinstance(axes, (list, tuple)):
        axes = [[ax] if isinstance(ax, int) else ax for ax in axes]
    a, b = _promoted(a, b)
    return torch.tensordot(a, b, dims=axes)


@normalizer
def kron(a: ArrayLike, b: ArrayLike) -> Any:
    """Kronecker's product."""
    return torch.kron(*_promoted(a, b))


@normalizer
def trace(
    a: ArrayLike,
    offset: Any = 0,
    axis1: Any = 0,
    axis2: Any = 1,
    dtype: DTypeLike | None = None,
    out: OutArray | None = None,
) -> Any:
    """The sum of a diagonal."""
    return torch.diagonal(a, offset, dim1=axis1, dim2=axis2).sum(-1, dtype=_sum_dtype(dtype, a.dtype))


def _cross_of(a: torch.Tensor, b: torch.Tensor, axisc: int) -> Any:
    sizes = {a.shape[-1], b.shape[-1]}
    if not sizes <= {2, 3}:
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    if sizes == {2}:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    shape = torch.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    axisc = normalize_axis_index(axisc, len(shape) + 1)

    def component(t: torch.Tensor, i: int) -> Any:
        return t[..., i] if i < t.shape[-1] else torch.zeros((), dtype=t.dtype)

    parts = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        part = component(a, j) * component(b, k) - component(a, k) * component(b, j)
        parts.append(part.broadcast_to(shape))
    return torch.stack(parts, -1).moveaxis(-1, axisc)


@normalizer
def cross(a: ArrayLike, b: ArrayLike, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    """The product of vectors of two or three elements that is orthogonal to both."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a = a.moveaxis(normalize_axis_index(axisa, a.dim()), -1)
    b = b.moveaxis(normalize_axis_index(axisb, b.dim()), -1)
    a, b = _promoted(a, b)
    return _cross_of(a, b, axisc)


def _slide(a: torch.Tensor, v: torch.Tensor, mode: Any) -> Any:
    """The products of one line with another that moves along it."""
    if not a.numel() or not v.numel():
        raise RuntimeError("negative padding is not supported")
    a, v = _promoted(a, v)
    if mode == "full":
        mode = v.shape[0] - 1
    elif mode == "same" and v.shape[0] % 2 == 0:
        raise NotImplementedError("mode='same' and even-length weights")
    return torch.nn.functional.conv1d(a[None, None], v[None, None], padding=mode)[0, 0]


@normalizer
def convolve(a: ArrayLike, v: ArrayLike, mode: Any = "full") -> Any:
    """The convolution of two lines."""
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    return _slide(a, torch.flip(v, (0,)), mode)


@normalizer
def correlate(a: ArrayLike, v: ArrayLike, mode: Any = "valid") -> Any:
    """The correlation of two lines."""
    return _slide(a, torch.conj_physical(v), mode)


def einsum(
    *operands: Any, out: Any = None, dtype: Any = None, order: Any = "K", casting: Any = "safe", optimize: Any = False
) -> Any:
    """Sums of products by the names of axes."""
    if order != "K":
        raise NotImplementedError("'order' parameter is not supported.")
    if out is not None:
        out_array(out)
    wanted = dtype_like(dtype)
    casting_mode(casting)
    operands = tuple(ndarrays_to_tensors(x) for x in operands)
    if isinstance(operands[0], str):
        lead, arrays, lists = operands[:1], [coerce_to_tensor(x) for x in operands[1:]], None
    else:
        lead = ()
        count = len(operands) - len(operands) % 2
        arrays = [coerce_to_tensor(x) for x in operands[:count:2]]
        lists = (operands[1:count:2], operands[count:])
    target = arrays[0].dtype if arrays else torch.float32
    for array in arrays:
        target = promote(target, array.dtype)
    if wanted is not None:
        target = wanted
    # Products of half precision and of truth values go by way of a dtype that has products.
    work = {torch.bool: torch.int64, torch.float16: torch.float32}.get(target, target)
    if not work.is_floating_point and not work.is_complex:
        work = torch.int64
    cast = [typecast_tensor(array, work, casting) for array in arrays]
    if lists is None:
        result = torch.einsum(*lead, *cast)
    else:
        result = torch.einsum(*(x for pair in zip(cast, lists[0], strict=True) for x in pair), *lists[1])
    # As in PyTorch, half precision is not given back.
    if target is torch.bool:
        result = result.to(target)
    return wrap_tensors(copy_to(out, result))


# -- differences ------------------------------------------------------------------------------------------------------
@normalizer
def diff(
    a: ArrayLike, n: Any = 1, axis: Any = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Any:
    """Differences of neighbours along an axis."""
    axis = normalize_axis_index(axis, a.dim())
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return a

    def beside(t: torch.Tensor | None) -> Any:
        if t is None:
            return None
        shape = list(a.shape)
        shape[axis] = t.shape[axis] if t.dim() > 0 else 1
        return torch.broadcast_to(t, shape)

    return torch.diff(a, n, axis=axis, prepend=beside(prepend), append=beside(append))


@normalizer
def gradient(f: ArrayLike, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """Second order differences inside, one-sided ones at the ends."""
    axes = tuple(range(f.dim())) if axis is None else normalize_axis_tuple(axis, f.dim())
    steps = _steps(f, ndarrays_to_tensors(varargs) if varargs else (), axes)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    if not (f.dtype.is_floating_point or f.dtype.is_complex):
        f = f.to(default_dtypes().float_dtype)
    found = [_along(f.moveaxis(ax, -1), h, edge_order).moveaxis(-1, ax) for ax, h in zip(axes, steps, strict=True)]
    return found[0] if len(axes) == 1 else found


def _steps(f: torch.Tensor, given: Any, axes: tuple[int, ...]) -> list[Any]:
    """The spacing of each axis: a number, or distances that are not all the same."""
    if len(given) == 0:
        return [1.0] * len(axes)
    if len(given) == 1 and (not torch.is_tensor(given[0]) or given[0].dim() == 0) and not isinstance(given[0], list):
        return [given[0]] * len(axes)
    if len(given) != len(axes):
        raise TypeError("invalid number of arguments")
    steps: list[Any] = []
    for ax, value in zip(axes, given, strict=True):
        places = torch.as_tensor(value)
        if places.dim() == 0:
            steps.append(value)
            continue
        if places.dim() != 1:
            raise ValueError("distances must be either scalars or 1d")
        if len(places) != f.shape[ax]:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        if not places.dtype.is_floating_point:
            places = places.to(default_dtypes().float_dtype)
        gaps = torch.diff(places)
        steps.append(gaps[0] if bool((gaps == gaps[0]).all()) else gaps)
    return steps


def _along(f: torch.Tensor, h: Any, edge_order: int) -> Any:
    n = f.shape[-1]
    if n < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
            "required."
        )
    out = torch.empty_like(f)
    even = not torch.is_tensor(h) or h.dim() == 0
    if even:
        out[..., 1:-1] = (f[..., 2:] - f[..., :-2]) / (2.0 * h)
    else:
        left, right = h[:-1], h[1:]
        out[..., 1:-1] = (
            -right / (left * (left + right)) * f[..., :-2]
            + (right - left) / (left * right) * f[..., 1:-1]
            + left / (right * (left + right)) * f[..., 2:]
        )
    first, last = (h, h) if even else (h[0], h[-1])
    if edge_order == 1:
        out[..., 0] = (f[..., 1] - f[..., 0]) / first
        out[..., -1] = (f[..., -1] - f[..., -2]) / last
        return out
    second, before = (h, h) if even else (h[1], h[-2])
    out[..., 0] = (
        -(2.0 * first + second) / (first * (first + second)) * f[..., 0]
        + (first + second) / (first * second) * f[..., 1]
        - first / (second * (first + second)) * f[..., 2]
    )
    out[..., -1] = (
        last / (before * (before + last)) * f[..., -3]
        - (last + before) / (before * last) * f[..., -2]
        + (2.0 * last + before) / (last * (before + last)) * f[..., -1]
    )
    return out


# -- parts and rounding -----------------------------------------------------------------------------------------------
@normalizer
def round(a: ArrayLike, decimals: Any = 0, out: OutArray | None = None) -> Any:
    """Rounded to a number of decimals; whole numbers stay."""
    if a.is_floating_point():
        return torch.round(a, decimals=decimals)
    if a.is_complex():
        return torch.complex(torch.round(a.real, decimals=decimals), torch.round(a.imag, decimals=decimals))
    return a


around = round_ = round


@normalizer
def clip(a: ArrayLike, min: ArrayLike | None = None, max: ArrayLike | None = None, out: OutArray | None = None) -> Any:
    """Elements no less than one bound and no greater than another."""
    return torch.clamp(a, min, max)


@normalizer
def angle(z: ArrayLike, deg: Any = False) -> Any:
    """The angle of complex numbers."""
    result = torch.angle(z)
    return torch.rad2deg(result) if deg else result


@normalizer
def sinc(x: ArrayLike) -> Any:
    """sin(pi x) / (pi x)."""
    return torch.sinc(x)


@normalizer
def i0(x: ArrayLike) -> Any:
    """The modified Bessel function of the first kind, order zero."""
    return torch.special.i0(x)


@normalizer
def real(a: ArrayLike) -> Any:
    """Real parts."""
    return torch.real(a)


@normalizer
def imag(a: ArrayLike) -> Any:
    """Imaginary parts."""
    return a.imag if a.is_complex() else torch.zeros_like(a)


@normalizer
def real_if_close(a: ArrayLike, tol: Any = 100) -> Any:
    """Without imaginary parts that are as good as zero."""
    if not torch.is_complex(a):
        return a
    bound = tol * torch.finfo(a.dtype).eps if tol > 1 else tol
    return a.real if bool(torch.all(torch.abs(a.imag) < bound)) else a


@normalizer
def nan_to_num(
    x: ArrayLike, copy: NotImplementedType = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """With numbers for what is no number or infinite."""
    if x.is_complex():
        return torch.complex(
            torch.nan_to_num(x.real, nan=nan, posinf=posinf, neginf=neginf),
            torch.nan_to_num(x.imag, nan=nan, posinf=posinf, neginf=neginf),
        )
    return torch.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


# -- questions --------------------------------------------------------------------------------------------------------
@normalizer
def iscomplex(x: ArrayLike) -> Any:
    """Which elements have an imaginary part."""
    return x.imag != 0 if torch.is_complex(x) else torch.zeros_like(x, dtype=torch.bool)


@normalizer
def isreal(x: ArrayLike) -> Any:
    """Which elements have no imaginary part."""
    return x.imag == 0 if torch.is_complex(x) else torch.ones_like(x, dtype=torch.bool)


@normalizer
def iscomplexobj(x: ArrayLike) -> Any:
    """Whether the dtype is complex."""
    return torch.is_complex(x)


@normalizer
def isrealobj(x: ArrayLike) -> Any:
    """Whether the dtype is real."""
    return not torch.is_complex(x)


@normalizer
def isneginf(x: ArrayLike, out: OutArray | None = None) -> Any:
    """Which elements are minus infinity."""
    return torch.isneginf(x)


@normalizer
def isposinf(x: ArrayLike, out: OutArray | None = None) -> Any:
    """Which elements are plus infinity."""
    return torch.isposinf(x)


def isscalar(a: Any) -> bool:
    """Whether it is a number, or an array of one element."""
    try:
        return bool(coerce_to_tensor(a).numel() == 1)
    except Exception:
        return False


@normalizer
def isclose(a: ArrayLike, b: ArrayLike, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Any:
    """Which elements are equal up to a tolerance."""
    return _close(a, b, rtol, atol, equal_nan)


def _close(a: torch.Tensor, b: torch.Tensor, rtol: Any, atol: Any, equal_nan: Any) -> Any:
    a, b = _promoted(a, b)
    return torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


@normalizer
def allclose(a: ArrayLike, b: ArrayLike, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    """Whether all elements are equal up to a tolerance."""
    return bool(_close(a, b, rtol, atol, equal_nan).all())


def _equal(a: torch.Tensor, b: torch.Tensor, equal_nan: Any) -> bool:
    found = a == b
    if equal_nan:
        found = found | ((a != a) & (b != b))
    return bool(found.all())


@normalizer
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: Any = False) -> Any:
    """Whether shapes and elements are equal."""
    a1, a2 = _promoted(a1, a2)
    return a1.shape == a2.shape and _equal(a1, a2, equal_nan)


@normalizer
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Any:
    """Whether elements are equal after broadcasting."""
    try:
        a1, a2 = torch.broadcast_tensors(a1, a2)
    except RuntimeError:
        return False
    return _equal(a1, a2, False)


NAMES = [
    *("allclose", "angle", "around", "array_equal", "array_equiv", "clip", "convolve", "correlate", "cross", "diff"),
    *("dot", "einsum", "gradient", "i0", "imag", "inner", "isclose", "iscomplex", "iscomplexobj", "isneginf"),
    *("isposinf", "isreal", "isrealobj", "isscalar", "kron", "nan_to_num", "outer", "real", "real_if_close", "round"),
    *("round_", "sinc", "tensordot", "trace", "vdot"),
]
