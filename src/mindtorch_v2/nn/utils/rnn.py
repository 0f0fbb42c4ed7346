"""Batches of sequences of different lengths: padded, or packed for recurrent layers.

Invariant: `batch_sizes` of a packed sequence is an int64 tensor on the CPU, wherever its data are; the indices that
sort and unsort the batch are where the data are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import mindtorch_v2 as torch

from ..._backends.common.convert import parse_to
from ..._tensor import Tensor
from ..functional._rows import row

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

_Packed = TypeVar("_Packed", bound="PackedSequence")


class PackedSequence_(NamedTuple):
    """The fields of a packed sequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """A batch of sequences without padding: all first elements, all second ones, ..., and how many each step has."""

    def __new__(
        cls: type[_Packed],
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> _Packed:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self: _Packed, data: Tensor, change: Any) -> _Packed:
        """The same sequences with other data; `change` is done to the indices as well."""
        indices = (None if t is None else change(t) for t in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *indices)

    def pin_memory(self: _Packed) -> _Packed:
        """A copy whose data and indices are in pinned memory."""
        return self._with(self.data.pin_memory(), lambda t: t.pin_memory())

    def to(self: _Packed, *args: Any, **kwargs: Any) -> _Packed:
        """`Tensor.to` of the data; the indices follow to the same device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        _, _, non_blocking, _, memory_format = parse_to(args, kwargs)

        def follow(t: Tensor) -> Tensor:
            if memory_format is None:
                return t.to(data.device, non_blocking=non_blocking)
            return t.to(data.device, non_blocking=non_blocking, memory_format=memory_format)

        return self._with(data, follow)

    def _on(self: _Packed, kind: str, args: Any, kwargs: Any) -> _Packed:
        """`to` with the kind of device unless the arguments say it."""
        place = torch.empty((0,), dtype=self.data.dtype, device=self.data.device).to(*args, **kwargs)
        if place.device.type != kind:
            kwargs["device"] = kind
        return self.to(*args, **kwargs)

    def cuda(self: _Packed, *args: Any, **kwargs: Any) -> _Packed:
        """On a CUDA device."""
        return self._on("cuda", args, kwargs)

    def npu(self: _Packed, *args: Any, **kwargs: Any) -> _Packed:
        """On an NPU."""
        return self._on("npu", args, kwargs)

    def cpu(self: _Packed, *args: Any, **kwargs: Any) -> _Packed:
        """On the CPU."""
        return self._on("cpu", args, kwargs)

    def double(self: _Packed) -> _Packed:
        return self.to(dtype=torch.float64)

    def float(self: _Packed) -> _Packed:
        return self.to(dtype=torch.float32)

    def half(self: _Packed) -> _Packed:
        return self.to(dtype=torch.float16)

    def long(self: _Packed) -> _Packed:
        return self.to(dtype=torch.int64)

    def int(self: _Packed) -> _Packed:
        return self.to(dtype=torch.int32)

    def short(self: _Packed) -> _Packed:
        return self.to(dtype=torch.int16)

    def char(self: _Packed) -> _Packed:
        return self.to(dtype=torch.int8)

    def byte(self: _Packed) -> _Packed:
        return self.to(dtype=torch.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data are on a CUDA device."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Whether the data are in pinned memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one."""
    if permutation is None:
        return None
    numbers = torch.arange(0, permutation.numel(), device=permutation.device)
    return torch.empty_like(permutation, memory_format=torch.contiguous_format).scatter_(0, permutation, numbers)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs a padded batch, (steps, batch, ...) or batch first; unsorted lengths need `enforce_sorted=False`."""
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=torch.int64)
    else:
        lengths = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    order = None
    if not enforce_sorted:
        lengths, order = torch.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = torch._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """A packed batch as a padded one in its original order, and the lengths of its sequences."""
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        longest = total_length
    padded, lengths = torch._pad_packed_sequence(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, longest
    )
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences of different lengths stacked in one tensor, padded to the longest."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = tuple(sequences)
    for place, sequence in enumerate(sequences):
        if not isinstance(sequence, Tensor):
            raise TypeError(f"expected Tensor as element {place} in argument 0, but got {type(sequence).__name__}")
    padded: Tensor = row("sequence", "pad_sequence").call((sequences, batch_first, padding_value, padding_side))
    return padded


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch, each as long as `lengths` says."""
    if not batch_first:
        # PyTorch turns the caller's tensor.
        padded_sequences.transpose_(0, 1)
    number = torch.arange(padded_sequences.shape[1], device=lengths.device)
    pairs = zip(padded_sequences, lengths, strict=True)
    return [sequence[number < length] for sequence, length in pairs]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences of different lengths; unsorted ones need `enforce_sorted=False`."""
    lengths = torch.as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch, in their original order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
