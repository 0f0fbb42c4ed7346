"""Sequences of different lengths in one tensor: packed without padding, or padded to the longest.

Invariant: a packed batch holds all first elements, then all second ones, and so on; sequences are in order of falling
length, so that those still running at a step are the first ones.
"""
from __future__ import annotations

from itertools import groupby
from typing import Any

from .._device import device
from .._dispatch import registry
from .._dispatch.op import Op
from .._dtype import int64
from .._sizes import LONG_MAX, numel_of, too_large
from .._tensor_base import requires_grad
from .table import composite

_arange = registry.get("arange")
_cat = registry.get("cat")
_CPU = device("cpu")


def _check_lengths(t: Any) -> None:
    if len(t._shape) != 1 or t._device.type != "cpu" or t._dtype is not int64:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {len(t._shape)}D {t._device} "
                           f"{t._dtype.scalar_name} tensor")


def _numbers(count: int) -> Any:
    return _arange.call((0, count, 1, int64, None, _CPU, None))


def _running(steps: int, lengths: Any) -> Any:
    """(step, sequence) -> whether the sequence has that step."""
    return _numbers(steps).unsqueeze(1) < lengths


def _pack(input: Any, lengths: Any, batch_first: bool) -> tuple[Any, Any]:
    if 0 in input._shape:
        raise RuntimeError("Cannot pack empty tensors.")
    _check_lengths(lengths)
    turned = input.transpose(0, 1) if batch_first else input
    batch = turned.size(1)
    if lengths._shape[0] != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {lengths._shape[0]} "
                           f"(batch_size={batch})")
    counts = lengths.tolist()
    if counts[-1] <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is "
                           "<= 0")
    if any(a < b for a, b in zip(counts, counts[1:])):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
                           "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
                           "requirement if you do not need ONNX exportability.")
    running = _running(counts[0], lengths)
    steps = turned._shape[0]
    at = running[:steps].reshape((-1,)).nonzero().reshape((-1,))
    if batch_first:
        at = at % batch * steps + at.div(batch, rounding_mode="floor")
    rows = input.reshape((steps * batch, *input._shape[2:]))
    return rows.index_select(0, at.to(input._device)), running.sum((1,))


def _check_runs(data: Any, sizes: list[int]) -> None:
    """PyTorch writes steps of equal size at once, and complains about the first of these runs that does not fit."""
    left, rest, batch = data._shape[0], data._shape[1:], sizes[0]
    each = data.numel() // max(left, 1)
    for size, run in groupby(sizes):
        steps = len(list(run))
        if steps * size > left:
            raise RuntimeError(f"shape '{[steps, size, *rest]}' is invalid for input of size {left * each}")
        if size > batch == 1:
            raise RuntimeError(f"output with shape {[steps, batch, *rest]} doesn't match the broadcast shape "
                               f"{[steps, size, *rest]}")
        if size > batch:
            raise RuntimeError(f"The size of tensor a ({batch}) must match the size of tensor b ({size}) at "
                               "non-singleton dimension 1")
        left -= steps * size


def _pad_packed(data: Any, batch_sizes: Any, batch_first: bool, padding_value: Any, total_length: int
                ) -> tuple[Any, Any]:
    _check_lengths(batch_sizes)
    sizes = batch_sizes.tolist()
    if not sizes:
        raise RuntimeError("batch_sizes can not be empty")
    longest, batch = len(sizes), sizes[0]
    if total_length > 0:
        if total_length < longest:
            raise RuntimeError("Expected total_length to be at least the length of the longest sequence in input, but "
                               f"got total_length={total_length} and max sequence length being {longest}")
        longest = total_length
    rest = data._shape[1:]
    if min(sizes) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: "
                           f"{[longest, min(sizes), *rest]}")
    if numel_of((longest, batch, *rest)) > LONG_MAX // data._dtype.itemsize:
        raise too_large((longest, batch, *rest))
    lengths = (_numbers(batch) < batch_sizes.unsqueeze(1)).sum((0,))
    out = data.detach().new_full((longest * batch, *rest), padding_value)
    _check_runs(data, sizes)
    at = _running(longest, lengths).reshape((-1,)).nonzero().reshape((-1,))
    out.index_copy_(0, at.to(data._device), data[:at._shape[0]])
    out = out.view((longest, batch, *rest))
    return out.transpose(0, 1) if batch_first else out, lengths


_FEW = 32  # sequences that are quicker written one by one, where nothing is recorded


def _pad(sequences: Any, batch_first: bool, padding_value: float, padding_side: str) -> Any:
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first = sequences[0]
    if not first._shape:
        raise RuntimeError("ArrayRef: invalid slice, N = 1; size = 0")
    rest = first._shape[1:]
    lengths = [s.size(0) for s in sequences]
    longest, batch = max(lengths), len(lengths)
    shape = (batch, longest) if batch_first else (longest, batch)
    out = first.detach().new_full((*shape, *rest), padding_value)
    starts = [longest - n if padding_side == "left" else 0 for n in lengths]
    alike = all([s._shape[1:] == rest and s._dtype is first._dtype and s._device == first._device for s in sequences])
    if alike and (batch > _FEW or any([requires_grad(s) for s in sequences])):
        return _scattered(out, sequences, lengths, starts, batch_first)
    for i, (s, n, start) in enumerate(zip(sequences, lengths, starts)):
        place = out.select(0, i) if batch_first else out.select(1, i)
        (place if n == longest else place.narrow(0, start, n)).copy_(s)
    return out


def _scattered(out: Any, sequences: Any, lengths: list[int], starts: list[int], batch_first: bool) -> Any:
    """All of them in two calls, instead of one write and one node for each."""
    batch, longest = len(lengths), max(lengths)
    column = _numbers(longest).unsqueeze(0)
    if any(starts):
        held = column >= column.new_tensor(starts).unsqueeze(1)
    else:
        held = column < column.new_tensor(lengths).unsqueeze(1)
    at = held.reshape((-1,)).nonzero().reshape((-1,))
    if not batch_first:
        at = at % max(longest, 1) * batch + at.div(max(longest, 1), rounding_mode="floor")
    rows = out.view((batch * longest, *out._shape[2:]))
    written = rows.index_copy_(0, at.to(out._device), _cat.call((tuple(sequences), 0)))
    return written.view(out._shape)


PACK: Op = composite("_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)", _pack)
composite("_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, "
          "int total_length) -> (Tensor, Tensor)", _pad_packed)
composite("pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side=\"right\")"
          " -> Tensor", _pad, function=False, method=False)
