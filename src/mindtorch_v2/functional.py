"""`torch.functional`: what no schema can say: `tensordot`, `einsum`, `unique` and the like.

Invariant: everything here is Python over rows; what is contracted ends in one sum, multiplication or batched product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _einsum
from ._api import lazy_tables
from ._dispatch import registry
from ._dispatch.binding import Overloads, is_index, need
from ._dispatch.keys import AUTOCASTS, NESTED
from ._dispatch.op import plain_name
from ._dispatch.state import modes
from ._dtype import bool as bool_
from ._dtype import int64, uint8
from ._ops.rules.base import wrap_dims
from ._ops.view import only_tensors
from ._overrides import overridable
from ._size import Size
from ._stft import istft, stft
from ._tensor_base import TensorBase, numel
from ._warn import warn_once

__all__ = [
    "block_diag",
    "broadcast_shapes",
    "cartesian_prod",
    "chain_matmul",
    "einsum",
    "empty_permuted",
    "gradient",
    "istft",
    "lu",
    "stft",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
]


@overridable
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Sum over `dims`: that many last dimensions of `a` and first of `b`, or two lists of dimensions."""
    for t, name, at in ((a, "input", 1), (b, "other", 2)):
        if not isinstance(t, TensorBase):
            raise TypeError(f"tensordot(): argument '{name}' (position {at}) must be Tensor, not {plain_name(t)}")
    if isinstance(dims, TensorBase):
        if numel(dims) > 1 and dims._shape[0] != 2:
            raise AssertionError(f"dims tensor must have size 2 in first dimension, got {dims._shape[0]}")
        dims = dims.tolist() if numel(dims) > 1 else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = tuple(range(-dims, 0)), tuple(range(dims))
    else:
        if not isinstance(dims, (list, tuple)):
            raise RuntimeError(
                "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
                f"containing two lists, but got dims={dims}"
            )
        first, second = dims
    if out is None and isinstance(dims, int):
        return _TENSORDOT.ops[0].call((a, b, first, second))
    return _TENSORDOT.invoke((a, b, first, second), {} if out is None else {"out": out})


_TENSORDOT = Overloads("tensordot", [registry.get("tensordot")], [False], False)


def _refuse_nested(t: Any) -> None:
    if str(t.layout) == "torch.jagged":
        raise RuntimeError("NYI: einsum() of nested tensors of layout torch.jagged")
    raise RuntimeError("Given dimension 1 is irregular and does not have a size.")


def _all_tensors(operands: list[Any]) -> None:
    for i, t in enumerate(operands):
        if not isinstance(t, TensorBase):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {plain_name(t)}")


@overridable
def einsum(*args: Any) -> Any:
    """Einstein's sum: `einsum("ij,jk->ik", a, b)`, or operands and lists of numbers in turn."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand "
            "and its subscripts list"
        )
    if isinstance(args[0], TensorBase):
        labels, result, operands = _einsum.from_lists(args)
        _all_tensors(operands)
    else:
        if not isinstance(args[0], str):
            raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {plain_name(args[0])}")
        operands = list(args[1]) if len(args) == 2 and isinstance(args[1], (list, tuple)) else list(args[1:])
        _all_tensors(operands)
        for t in operands:
            if t._keys & NESTED:
                _refuse_nested(t)
        if not modes() & AUTOCASTS and operands:
            planned = _einsum.planned(args[0], operands)
            if planned is not None:
                return planned
        labels, result = _einsum.from_equation(args[0], len(operands))
    if modes() & AUTOCASTS:
        from ._autocast import as_listed

        return as_listed("einsum", operands, lambda cast: _einsum.contract(labels, result, cast))
    return _einsum.contract(labels, result, operands)


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes have together."""
    given = [_as_shape(shape) for shape in shapes]
    common = [1] * max((len(shape) for shape in given), default=0)
    for i, shape in enumerate(given):
        for back in range(1, len(shape) + 1):
            n = shape[-back]
            if n == 1 or n == common[-back]:
                continue
            if common[-back] == 1 and n < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if common[-back] != 1:
                had = shape if isinstance(shapes[i], int) else shapes[i]
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {n} at {-back}! Mismatching argument at index {i} "
                    f"had {had}; but expected shape should be broadcastable to {common}"
                )
            common[-back] = n
    return Size(common)


