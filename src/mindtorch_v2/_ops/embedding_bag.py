"""Bags of embeddings: sums, means and maxima of rows of a table.

Invariant: a bag without rows gives zeros; rows of the padding index are not in the bag.
"""
from __future__ import annotations

from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op
from .._dtype import int32, int64
from .._promotion import promote
from .composites.formulas import narrow, wide
from .table import composite

_EMBEDDING = registry.get("embedding")
_WHERE = registry.get("where")
_SUM, _MEAN, _MAX = 0, 1, 2


def _check(weight: Any, indices: Any, offsets: Any, mode: int, per_sample_weights: Any,
           include_last_offset: bool) -> None:
    if len(indices._shape) not in (1, 2):
        raise RuntimeError(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {len(indices._shape)}")
    if len(offsets._shape) != 1:
        raise RuntimeError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {len(offsets._shape)}")
    if len(weight._shape) != 2:
        raise RuntimeError(f"weight has to be a 2D Tensor, but got Tensor of dimension {len(weight._shape)}")
    # Both get the dtype that holds both, and that of the indices is looked at.
    where = promote(indices._dtype, offsets._dtype)
    if where is not int64 and where is not int32:
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar types: "
                           f"Long, Int; but got torch.{where.scalar_name}Tensor instead (while checking arguments for "
                           "embedding_bag)")
    if not weight._dtype.is_floating_point:
        raise RuntimeError("Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, "
                           f"BFloat16, Float, Double; but got torch.{weight._dtype.scalar_name}Tensor instead (while "
                           "checking arguments for embedding_bag)")
    if per_sample_weights is not None:
        if mode != _SUM:
            raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
        if per_sample_weights._dtype is not weight._dtype:
            raise RuntimeError("Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
                               f"#1 'per_sample_weights'; but type torch.{weight._dtype.scalar_name}Tensor does not "
                               f"equal torch.{per_sample_weights._dtype.scalar_name}Tensor (while checking arguments "
                               "for embedding_bag)")
    if mode not in (_SUM, _MEAN, _MAX):
        raise RuntimeError("`mode` must be sum, mean, or max.")
    if include_last_offset and offsets._shape[0] < 1:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")


def _check_rows(weight: Any, indices: Any, mode: int, padding_idx: int) -> None:
    """On the CPU, where the answer is at hand; sums of single precision without padding have other words for it."""
    size = weight._shape[0]
    outside = (indices < 0).logical_or(indices >= size).nonzero().reshape((-1,)).tolist()
    if outside:
        value = int(indices[outside[0]])
        if mode != _MAX and padding_idx < 0 and weight._dtype.name != "float64":
            raise RuntimeError(f"Index {outside[0]} of input takes value {value} which is not in the valid range [0, "
                               f"{size})")
        raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {value}")


def _is_usual(weight: Any, mode: int, padding_idx: int) -> bool:
    """Whether PyTorch's CPU has a kernel that takes the rows of one bag after another: what lies behind the last offset
    is in no bag. Its other kernels ask by row for the bag."""
    usual = mode != _MAX and padding_idx < 0 and weight._dtype.name != "float64"
    return bool(usual and weight._device.type == "cpu")


def _check_starts(starts: list[int], n: int, mode: int, include_last_offset: bool) -> None:
    """Starts that fall are refused, as PyTorch's usual kernel does with several threads; with one it leaves the bags
    behind them unwritten."""
    if mode == _MEAN and not all(0 <= start <= n for start in starts):
        return  # its sizes are counted first, which says so
    ends = starts[1:] if include_last_offset else [*starts[1:], n]
    if all(0 <= start <= end for start, end in zip(starts, ends)):
        return
    if min(starts) < 0:
        raise RuntimeError(f"embedding_bag: offsets must not be negative, but got {min(starts)}")
    if include_last_offset and starts[-1] != n:
        raise RuntimeError("Your input appears to be incorrect: the last offset value should be the size of the "
                           "indices tensor, but it seems not to be the case.")
    raise RuntimeError("Expected i < index_size to be true, but got false.  (Could this error message be improved?  If "
                       "so, please report an enhancement request to PyTorch.)")


