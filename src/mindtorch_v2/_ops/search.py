"""Distinct values, membership, places in a sorted sequence, counting into bins.

Invariant: results whose size depends on values are made from sorts and masks on the tensor's own device; nothing here
has a gradient except through the values it selects.
"""
from __future__ import annotations

import math
from typing import Any

from .._autograd.forward import UNSUPPORTED
from .._autograd.record import Formulas
from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dispatch.state import is_grad_enabled
from .._dtype import bool as bool_
from .._dtype import float32, float64, int32, int64
from .._dtype_names import cpp_name
from .._sizes import LONG_MAX, too_large
from .._tensor_base import TensorBase, is_contiguous, is_dual, numel
from .._warn import warn_once
from .rules.base import KeptRule, like, spec, wrap_dim
from .rules.out import Target
from .rules.shape import as_double
from .table import composite, op

_cat = registry.get("cat")


# -- distinct values ----------------------------------------------------------------------------------------------
def _starts(differs: Any, like_: Any) -> Any:
    """Where a run of equal elements begins: at the first, and where one differs from the one before."""
    return _cat.call(((like_.new_ones((1,), dtype=bool_), differs), 0))


def _lengths(fresh: Any) -> Any:
    """How long each run is."""
    at = fresh.nonzero().reshape((-1,))
    end = at.new_full((1,), fresh._shape[0])
    return _cat.call(((at[1:], end), 0)) - at


def _runs(rows: Any, differs: Any) -> tuple[Any, Any, Any]:
    """The first element of every run, the run each element is in, and the lengths of the runs."""
    if rows._shape[0] == 0:
        empty = rows.new_empty((0,), dtype=int64)
        return rows.clone(), empty, empty.clone()
    fresh = _starts(differs, rows)
    return rows[fresh], fresh.cumsum(0) - 1, _lengths(fresh)


def _check_order(name: str, self: Any) -> None:
    if self._dtype.is_complex:
        raise NotImplementedError(f"\"{name}\" not implemented for '{self._dtype.scalar_name}'")