def _as_shape(shape: Any) -> tuple[Any, ...]:
    if shape is None:
        return ()
    if isinstance(shape, int):
        return (shape,)
    if isinstance(shape, (tuple, list, str)):
        return tuple(shape)
    raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")


@overridable
def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The distinct elements, or slices along `dim`, in order; with the place of each element and how often they are."""
    lazy_tables.load("search")
    from ._ops.search import distinct

    _bools(
        "_unique2" if dim is None else "unique_dim",
        sorted=sorted,
        return_inverse=return_inverse,
        return_counts=return_counts,
    )
    if dim is None:
        found = distinct("_unique2", (input, sorted, return_inverse, return_counts))
    else:
        given = (input, need("unique_dim", _DIM, 2, dim), sorted, return_inverse, return_counts)
        found = distinct("unique_dim", given)
    return _chosen(found, return_inverse, return_counts)


@overridable
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The first of every run of equal elements, or slices along `dim`."""
    lazy_tables.load("search")
    from ._ops.search import distinct

    _bools("unique_consecutive", return_inverse=return_inverse, return_counts=return_counts)
    dim = None if dim is None else need("unique_consecutive", _DIM, 0, dim)
    found = distinct("_unique_consecutive", (input, return_inverse, return_counts, dim))
    return _chosen(found, return_inverse, return_counts)


def _need_tensor(fname: str, value: Any) -> None:
    if not isinstance(value, TensorBase):
        raise TypeError(f"{fname}(): argument 'input' (position 1) must be Tensor, not {plain_name(value)}")


def _bools(fname: str, **given: Any) -> None:
    for name, value in given.items():
        if not isinstance(value, bool):
            raise TypeError(f"{fname}(): argument '{name}' must be bool, not {plain_name(value)}")


_DIM = registry.get("unsqueeze").schema.args[1]


def _chosen(found: Any, inverse: bool, counts: bool) -> Any:
    if not inverse and not counts:
        return found[0]
    return (found[0], *(found[1:2] if inverse else ()), *(found[2:] if counts else ()))


# -- joining and products of many tensors -----------------------------------------------------------------------------
@overridable
def block_diag(*tensors: Any) -> Any:
    """The matrices along the diagonal of a larger one that is zero elsewhere; vectors are rows."""
    blocks = []
    for i, t in enumerate(only_tensors(tensors)):
        if t.dim() > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.dim()} dimensions"
            )
        blocks.append(t.reshape((1, -1)) if t.dim() < 2 else t)
    if not blocks:
        from ._creation import empty

        return empty((1, 0))
    width = sum([b._shape[1] for b in blocks])
    pad, cat = registry.get("constant_pad_nd"), registry.get("cat")
    rows, at = [], 0
    for b in blocks:
        rows.append(pad.call((b, (at, width - at - b._shape[1]), 0)))
        at += b._shape[1]
    return cat.call((tuple(rows), 0))


@overridable
def cartesian_prod(*tensors: Any) -> Any:
    """Every combination of one element of each vector, one row for each."""
    for t in only_tensors(tensors):
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t._shape)}")
    if len(tensors) == 1:
        return tensors[0]
    from ._ops.shape import meshgrid

    grids = meshgrid(*tensors, indexing="ij")
    return registry.get("stack").call((tuple(g.flatten() for g in grids), 1))


@overridable
def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """The product of matrices, in the cheapest order."""
    lazy_tables.load("linalg_composed")
    row = registry.get("chain_matmul")
    one_list = len(matrices) == 1 and isinstance(matrices[0], (list, tuple))
    items = only_tensors(tuple(matrices[0]) if one_list else matrices)
    return row.call((items,)) if out is None else row.row.out_op.call((items, out))


