"""What a nested tensor consists of: values, and a structure that says what of them each of the many is.

Invariant: values are a plain dense tensor without history, and have the device of the offsets. A structure is never
changed; tensors of one structure share it.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .. import _native
from .._dispatch.keys import BACKENDS, NESTED, SPARSE
from .._layout import jagged, strided
from .._layout import layout as Layout
from .._tensor_base import TensorBase
from .numbers import size_of, size_of_list


class Structure:
    """Which part of the values each of the many is."""

    layout: Layout

    def shape(self, values: Any) -> tuple[int, ...]:
        raise NotImplementedError

    def strides(self, values: Any) -> tuple[int, ...]:
        raise NotImplementedError

    def components(self, values: Any) -> list[Any]:
        """The many, as views of the values."""
        raise NotImplementedError

    def moved(self, device: Any) -> Structure:
        """The same structure on a device."""
        raise NotImplementedError


class Jagged(Structure):
    """Offsets into one dimension of the values, and lengths where not all of it is taken. `ragged`: the place of the
    dimension in the nested tensor, whose first is that of the many. `cache`: extreme lengths that are known."""

    layout = jagged

    def __init__(self, offsets: Any, lengths: Any = None, ragged: int = 1, cache: dict[str, Any] | None = None) -> None:
        self.offsets = offsets
        self.lengths = lengths
        self.ragged = ragged
        self.cache = {} if cache is None else cache
        self._places: tuple[Any, Any] | None = None

    @property
    def batch(self) -> int:
        return int(self.offsets._shape[0]) - 1

    @property
    def size(self) -> int:
        return size_of(self.offsets if self.lengths is None else self.lengths)

    def shape(self, values: Any) -> tuple[int, ...]:
        r = self.ragged - 1
        return (self.batch, *values._shape[:r], self.size, *values._shape[r + 1 :])

    def strides(self, values: Any) -> tuple[int, ...]:
        return (self.size * values._stride[self.ragged - 1], *values._stride)

    def each_length(self) -> Any:
        return self.offsets.diff() if self.lengths is None else self.lengths

    def extreme(self, which: str) -> int:
        """The longest (`max_seqlen`) or shortest (`min_seqlen`) of the many; kept as PyTorch keeps it."""
        kept = self.cache.get(which)
        if kept is None:
            lengths = self.each_length()
            found = lengths.max() if which == "max_seqlen" else lengths.min()
            kept = torch.zeros(int(found.item()), 0)
            self.cache[which] = kept
        return int(kept.shape[0])

    def at(self, ragged: int) -> Jagged:
        """The same with the ragged dimension in another place."""
        return self if ragged == self.ragged else Jagged(self.offsets, self.lengths, ragged, self.cache)

    def components(self, values: Any) -> list[Any]:
        dim = self.ragged - 1
        if self.lengths is None:
            lengths = self.offsets.diff().tolist()
            if not lengths and values.shape[dim] == 0:
                return []
            return list(values.split_with_sizes(lengths, dim))
        if self.ragged <= 0:
            raise RuntimeError("unbind(): nested tensor ragged_idx out of bounds (should be >= 1)")
        starts, lengths = self.offsets.tolist(), self.lengths.tolist()
        total = values.shape[dim]
        for start, length in zip(starts, lengths):
            if length < 0 or start < 0 or start + length > total:
                raise RuntimeError("unbind(): nested tensor offsets and lengths do not match ragged_idx dimension")
        return [values.narrow(dim, start, length) for start, length in zip(starts, lengths)]

    def moved(self, device: Any) -> Jagged:
        from .numbers import same_size

        if self.offsets.device == device:
            return self
        offsets = self.offsets.to(device)
        lengths = None if self.lengths is None else self.lengths.to(device)
        same_size(offsets if lengths is None else lengths, self.offsets if lengths is None else self.lengths)
        return Jagged(offsets, lengths, self.ragged, self.cache)

    def places(self) -> tuple[Any, Any]:
        """For each row of the values which of the many it belongs to, and where in it."""
        if self._places is None:
            counts = self.offsets.diff()
            if self.offsets.numel() and not self.offsets.is_meta:
                if int(self.offsets[0]) < 0 or bool((counts < 0).any()):
                    raise RuntimeError(f"offsets of a nested tensor must neither fall nor be negative: {self.offsets}")
            owner = torch.repeat_interleave(counts)
            at = torch.arange(owner.shape[0], device=owner.device) - self.offsets.index_select(0, owner)
            self._places = owner, at
        return self._places


class Strided(Structure):
    """Sizes, strides and an offset into a flat buffer for each of the many."""

    layout = strided

    def __init__(
        self, sizes: list[tuple[int, ...]], strides: list[tuple[int, ...]], offsets: list[int], ndim: int
    ) -> None:
        self.sizes = sizes
        self.each_stride = strides
        self.offsets = offsets
        self.ndim = ndim

    def shape(self, values: Any) -> tuple[int, ...]:
        dims = [size_of_list(tuple([s[d] for s in self.sizes])) for d in range(self.ndim)]
        return (len(self.sizes), *dims)

    def strides(self, values: Any) -> tuple[int, ...]:
        return (0,) * (self.ndim + 1)

    def components(self, values: Any) -> list[Any]:
        return [values.as_strided(s, t, o) for s, t, o in zip(self.sizes, self.each_stride, self.offsets)]

    def moved(self, device: Any) -> Strided:
        return self


class Parts:
    """The storage of a nested tensor."""

    __slots__ = ("structure", "values")

    def __init__(self, values: Any, structure: Any) -> None:
        self.values = values
        self.structure = structure

    @property
    def layout(self) -> Layout:
        found: Layout = self.structure.layout
        return found

    @property
    def ptr(self) -> int:
        return int(self.values._storage.ptr)

    @property
    def wrapper(self) -> Any:
        return self.values._storage.wrapper

    @property
    def nbytes(self) -> int:
        return int(self.values._storage.nbytes)

    def check_has(self, what: str) -> None:
        """Strides are asked for by methods of the classes."""


def is_nested(t: Any) -> bool:
    return isinstance(t, TensorBase) and bool(t._keys & NESTED)


def parts(t: Any) -> Parts:
    found = t._storage
    if not isinstance(found, Parts):
        raise NotImplementedError(f"expected a nested tensor, but got a tensor of layout {t.layout}")
    return found


def structure_of(t: Any) -> Any:
    return parts(t).structure


def made(values: Any, structure: Structure) -> Any:
    """A nested tensor of parts that fit, without history."""
    from .tensors import NestedTensor, StridedNestedTensor

    cls = NestedTensor if isinstance(structure, Jagged) else StridedNestedTensor
    t: Any = _native.alloc_instance(TensorBase, cls)
    t._storage = Parts(values, structure)
    t._offset = 0
    t._shape = structure.shape(values)
    t._stride = structure.strides(values)
    t._dtype, t._device = values._dtype, values._device
    t._keys = (values._keys & BACKENDS) | SPARSE | NESTED
    t._contig = 2
    return t
