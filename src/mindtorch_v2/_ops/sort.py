"""Sorting, and picking by rank.

Invariant: NaN counts as larger than every number; a result's gradient goes to the element it was taken from.
"""
from __future__ import annotations

from typing import Any

from .._dispatch.op import Op, Spec
from .._dtype import bool as bool_
from .._dtype import int64
from .._layout import contiguous_format
from .reduce import value_selecting_backward
from .rules.base import KeptRule, like, wrap_dim
from .rules.dtype_checks import limits, not_implemented
from .rules.layout import preserved_strides
from .rules.reduce import dim_mask, reduced_shape
from .table import composite, op


def _sort_meta(self: Any, dim: int, descending: bool) -> list[Spec]:
    wrap_dim(dim, len(self._shape))
    if self._dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    if self._dtype.itemsize == 1 and self._dtype.is_floating_point:
        raise NotImplementedError(f"\"sorting_kernel_method_name\" not implemented for '{self._dtype.scalar_name}'")
    stride = preserved_strides(self)
    return [Spec(self._shape, stride, self._dtype, self._dtype, self._device),
            Spec(self._shape, stride, int64, int64, self._device)]


def _back(g: Any, indices: Any, self_shape: Any, dim: int) -> Any:
    return value_selecting_backward(g, dim, indices, self_shape, True)


SORT: Op = op("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
              meta=KeptRule(_sort_meta), out=True, nondiff=("indices",), grad=dict(self=_back))
STABLE: Op = op(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    meta=lambda self, stable, dim, descending: _sort_meta(self, dim, descending), out=True, node="SortBackward1",
    nondiff=("indices",), grad=dict(self=_back),
    kernel=lambda self, stable, dim, descending: SORT.call((self, dim, descending)))
composite("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
          lambda self, dim, descending: SORT.call((self, dim, descending))[1])
composite("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
          lambda self, stable, dim, descending: STABLE.call((self, stable, dim, descending))[1])
composite("msort(Tensor self) -> Tensor", lambda self: SORT.call((self, 0, False))[0], out=True)


def _topk_meta(self: Any, k: int, dim: int, largest: bool, sorted: bool) -> list[Spec]:
    shape = list(self._shape)
    d = wrap_dim(dim, len(shape))
    if k < 0 or k > (shape[d] if shape else 1):
        raise RuntimeError("selected index k out of range")
    if self._dtype.is_complex:
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if self._dtype is bool_:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if shape:
        shape[d] = k
    return [like(self, tuple(shape)), like(self, tuple(shape), int64)]


op("topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
   meta=KeptRule(_topk_meta), out=True, nondiff=("indices",), grad=dict(self=_back))


# -- one element of each slice ------------------------------------------------------------------------------------
def _pick_meta(self: Any, dim: int, keepdim: bool) -> list[Spec]:
    shape = reduced_shape(self._shape, dim_mask(dim, len(self._shape)), keepdim)
    return [like(self, shape), like(self, shape, int64)]


def _check_ordered(self: Any, kernel: str) -> None:
    """Refuse dtypes that the CPU's kernels do not order."""
    if self._device.type == "cpu" and self._dtype.name in ("bool", "uint16", "uint32", "uint64"):
        raise not_implemented(kernel, self._dtype)


def _one_of(name: str) -> Any:
    def rule(self: Any, dim: int, keepdim: bool) -> list[Spec]:
        if name == "mode":
            if self._dtype.is_complex and self._device.type == "cpu":
                raise not_implemented("mode_cpu", self._dtype)
        else:
            _check_ordered(self, "median_out")
        out = _pick_meta(self, dim, keepdim)
        if self._shape and self._shape[wrap_dim(dim, len(self._shape))] == 0:
            raise IndexError(
                f"{name}(): Expected reduction dim {wrap_dim(dim, len(self._shape))} to have non-zero size.")
        return out

    return KeptRule(rule)


def _kth_meta(self: Any, k: int, dim: int, keepdim: bool) -> list[Spec]:
    d = wrap_dim(dim, len(self._shape))
    n = self._shape[d] if self._shape else 1
    if n == 0:
        raise IndexError(f"kthvalue(): Expected reduction dim {d} to have non-zero size.")
    if k < 1 or k > n:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d}")
    return _pick_meta(self, dim, keepdim)


def _select(values: Any, indices: Any, dim: int, place: int, keepdim: bool) -> Any:
    if not values._shape:
        return values.clone(), indices.clone()
    v, i = values.select(dim, place), indices.select(dim, place)
    if keepdim:
        v, i = v.unsqueeze(dim), i.unsqueeze(dim)
    return v.clone(memory_format=contiguous_format), i.clone(memory_format=contiguous_format)


def _kthvalue(self: Any, k: int, dim: int, keepdim: bool) -> Any:
    values, indices = SORT.call((self, dim, False))
    return _select(values, indices, wrap_dim(dim, len(self._shape)), k - 1, keepdim)


def _one_back(g: Any, indices: Any, self_shape: Any, dim: int, keepdim: bool) -> Any:
    return value_selecting_backward(g, dim, indices, self_shape, keepdim)


op("kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
   meta=KeptRule(_kth_meta), out=True, nondiff=("indices",), kernel=_kthvalue, grad=dict(self=_one_back))
op("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", meta=_one_of("mode"),
   out=True, nondiff=("indices",), grad=dict(self=_one_back))


def median_dim(self: Any, dim: int, keepdim: bool, skip_nan: bool) -> Any:
    """The lower of the two middle elements; a NaN is the median unless it is skipped."""
    d = wrap_dim(dim, len(self._shape))
    values, indices = SORT.call((self, d if self._shape else 0, False))
    if not self._shape:
        return values.clone(), indices.clone()
    n = self._shape[d]
    if not self._dtype.is_floating_point:
        return _select(values, indices, d, (n - 1) // 2, keepdim)
    bad = values.isnan()
    if skip_nan:
        place = ((n - bad.sum((d,), True) - 1).clamp(min=0)).div(2, rounding_mode="floor")
    else:
        # NaN stands last: the first of them, where there is one.
        count = bad.sum((d,), True)
        place = (n - count).where(count > 0, (n - 1) // 2)
    v, i = values.gather(d, place), indices.gather(d, place)
    return (v, i) if keepdim else (v.squeeze(d).clone(), i.squeeze(d).clone())


def median_all(self: Any, skip_nan: bool) -> Any:
    flat = self.reshape((-1,))
    if flat._shape[0] == 0:
        least = float("nan") if self._dtype.is_floating_point else limits(self._dtype)[0]
        return self.new_full((), least)
    return median_dim(flat, 0, False, skip_nan)[0]


def _median_back(g: Any, self: Any, result: Any) -> Any:
    mask = (self == result).logical_or(self.isnan().logical_and(result.isnan()))
    return mask * (g / mask.sum())


def _median(name: str, skip_nan: bool) -> None:
    def whole(self: Any) -> Spec:
        _check_ordered(self, "median_cpu")
        return like(self, ())

    op(f"{name}(Tensor self) -> Tensor", meta=KeptRule(whole), out="ops",
       kernel=lambda self: median_all(self, skip_nan), grad=dict(self=_median_back))
    op(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", meta=_one_of(name),
       out=True, nondiff=("indices",), node=f"{name.capitalize()}Backward1", grad=dict(self=_one_back),
       kernel=lambda self, dim, keepdim: median_dim(self, dim, keepdim, skip_nan))


_median("median", False)
_median("nanmedian", True)