def unique(self: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
    _check_order("unique", self)
    flat = self.detach().reshape((-1,))
    values, order = flat.sort(0)
    found, run, counts = _runs(values, values[1:] != values[:-1])
    inverse = run.new_empty((numel(flat),)).scatter(0, order, run) if numel(flat) else run
    return found, inverse.view(self._shape), counts


def unique_consecutive(self: Any, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    x = self.detach()
    if dim is None:
        flat = x.reshape((-1,))
        found, run, counts = _runs(flat, flat[1:] != flat[:-1])
        return found, run.view(self._shape), counts
    rows, d = _rows("unique_consecutive", x, dim)
    found, run, counts = _runs(rows, _differ(rows))
    return _shaped(found, x, d), run, counts


def _rows(name: str, self: Any, dim: int) -> tuple[Any, int]:
    """One row for each place along `dim`."""
    if not self._shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, self.dim())
    n = self._shape[d]
    if numel(self) == 0 and (n != 0 or self._shape.count(0) != 1):
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return self.movedim(d, 0).reshape((n, -1) if n else (0, 0)), d


def _differ(rows: Any) -> Any:
    return (rows[1:] != rows[:-1]).any(1) if rows._shape[0] else rows.new_empty((0,), dtype=bool_)


def _shaped(found: Any, self: Any, d: int) -> Any:
    rest = self._shape[:d] + self._shape[d + 1:]
    return found.contiguous().view((found._shape[0], *rest)).movedim(0, d)


def _unique_dim(self: Any, dim: int, sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
    """Rows in the order of their first elements, then of their second ones, ..."""
    _check_order("unique_dim", self)
    x = self.detach()
    rows, d = _rows("unique_dim", x, dim)
    if numel(rows) > LONG_MAX // x._dtype.itemsize:
        raise too_large(tuple(rows._shape))  # a copy, which PyTorch makes, would be refused
    order = rows.new_ones((rows._shape[0],), dtype=int64).cumsum(0) - 1
    for column in range(rows._shape[1] - 1, -1, -1):
        order = order[rows[:, column][order].sort(stable=True)[1]]
    ranked = rows[order]
    found, run, counts = _runs(ranked, _differ(ranked))
    inverse = run.new_empty(run._shape).scatter(0, order, run) if numel(run) else run
    return _shaped(found, x, d), inverse, counts


UNIQUE: Op = composite("_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
                       "-> (Tensor, Tensor, Tensor)", unique, method=False)
UNIQUE_DIM: Op = composite("unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
                           "return_counts=False) -> (Tensor, Tensor, Tensor)", _unique_dim, function=False,
                           method=False)
CONSECUTIVE: Op = composite("_unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, "
                            "int? dim=None) -> (Tensor, Tensor, Tensor)", unique_consecutive, function=False,
                            method=False)


def _refusing(o: Op, name: str, node: str) -> Formulas:
    def refuse(grads: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return Formulas(o.name, o.schema, {"self": refuse}, node, ())


# By row: what PyTorch calls it, and its node.
_NODES = {o.name: (name, _refusing(o, name, f"{node}Backward0"))
          for o, name, node in ((UNIQUE, "_unique2", "Unique2"), (UNIQUE_DIM, "unique_dim", "UniqueDim"),
                                (CONSECUTIVE, "unique_consecutive", "UniqueConsecutive"))}


def distinct(name: str, args: tuple[Any, ...]) -> Any:
    """The results of one of the three; PyTorch records them, and refuses to go back."""
    known, f = _NODES[name]
    if isinstance(args[0], TensorBase) and is_dual(args[0]):
        raise NotImplementedError(UNSUPPORTED.format(known))
    found = registry.get(name).call(args)
    need = f.need(args)
    if need and is_grad_enabled():
        f.finish(f.start(args, need), found, need)
    return found


# -- membership ---------------------------------------------------------------------------------------------------
def isin(elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Any:
    for given in (elements, test_elements):
        if isinstance(given, TensorBase):
            kind = given._dtype.scalar_name if given._dtype.is_complex or given._dtype is bool_ else ""
        else:
            kind = "ComplexDouble" if isinstance(given, complex) else "Bool" if isinstance(given, bool) else ""
        if kind:
            raise RuntimeError(f"Unsupported input type encountered for isin(): {kind}")
    count = numel(test_elements) if isinstance(test_elements, TensorBase) else -1
    if not isinstance(elements, TensorBase):
        elements = test_elements.new_full((), elements)
    if count < 0:
        found = elements == test_elements
    elif count < 10 * float(numel(elements)) ** 0.145:
        found = elements.new_zeros(elements._shape, dtype=bool_)
        if count:
            found = (elements.unsqueeze(-1) == test_elements.reshape((-1,))).any(-1)
    else:
        wanted = test_elements.detach().reshape((-1,)).sort(0)[0]
        low, high = elements.detach(), wanted
        if low._dtype is not high._dtype:
            dt = (low.new_empty((1,)) + high.new_empty((1,)))._dtype
            low, high = low.to(dt), high.to(dt)
        at = SEARCH.call((high, low, False, False, None, None)).clamp(max=count - 1)
        found = high[at] == low
    return found.logical_not() if invert else found


for _overload, _left, _right in (("Tensor_Tensor", "Tensor elements", "Tensor test_elements"),
                                 ("Tensor_Scalar", "Tensor elements", "Scalar test_element"),
                                 ("Scalar_Tensor", "Scalar element", "Tensor test_elements")):
    composite(f"isin.{_overload}({_left}, {_right}, *, bool assume_unique=False, bool invert=False) -> Tensor", isin,
              out=True, method=False)


# -- places in a sorted sequence ----------------------------------------------------------------------------------
def _search_rule(sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: str | None,
                 sorter: Any) -> Spec:
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while "
                           "right was True")
    s = sorted_sequence
    if s._dtype.is_complex:
        raise NotImplementedError(f"\"searchsorted_out_cpu\" not implemented for '{s._dtype.scalar_name}'")
    if sorter is not None:
        if sorter._shape != s._shape:
            raise RuntimeError("torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
                               f"tensor {list(s._shape)}and got sorter tensor {list(sorter._shape)}")
        if sorter._dtype is not int64:
            raise RuntimeError("torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
                               f"{sorter._dtype.scalar_name}")
    shape: tuple[int, ...] = ()
    if isinstance(self, TensorBase):
        shape = self._shape
        if len(s._shape) != 1 and (not s._shape or s._shape[:-1] != shape[:-1]):
            raise RuntimeError(
                "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                f"boundaries tensor and input value tensor must match, but we got boundaries tensor {list(s._shape)} "
                f"and input value tensor {list(shape)}")
        if self._dtype.is_complex:
            raise NotImplementedError(f"\"searchsorted_out_cpu\" not implemented for '{self._dtype.scalar_name}'")
    elif len(s._shape) != 1:
        raise RuntimeError("torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension "
                           f"is 1, but we got boundaries tensor dim({len(s._shape)}) and input value's dim(0) "
                           "numel(1)")
    elif isinstance(self, complex):
        kind = "ComplexDouble" if s._dtype is float64 else "ComplexFloat"
        raise NotImplementedError(f"\"searchsorted_out_cpu\" not implemented for '{kind}'")
    return spec(shape, int32 if out_int32 else int64, s._device)


_KEPT_SEARCH = KeptRule(_search_rule)


def _search_meta(sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: str | None, sorter: Any) -> Spec:
    found: Spec = _KEPT_SEARCH.infer((sorted_sequence, self, out_int32, right, side, sorter))
    if not is_contiguous(sorted_sequence) or sorter is not None or (
            isinstance(self, TensorBase) and not is_contiguous(self)):
        _warn_of_copies(sorted_sequence, self, sorter)
    return found


def _found(*args: Any) -> Target:
    return Target("same", "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or "
                  "Long(int64) depending on whether out_int32 flag is True, but we got output tensor's dtype {got} and "
                  f"out_int32 flag is {'True' if args[2] else 'False'}")


_OPTIONS = "bool out_int32=False, bool right=False"
SEARCH: Op = op(f"searchsorted(Tensor sorted_sequence, Tensor self, *, {_OPTIONS}, str? side=None, "
                "Tensor? sorter=None) -> Tensor", meta=_search_meta, numbers=("self",), out=_found, method=False,
                nondifferentiable=True)


def _warn_of_copies(boundaries: Any, values: Any, sorter: Any) -> None:
    for what, t in (("input value", values), ("boundary", boundaries), ("sorter", sorter)):
        if isinstance(t, TensorBase) and not is_contiguous(t) and t._device.type != "meta":
            warn_once(f"torch.searchsorted(): {what} tensor is non-contiguous, this will lower the performance due to "
                      "extra data copy when converting non-contiguous tensor to contiguous, please use contiguous "
                      f"{what} tensor if possible. This message will only appear once per program.")


def _bucketize_meta(self: Any, boundaries: Any, out_int32: bool, right: bool) -> Spec:
    if len(boundaries._shape) != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({len(boundaries._shape)})")
    return _search_meta(boundaries, self, out_int32, right, None, None)


op(f"bucketize(Tensor self, Tensor boundaries, *, {_OPTIONS}) -> Tensor", meta=_bucketize_meta, numbers=("self",),
   out=_found, method=False, nondifferentiable=True,
   kernel=lambda self, boundaries, out_int32, right: SEARCH.call((boundaries, self, out_int32, right, None, None)))


# -- counting -----------------------------------------------------------------------------------------------------
def bincount(self: Any, weights: Any, minlength: int) -> Any:
    if not self._dtype.is_integer:
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{self._dtype.scalar_name}'")
    if self.dim() != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if not numel(self):
        return self.new_zeros((minlength,), dtype=int64)
    if weights is not None and weights._shape != self._shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    x = self.detach().to(int64)
    # One transfer for both numbers.
    least, most = registry.get("stack").call(((x.min(), x.max()), 0)).tolist()
    if least < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if most >= LONG_MAX:
        raise RuntimeError(f"maximum value of input overflowed, it should be < {LONG_MAX} but got {most}")
    size = max(minlength, most + 1)
    if weights is None:
        return x.new_zeros((size,)).index_add(0, x, x.new_ones(x._shape))
    w = weights.detach()
    w = w if w._dtype in (float32, float64) else w.to(float64)
    return w.new_zeros((size,)).index_add_(0, x, w)


composite("bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", bincount)


_HIST = Target("same", "torch.histogram: input tensor and hist tensor should have the same dtype, but got input "
               "{c_want} and hist {c_got}", last=True)
_EDGES = Target("same", "torch.histogram: input tensor and bin_edges tensor should have the same dtype, but got input "
                "{c_want} and bin_edges {c_got} for dimension 0")


def _histc_meta(self: Any, bins: int, min: Any, max: Any) -> Spec:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high = as_double(min), as_double(max)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if not self._dtype.is_floating_point and self._device.type == "cpu":
        # Without bounds the extremes are looked for first; edges are made before elements are counted.
        kernel = ("aminmax_cpu" if self._dtype.is_complex and low == high and numel(self) else
                  "linspace_cpu" if self._dtype is bool_ else "histogram_cpu")
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{self._dtype.scalar_name}'")
    return like(self, (bins,))


op("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", meta=_histc_meta, out=_HIST,
   nondifferentiable=True)


def _checked(self: Any, weight: Any) -> None:
    if not self._dtype.is_floating_point:
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{self._dtype.scalar_name}'")
    if weight is not None and weight._dtype is not self._dtype:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should "
                           f"have the same dtype, but got input({cpp_name(self._dtype)}), and "
                           f"weight({cpp_name(weight._dtype)})")
    if weight is not None and weight._shape != self._shape:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the same shape as the input "
                           "tensor excluding its innermost dimension, but got input with shape "
                           f"{[numel(self), 1]} and weight with shape {list(weight._shape)}")


def _check_counted(self: Any) -> None:
    if self._dtype.itemsize < 4 and self._device.type == "cpu":
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{self._dtype.scalar_name}'")


def _histogram_edges(self: Any, bins: Any, weight: Any, density: bool) -> list[Spec]:
    _checked(self, weight)
    if bins._dtype is not self._dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{cpp_name(self._dtype)} and bins for dimension 0 with dtype {cpp_name(bins._dtype)}")
    if bins.dim() != 1:
        raise RuntimeError(f"torch.histogramdd: bins tensor should have one dimension, but got {bins.dim()} dimensions "
                           "in the bins tensor for dimension 0")
    if not numel(bins):
        raise RuntimeError("torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the "
                           "bins tensor for dimension 0")
    _check_counted(self)
    return [like(self, (numel(bins) - 1,)), like(self, (numel(bins),))]


def _histogram_count(self: Any, bins: int, range: Any, weight: Any, density: bool) -> list[Spec]:
    _checked(self, weight)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if range is not None and len(range) != 2:
        raise RuntimeError("torch.histogramdd: for a 1-dimensional histogram range should have 2 elements, but got "
                           f"{len(range)}")
    if range is not None and range[0] > range[1]:
        raise RuntimeError("torch.histogramdd: min should not exceed max, but got min "
                           f"{range[0]:g} max {range[1]:g} for dimension 0")
    _check_counted(self)
    return [like(self, (bins,)), like(self, (bins + 1,))]


op("histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) "
   "-> (Tensor hist, Tensor bin_edges)", meta=_histogram_edges, out=(_HIST, _EDGES), nondifferentiable=True)
op("histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) "
   "-> (Tensor hist, Tensor bin_edges)", meta=_histogram_count, out=(_HIST, _EDGES), nondifferentiable=True)


def _nonzero_static(self: Any, size: int, fill_value: int) -> Any:
    if size == 0:
        return self.new_empty((0, self.dim()), dtype=int64)
    found = self.nonzero()[:size]
    out = found.new_full((size, self.dim()), fill_value)
    out[:found._shape[0]] = found
    return out


def _nonzero_static_meta(self: Any, size: int, fill_value: int) -> Spec:
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    return like(self, (size, self.dim()), int64)


op("nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor", meta=_nonzero_static_meta, out=True,
   kernel=_nonzero_static, nondifferentiable=True)
