"""Copies, conversions and factories of sparse tensors.

Invariant: a copy shares no memory with its source; `detach` shares all of it.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._device import as_device
from .._dtype_names import type_string
from .._layout import contiguous_format, preserve_format, sparse_coo, strided
from .._ops.rules.base import wrap_dim
from .._tensor_base import TensorBase
from .parts import (
    BLOCKS,
    COMPRESSED,
    NAMES,
    ROWS,
    Parts,
    batch_dim,
    blocksize,
    compressed,
    coo,
    is_compressed,
    is_coo,
    is_sparse,
    layout_of,
    of_parts,
    parts,
    replace,
    shallow,
    with_values,
    without_entries,
)
from .refusals import refused
from .table import serves


def copy(t: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False) -> Any:
    """Every part copied, the values in another dtype if asked for."""
    p = parts(t)

    def moved(x: Any, kind: Any = None) -> Any:
        return None if x is None else x.to(device=device, dtype=kind, non_blocking=non_blocking, copy=True)

    made = Parts(
        p.layout, moved(p.compressed), moved(p.plain), moved(p.values, dtype), p.sparse_dim, p.dense_dim, p.coalesced
    )
    return of_parts(made, t._shape)


@serves("clone")
def clone(self: Any, memory_format: Any) -> Any:
    if memory_format is not None and memory_format is not preserve_format:
        name = "Contiguous" if memory_format is contiguous_format else str(memory_format)
        raise RuntimeError(f"unsupported memory format option {name}")
    return copy(self)


@serves("contiguous")
def contiguous(self: Any, memory_format: Any) -> Any:
    parts(self).check_has("is_contiguous")
    raise RuntimeError("unsupported memory format option Contiguous")


@serves("detach", "alias")
def detach(self: Any) -> Any:
    made = shallow(self)
    made._vc = self._vc
    return made


@serves("to_copy")
def to_copy(self: Any, dtype: Any, device: Any, memory_format: Any, non_blocking: bool) -> Any:
    if memory_format is not None and memory_format is not preserve_format:
        raise RuntimeError(f"to(options): unsupported memory format {memory_format} for layout {layout_of(self)}")
    # How many entries there are is data too.
    emptied = device is not None and as_device(device).type == "meta" != self._device.type
    return copy(without_entries(self) if emptied else self, dtype, device, non_blocking)


@serves("copy_")
def copy_(self: Any, src: Any, non_blocking: bool) -> Any:
    if not isinstance(src, TensorBase):
        src = torch.tensor(src, dtype=torch.float64 if isinstance(src, float) else None)
    here, there = layout_of(self), layout_of(src)
    if (here is strided) != (there is strided):
        own, other = (type_string(t._dtype, t._device) for t in (self, src))
        if here is sparse_coo or there is sparse_coo:
            names = [_typed(own, here), _typed(other, there)]
            raise RuntimeError(
                f"copy_() between dense and sparse Tensors is not implemented! Found self type = {names[0]} and src "
                f"type = {names[1]}"
            )
    if here is not there:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. self layout is "
            f"{NAMES[here]} and src layout is {NAMES[there]}"
        )
    if here is not sparse_coo:
        _check_same_pattern(self, src)
    if self is src:
        return self
    return replace(self, copy(src, self._dtype, self._device, non_blocking))


def _check_same_pattern(self: Any, src: Any) -> None:
    """What `copy_` asks of two compressed tensors of one layout."""
    if parts(self).nnz != parts(src).nnz:
        raise RuntimeError(
            "torch.copy_: only sparse compressed tensors with the same number of specified elements are supported."
        )
    kind = layout_of(self)
    if blocksize(self) != blocksize(src):
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different block sizes is not supported. self and "
            f"src block sizes are {list(blocksize(self) or ())} and {list(blocksize(src) or ())}, respectively."
        )
    if len(self._shape) != len(src._shape):
        raise RuntimeError(
            f"copy of sparse compressed tensors of sizes {list(self._shape)} and {list(src._shape)} is not supported"
        )
    for d, (to, of) in enumerate(zip(self._shape, src._shape)):
        if to != of:
            raise RuntimeError(
                f"torch.copy_: expected shapes of self and src to match along dimension {d} for {NAMES[kind]} layout "
                f"but the corresponding dimensions of self and src are {to} and {of}, respectively."
            )


def _typed(name: str, layout: Any) -> str:
    return name if layout is strided else name.replace("torch.", "torch.sparse.", 1)


@serves("zero_")
def zero_(self: Any) -> Any:
    p = parts(self)
    if is_coo(self):
        empty = Parts(
            sparse_coo,
            None,
            p.plain.new_zeros((p.sparse_dim, 0)),
            p.values.new_zeros((0, *self._shape[p.sparse_dim :])),
            p.sparse_dim,
            p.dense_dim,
            True,
        )
        return replace(self, of_parts(empty, self._shape))
    return replace(self, cleared(self, tuple(self._shape), self._dtype, self._device))


@serves("zeros.out", "empty.out", grad={})
def made_into(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, *rest: Any) -> Any:
    """`torch.zeros(size, out=t)`: as many dimensions as the size has are sparse."""
    out = rest[-1]
    if not is_coo(out):
        return replace(out, cleared(out, tuple(size), out._dtype, out._device)) if len(size) > 1 else _unfit(size)
    indices = parts(out).plain.new_zeros((len(size), 0))
    return replace(out, coo(indices, parts(out).values.new_zeros((0,)), tuple(size), True))


def _unfit(size: Any) -> Any:
    raise RuntimeError(f"torch.resize_: Only batched sparse CSR matrices are supported, but got size {list(size)}")


def cleared(t: Any, size: tuple[int, ...], dtype: Any, device: Any, layout: Any = None) -> Any:
    """A compressed tensor without entries in the layout (or a given one), blocks and dense dimensions of another."""
    p, batch, block = parts(t), batch_dim(t), blocksize(t) or (1, 1)
    kind = p.layout if layout is None else layout
    along = 0 if kind in ROWS else 1
    count = size[batch + along] // max(block[along], 1)
    outer = torch.zeros((*size[:batch], count + 1), dtype=p.compressed.dtype, device=device)
    inner = torch.zeros((*size[:batch], 0), dtype=p.plain.dtype, device=device)
    values = torch.zeros((*size[:batch], 0, *p.values._shape[batch + 1 :]), dtype=dtype, device=device)
    return compressed(kind, outer, inner, values, size)


def _like(self: Any, dtype: Any, layout: Any, device: Any) -> Any:
    from .construct import empty_of

    kind = layout_of(self) if layout is None else layout
    size, dtype, device = tuple(self._shape), dtype or self._dtype, device or self._device
    if kind is strided:
        return torch.zeros(size, dtype=dtype, device=device)
    if is_sparse(self) and kind is layout_of(self):
        p = parts(self)
        if kind is sparse_coo:
            heads = p.plain.new_zeros((p.sparse_dim, 0), device=device)
            values = torch.zeros((0, *self._shape[p.sparse_dim :]), dtype=dtype, device=device)
            return of_parts(Parts(kind, None, heads, values, p.sparse_dim, p.dense_dim, True), size)
        return cleared(self, size, dtype, device)
    if is_compressed(self) and kind is sparse_coo:
        heads = batch_dim(self) + 2
        indices = torch.zeros((heads, 0), dtype=torch.int64, device=device)
        values = torch.zeros((0, *size[heads:]), dtype=dtype, device=device)
        return of_parts(Parts(kind, None, indices, values, heads, len(size) - heads, True), size)
    if is_compressed(self):
        if kind in COMPRESSED and (kind in BLOCKS) == (layout_of(self) in BLOCKS):
            return cleared(self, size, dtype, device, kind)
        raise RuntimeError(
            f"empty_like with different sparse layout is not supported (self is {NAMES[layout_of(self)]} but you "
            f"requested {NAMES[kind]})"
        )
    return empty_of(kind, size, dtype, device)


@serves("zeros_like")
def zeros_like(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
    return _like(self, dtype, layout, device)


@serves("empty_like")
def empty_like(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
    if (layout is None or layout is layout_of(self)) and not is_coo(self) and is_sparse(self):
        made = copy(self, dtype, device)
        return with_values(made, torch.empty_like(parts(made).values))
    if is_compressed(self):
        raise RuntimeError(
            f"empty_like with different sparse layout is not supported (self is {NAMES[layout_of(self)]} but you "
            f"requested {NAMES[layout]})"
        )
    return _like(self, dtype, layout, device)


@serves("ones_like")
def ones_like(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Any:
    return _filled("ones_like", self, 1, dtype, layout, device)


@serves("full_like")
def full_like(
    self: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any
) -> Any:
    return _filled("full_like", self, fill_value, dtype, layout, device)


def _filled(name: str, self: Any, value: Any, dtype: Any, layout: Any, device: Any) -> Any:
    if layout is not strided and is_compressed(self):
        made = copy(self, dtype, device)
        return with_values(made, torch.full_like(parts(made).values, value))
    if layout is not strided:
        raise refused("fill_.Scalar", [self])
    return torch.full(self._shape, value, dtype=dtype or self._dtype, device=device or self._device)


@serves("new_zeros", "new_empty")
def new_zeros(self: Any, size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Any:
    from .construct import empty_of

    kind = layout_of(self) if layout is None else layout
    dtype, device = dtype or self._dtype, device or self._device
    if kind is strided:
        return torch.zeros(size, dtype=dtype, device=device)
    return empty_of(kind, tuple(size), dtype, device)


@serves("new_ones", "new_full")
def new_ones(self: Any, size: Any, *rest: Any) -> Any:
    value, (dtype, layout, device, pin_memory) = (rest[0], rest[1:]) if len(rest) > 4 else (1, rest)
    if layout is strided:
        return torch.full(size, value, dtype=dtype or self._dtype, device=device or self._device)
    if is_coo(self):
        raise refused("fill_.Scalar", [self])
    return new_zeros(self, size, dtype, layout, device, pin_memory)


@serves("fill_")
def fill_(self: Any, value: Any) -> Any:
    if not is_compressed(self):
        raise refused("fill_.Scalar", [self])
    parts(self).values.fill_(value)
    return replace(self, self)


@serves("normal_")
def normal_(self: Any, mean: Any, std: Any, generator: Any) -> Any:
    """The entries of a compressed tensor are drawn anew."""
    if not is_compressed(self):
        raise refused("normal_", [self])
    parts(self).values.normal_(mean, std, generator=generator)
    return replace(self, self)


@serves("randn_like")
def randn_like(self: Any, *rest: Any) -> Any:
    if not is_compressed(self):
        raise refused("normal_", [self])
    return normal_(empty_like(self, *rest), 0.0, 1.0, None)


@serves("rand_like", "randint_like")
def random_like(self: Any, *rest: Any) -> Any:
    raise refused("uniform_", [self])


@serves("reshape", "_reshape_copy", above=True)
def reshape(self: Any, shape: Any) -> Any:
    if is_coo(self):
        raise RuntimeError("reshape is not implemented for sparse tensors")
    raise RuntimeError(f"reshape is not implemented for {NAMES[layout_of(self)]} tensors")


@serves("flatten", above=True)
def flatten(self: Any, start_dim: int, end_dim: int) -> Any:
    rank = self.dim()
    if rank > 0 and wrap_dim(start_dim, rank) == wrap_dim(end_dim, rank):
        return self
    if not is_coo(self):
        name = NAMES[layout_of(self)].removeprefix("Sparse").upper()
        raise RuntimeError(f"Sparse {name} tensors do not have is_contiguous")
    return reshape(self, (-1,))


@serves("view_as_real")
def view_as_real(self: Any) -> Any:
    """A COO tensor with a dense dimension for the two parts of its values."""
    if not is_coo(self):
        raise refused("view_as_real", [self])
    p = parts(self)
    return coo(p.plain, torch.view_as_real(p.values), (*self._shape, 2), p.coalesced)


@serves("view_as_complex")
def view_as_complex(self: Any) -> Any:
    if not is_coo(self) or not parts(self).dense_dim:
        raise refused("view_as_complex", [self])
    p = parts(self)
    return coo(p.plain, torch.view_as_complex(p.values), self._shape[:-1], p.coalesced)


@serves("positive", above=True)
def positive(self: Any) -> Any:
    return self
