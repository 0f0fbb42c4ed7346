"""Reductions over segments: neighbours along a dimension, as long as a list says.

Invariant: elements that belong to no segment go to one more, which nobody sees and which has no gradient.
"""
from __future__ import annotations

import math
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import int32, int64
from .._tensor_base import all_values, numel
from .index import _scatter_reduce_backward
from .rules.base import like, wrap_dim
from .search import SEARCH
from .table import composite, op

_START = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_OF_SCATTER = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}
_cat = registry.get("cat")
_where = registry.get("where")


def _segment_meta(data: Any, reduce: str, lengths: Any, indices: Any, offsets: Any, axis: int, unsafe: bool,
                  initial: Any) -> Spec:
    at = wrap_dim(axis, data.dim())
    if reduce not in _START:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    given, what = (offsets, "offsets") if lengths is None else (lengths, "lengths")
    if data.dim() < given.dim():
        raise RuntimeError(f"Expected data.dim() >= {what}_value.dim() to be true, but got false.  (Could this error "
                           "message be improved?  If so, please report an enhancement request to PyTorch.)")
    if given.dim() - 1 != at:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {what} but got {at}.")
    if given._dtype not in (int32, int64):
        raise NotImplementedError(f"\"_segment_reduce_{what}_cpu_kernel1\" not implemented for "
                                  f"'{given._dtype.scalar_name}'")
    if not data._dtype.is_floating_point:
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{data._dtype.scalar_name}'")
    count = given._shape[-1] - (lengths is None)
    return like(data, (*data._shape[:at], count, *data._shape[at + 1:]))


def _places(data: Any, lengths: Any, offsets: Any, at: int) -> tuple[Any, Any]:
    """For each element the number of its segment, and for each segment its length, both in the shape of `data`."""
    if lengths is not None:
        ends = lengths.to(int64).cumsum(-1)
        bounds = _cat.call(((ends.new_zeros((*ends._shape[:-1], 1)), ends), -1))
    else:
        bounds = offsets.to(int64)
    count = bounds._shape[-1] - 1
    rows = data._shape[:at + 1]
    numbers = registry.get("arange").call((0, rows[-1], 1, int64, None, data._device, None)).expand(rows)
    ids = SEARCH.call((bounds.expand((*rows[:-1], count + 1)).contiguous(), numbers.contiguous(), False, True, None,
                       None)) - 1
    ids = ids.masked_fill((ids < 0) | (ids >= count), count)
    sizes = bounds.narrow(-1, 1, count) - bounds.narrow(-1, 0, count)
    if lengths is None and data._device.type == "cpu" and all_values(sizes < 0).any().item():
        raise RuntimeError("Expected segment_length >= 0 to be true, but got false.  (Could this error message be "
                           "improved?  If so, please report an enhancement request to PyTorch.)")
    tail = (1,) * (data.dim() - at - 1)
    return ids.view((*rows, *tail)).expand(data._shape), sizes.view((*sizes._shape, *tail))


def _one_more(t: Any, at: int, value: float) -> Any:
    shape = list(t._shape)
    shape[at] = 1
    return _cat.call(((t, t.new_full(tuple(shape), value)), at))


def _segment(data: Any, reduce: str, lengths: Any, indices: Any, offsets: Any, axis: int, unsafe: bool,
             initial: Any) -> Any:
    at = wrap_dim(axis, data.dim())
    ends = lengths if lengths is not None else offsets
    if ends is not None and tuple(ends._shape[:at]) != tuple(data._shape[:at]):
        raise RuntimeError(f"segment_reduce(): Expected {'lengths' if lengths is not None else 'offsets'} to have the "
                           f"sizes of data before axis {at}, {list(data._shape[:at])}, but got {list(ends._shape)}")
    if lengths is not None and unsafe and numel(lengths) and int(all_values(lengths).min()) < 0:
        raise RuntimeError("Expected segment_length >= 0 to be true, but got false.  (Could this error message be "
                           "improved?  If so, please report an enhancement request to PyTorch.)")
    if lengths is not None and not unsafe:
        if int(all_values(lengths).min()) < 0:
            raise RuntimeError("lengths contains negative value!")
        # A length beyond the data is looked for by itself: the sum of several may wrap around to the right one.
        wrong = all_values(lengths.sum((-1,)) != data._shape[at])
        if bool(wrong.any()) or int(all_values(lengths).max()) > data._shape[at]:
            raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to "
                               "data.size(lengths.dim()-1) when !unsafe.")
    if offsets is not None and not unsafe and numel(offsets):
        if int(all_values(offsets).min()) < 0 or int(all_values(offsets).max()) > data._shape[at]:
            raise RuntimeError(f"segment_reduce(): offsets must lie between 0 and {data._shape[at]}, the size of data "
                               f"at axis {at}")
    ids, sizes = _places(data, lengths, offsets, at)
    count = sizes._shape[at]
    shape = (*data._shape[:at], count + 1, *data._shape[at + 1:])
    start = data.new_full(shape, _START[reduce] if initial is None else float(initial))
    out = start.scatter_reduce(at, ids, data, _OF_SCATTER[reduce]).narrow(at, 0, count)
    if reduce != "mean":
        return out
    shared = out / sizes.clamp(min=1)
    # Without elements, and nothing to start from, there is no mean.
    return shared if initial is not None else shared.masked_fill(sizes == 0, math.nan)


def _for_nan(found: Any, g: Any, data: Any, start: Any, at: int, ids: Any) -> Any:
    """The gradients of a product, where an element that is NaN gets the product of the others."""
    missing = data.isnan()
    others = start.scatter_reduce(at, ids, data.masked_fill(missing, 1), "prod")
    count = start.new_zeros(start._shape).scatter_add(at, ids, missing.to(data._dtype))
    of_others = (g * others.masked_fill(count > 1, math.nan)).gather(at, ids)
    return _where.call((missing, of_others, found))


def _segment_grad(g: Any, data: Any, result: Any, reduce: str, lengths: Any, offsets: Any, axis: int,
                  initial: Any) -> Any:
    at = wrap_dim(axis, data.dim())
    ids, sizes = _places(data.detach(), lengths, offsets, at)
    if reduce == "mean":
        g = g / sizes.clamp(min=1)
    g = _one_more(g, at, 0)
    if reduce in ("sum", "mean"):
        return g.gather(at, ids)
    result = _one_more(result, at, 1)
    if reduce == "prod":
        start = data.new_full(result._shape, 1.0 if initial is None else float(initial))
        found = _scatter_reduce_backward(g, start, at, ids, data, "prod", True, result)[1]
        return _for_nan(found, g, data, start, at, ids)
    found = result.gather(at, ids)
    hit = ((data == found) | (data.isnan() & found.isnan())).to(data._dtype)
    ties = data.new_zeros(result._shape).scatter_add(at, ids, hit)
    return (g / ties.clamp(min=1)).gather(at, ids) * hit


_ARGUMENTS = ("Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, "
              "int axis=0, bool unsafe=False, Scalar? initial=None")
SEGMENT: Op = op(f"segment_reduce({_ARGUMENTS}) -> Tensor", meta=_segment_meta, out=True, kernel=_segment,
                 grad=dict(data=_segment_grad))
composite(f"_segment_reduce({_ARGUMENTS}) -> Tensor",
          lambda data, reduce, lengths, indices, offsets, axis, unsafe, initial: SEGMENT.call(
              (data, reduce, lengths, indices, offsets, axis, unsafe, initial)))