def _bag(weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool, mode: int, sparse: bool,
         per_sample_weights: Any, include_last_offset: bool, padding_idx: int) -> Any:
    _check(weight, indices, offsets, mode, per_sample_weights, include_last_offset)
    n = indices._shape[0]
    starts = offsets.to(int64)
    if starts.is_meta:
        bags = starts._shape[0] - (1 if include_last_offset else 0)
        places = starts.new_empty((bags, weight._shape[1]) if mode == _MAX else (bags,))
        return weight.new_empty((bags, weight._shape[1])), starts.new_empty((n,)), starts.new_empty((bags,)), places
    if starts._shape[0] and int(starts[0]) != 0:
        raise RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
                           f"position 0. However, got {int(starts[0])}\n[ torch."
                           f"{offsets._dtype.scalar_name}Tensor{{}} ]")
    if starts._shape[0] and int(starts[-1]) > n:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length {n} but got offsets[-1] of "
                           f"{int(starts[-1])}")
    bags = starts._shape[0] - (1 if include_last_offset else 0)
    if bags and _is_usual(weight, mode, padding_idx):
        _check_starts(starts.tolist(), n, mode, include_last_offset)
        if include_last_offset and int(starts[-1]) < n:
            n = int(starts[-1])
            indices = indices.narrow(0, 0, n)
            per_sample_weights = None if per_sample_weights is None else per_sample_weights.narrow(0, 0, n)
    starts = starts.narrow(0, 0, bags)
    if bags == 0:
        nothing = starts.new_zeros((n,))
        return weight.new_zeros((0, weight._shape[1])), nothing, starts, starts
    # The bag of each row: how many bags have begun so far.
    begun = starts.new_zeros((n + 1,)).index_add(0, starts, starts.new_ones((bags,)))
    where = (begun.narrow(0, 0, n).cumsum(0) - 1).clamp_min(0)
    if n and weight._device.type == "cpu":
        _check_rows(weight, indices, mode, padding_idx)
    rows = wide(_EMBEDDING.call((weight, indices, padding_idx, scale_grad_by_freq, sparse)))
    kept = starts.new_ones((n,))
    if padding_idx >= 0:
        kept = (indices != padding_idx).to(int64)
        rows = rows * kept.unsqueeze(1).to(rows._dtype)
    sizes = starts.new_zeros((bags,)).index_add(0, where, kept) if bags else starts.new_zeros((0,))
    if mode == _MAX:
        out, chosen = _largest(rows, indices, where, kept, sizes, bags)
        return narrow(out, weight), where, sizes, chosen
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    total = rows.detach().new_zeros((bags, weight._shape[1])).index_add(0, where, rows)
    if mode == _MEAN:
        total = total / sizes.clamp_min(1).unsqueeze(1).to(total._dtype)
    return narrow(total, weight), where, sizes, starts.new_zeros((bags,))


def _largest(rows: Any, indices: Any, where: Any, kept: Any, sizes: Any, bags: int) -> tuple[Any, Any]:
    """Rows of a bag side by side, then the largest along them."""
    longest = int(sizes.max()) if bags else 0
    width = rows._shape[1]
    if longest == 0:
        # No row is in a bag, but the rows take part in the graph.
        return rows.new_zeros((bags, width)) + rows.sum() * 0, where.new_zeros((bags, width))
    # The place of each kept row in its bag; rows that are not in the bag go to a place nobody reads.
    before = sizes.cumsum(0) - sizes
    place = kept.cumsum(0) - 1 - before.index_select(0, where)
    flat = _WHERE.call((kept == 1, where * longest + place, where.new_full((), bags * longest)))
    low = -float("inf")
    table = rows.new_full((bags * longest + 1, width), low).index_copy(0, flat, rows)
    names = where.new_zeros((bags * longest + 1,)).index_copy(0, flat, indices.to(int64))
    best, at = table.narrow(0, 0, bags * longest).reshape((bags, longest, width)).max(1)
    empty = (sizes == 0).unsqueeze(1)
    chosen = names.narrow(0, 0, bags * longest).reshape((bags, longest)).gather(1, at).masked_fill(empty, 0)
    return best.masked_fill(empty, 0), chosen


_ARGS = "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, " \
        "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False"
BAG: Op = composite(f"_embedding_bag({_ARGS}, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)", _bag,
                    method=False)
composite(f"embedding_bag({_ARGS}) -> (Tensor, Tensor, Tensor, Tensor)", lambda *args: BAG.call((*args, -1)),
          method=False)


def _padded(*args: Any) -> Any:
    weight, padding_idx = args[0], args[8]
    if padding_idx is None:
        return BAG.call((*args[:8], -1))
    if not weight._shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    rows = weight._shape[0]
    if not -rows <= padding_idx < rows:
        raise RuntimeError(f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but "
                           f"got {padding_idx}")
    return BAG.call((*args[:8], padding_idx % rows))


composite("embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, "
          "bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) "
          "-> (Tensor, Tensor, Tensor, Tensor)", _padded, method=False)