@overridable
def unravel_index(indices: Any, shape: Any) -> Any:
    """The coordinates in a tensor of that shape of flat places."""
    if indices.is_complex() or indices.is_floating_point() or indices.dtype is bool_:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    from ._from_data import tensor

    steps: list[int] = []
    step = 1
    for n in reversed(sizes):
        steps.insert(0, step)
        step *= n
    places: Any = indices
    steps_, sizes_ = (tensor(list(x), dtype=int64, device=indices._device) for x in (steps, sizes))
    return places.unsqueeze(-1).div(steps_, rounding_mode="floor").remainder(sizes_).unbind(-1)


# What PyTorch's parser has of `gradient`.
_GRADIENT = tuple(
    f"Tensor input, *, {spacing}{dim}, int edge_order = 1"
    for spacing, dim in (
        ("", "tuple of ints dim"),
        ("Number spacing, ", "tuple of ints dim"),
        ("Number spacing = None, ", "int dim = None"),
        ("tuple of Scalars spacing, ", "int dim = None"),
        ("tuple of Scalars spacing, ", "tuple of ints dim"),
        ("tuple of Tensors spacing, ", "int dim = None"),
        ("tuple of Tensors spacing, ", "tuple of ints dim"),
    )
)


# -- differences ------------------------------------------------------------------------------------------------------
@overridable
def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """Estimates of the derivative along each dimension, from the neighbours of each element."""
    listed = isinstance(dim, (list, tuple)) and all(map(is_index, dim))
    if (
        not isinstance(input, TensorBase)
        or not isinstance(edge_order, int)
        or not (dim is None or is_index(dim) or listed)
        or not _is_spacing(spacing)
    ):
        given = {"spacing": (spacing, 1), "dim": (dim, None), "edge_order": (edge_order, 1)}
        named = {name: value for name, (value, default) in given.items() if value is not default}
        from ._dispatch.complaint import of_signatures

        raise of_signatures("gradient", list(_GRADIENT), True, (input,), named)
    spacing = 1 if spacing is None else spacing
    dims = list(range(input.dim())) if dim is None else list(dim) if listed else [dim]
    steps = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(steps) != len(dims):
        if dim is None:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() "
                f"= {len(dims)}', since dim argument was not given, but got a list of length {len(steps)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {len(steps)} and a dim argument of length {len(dims)}."
        )
    if input._dtype is uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for step in steps:
        if isinstance(step, TensorBase) and step._device != input._device:
            raise RuntimeError(
                "torch.gradient expected each tensor to be on the same device, but got devices "
                f"{input._device} and {step._device}!"
            )
    axes = wrap_dims(tuple(dims), input.dim())
    for d in axes:
        if not input.dim():
            raise IndexError(f"Dimension specified as {d} but tensor has no dimensions")
        if input._shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_along(input, step, d, edge_order) for step, d in zip(steps, axes))


def _is_spacing(value: Any) -> bool:
    """A number, or numbers or tensors in a list."""
    listed = value if isinstance(value, (list, tuple)) else () if value is None else (value,)
    import numbers

    return all(isinstance(v, (numbers.Number, TensorBase)) for v in listed)


def _along(t: Any, step: Any, d: int, order: int) -> Any:
    n = t._shape[d]

    def at(i: int, count: int = 1) -> Any:
        return t.narrow(d, i if i >= 0 else n + i, count)

    if isinstance(step, TensorBase):
        first, middle, last = _uneven(t, step, d, order, at)
    else:
        middle = (at(2, n - 2) - at(0, n - 2)) / (step * 2)
        if order == 1:
            first, last = (at(1) - at(0)) / step, (at(-1) - at(-2)) / step
        else:
            first = (at(0) * -1.5 + at(1) * 2 - at(2) * 0.5) / step
            last = (at(-3) * 0.5 - at(-2) * 2 + at(-1) * 1.5) / step
    return registry.get("cat").call(((first, middle, last), d))


def _uneven(t: Any, places: Any, d: int, order: int, at: Any) -> tuple[Any, Any, Any]:
    """At places given one by one: weights of the neighbours by their distances."""
    n = t._shape[d]
    if places.dim() != 1 or places._shape[0] != n:
        raise RuntimeError("torch.gradient expected each element of spacing to have the size of its dimension")
    wide = tuple(-1 if i == d else 1 for i in range(t.dim()))
    gaps = (places[1:] - places[:-1]).reshape(wide)

    def gap(i: int, count: int = 1) -> Any:
        return gaps.narrow(d, i if i >= 0 else n - 1 + i, count)

    x, y = gap(0, n - 2), gap(1, n - 2)
    middle = (
        at(0, n - 2) * (-y / (x * (x + y))) + at(1, n - 2) * ((y - x) / (x * y)) + at(2, n - 2) * (x / (y * (x + y)))
    )
    if order == 1:
        return (at(1) - at(0)) / gap(0), middle, (at(-1) - at(-2)) / gap(-1)
    x, y = gap(0), gap(1)
    first = at(0) * (-(x * 2 + y) / (x * (x + y))) + at(1) * ((x + y) / (x * y)) + at(2) * (-x / (y * (x + y)))
    x, y = gap(-2), gap(-1)
    last = at(-3) * (y / (x * (x + y))) + at(-2) * (-(x + y) / (x * y)) + at(-1) * ((y * 2 + x) / (y * (x + y)))
    return first, middle, last


# -- factors and spectra ----------------------------------------------------------------------------------------------
@overridable
def lu(A: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """The LU factors of matrices in one tensor, the exchanges of rows, and on request whether it worked."""
    warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in "
        "a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\nLU, pivots = "
        "torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = torch.lu(A, compute_pivots, "
        "get_infos=True)\nshould be replaced with\nLU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
    )
    lazy_tables.load("linalg")
    _bools("_lu_with_info", pivot=pivot)
    found = tuple(registry.get("_lu_with_info").call((A, pivot, False)))[: 3 if get_infos else 2]
    if out is None:
        return found
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(found):
        raise TypeError(f"expected tuple of {len(found)} elements but got {len(out)}")
    for target, value in zip(out, found):
        target.resize_as_(value).copy_(value)
    return out


def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A tensor whose dimensions lie in memory in the given order, the innermost last; its values are whatever was
    there."""
    from ._creation import _SIZE, empty

    size = need("empty_permuted", _SIZE, 1, size)
    if not isinstance(physical_layout, (list, tuple)):
        raise TypeError(
            "empty_permuted(): argument 'physical_layout' (position 2) must be tuple of ints, not "
            f"{plain_name(physical_layout)}"
        )
    _bools("empty_permuted", requires_grad=requires_grad)
    n = len(size)
    if len(physical_layout) != n:
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {n} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    at = [-1] * n
    for i, d in enumerate(physical_layout):
        if not 0 <= d < n:
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {n - 1}, but got {d} at index "
                f"{i}).  NB: negative dims not currently supported; file an issue if you want it."
            )
        if at[d] >= 0:
            raise RuntimeError("Duplicate dim not allowed")
        at[d] = i
    made = empty(
        tuple(size[d] for d in physical_layout), dtype=dtype, layout=layout, device=device, pin_memory=pin_memory
    )
    made = made.permute(at).detach()
    return made.requires_grad_() if requires_grad else made


# Functions of this module that live elsewhere.
_ELSEWHERE = (
    "atleast_1d atleast_2d atleast_3d broadcast_tensors cdist meshgrid norm pca_lowrank split svd_lowrank".split()
)


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    import mindtorch_v2 as torch

    return getattr(torch, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_ELSEWHERE})
