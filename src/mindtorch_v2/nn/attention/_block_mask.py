"""`BlockMask`: which blocks of a matrix of scores are looked at, and which of those wholly.

Invariant: blocks are kept by row as a count and an order of columns in which those that count come first (`kv_*`, for
queries), and by column likewise (`q_*`, for keys); the dense form has a one for every block that is looked at.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any, NoReturn

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ..functional import pad
from ._batching import evaluate

DEFAULT_BLOCK_SIZE = 128
LARGE_BLOCK_SIZE = 1 << 30
# Scores that are held at once.
TILE = 1 << 22

MaskMod = Callable[..., Any]


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask_mod that hides nothing."""
    whole: Tensor = batch.new_ones(size=(), dtype=torch.bool, device=batch.device)
    return whole


def _sliced_mask_mod_error(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> NoReturn:
    """The mask_mod of a part of a block mask, which has none."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the mask_mod attribute is "
        "reset. You must set it from the original BlockMask's mask_mod.\n\nIncorrect usage:\n  base_mask = "
        "create_block_mask(my_mask_fn, ...)\n  sliced_mask = base_mask[:, :, block_idx]\n  sliced_mask.mask_mod = "
        "apply_offset(sliced_mask.mask_mod, offset)  # WRONG!\n\nCorrect usage:\n  base_mask = "
        "create_block_mask(my_mask_fn, ...)\n  sliced_mask = base_mask[:, :, block_idx]\n  sliced_mask.mask_mod = "
        "apply_offset(base_mask.mask_mod, offset)  # Use base_mask!"
    )


def is_score_mod(fn: Any) -> bool:
    """Whether a function takes a score before the places; one that takes neither four nor five arguments is refused."""
    if hasattr(fn, "__code__"):
        count = fn.__code__.co_argcount - len(getattr(fn, "__defaults__", None) or ())
    else:
        empty = inspect.Parameter.empty
        count = sum(1 for param in inspect.signature(fn).parameters.values() if param.default is empty)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return bool(count == 5)


# -- orders of blocks --------------------------------------------------------------------------------------------------
def to_dense(num_blocks: Any, indices: Any, columns: int) -> Any:
    """Ones where the first `num_blocks` of `indices` point."""
    counted = torch.arange(indices.shape[-1], device=indices.device) < num_blocks.unsqueeze(-1)
    # What does not count goes to a column that is cut off.
    places = torch.where(counted, indices, columns).long()
    dense = indices.new_zeros((*indices.shape[:-1], columns + 1), dtype=torch.int32)
    return dense.scatter_(-1, places, 1)[..., :columns].contiguous()


def to_ordered(dense: Any) -> tuple[Any, Any]:
    """How many blocks of each row are there, and all columns with those in front."""
    dense = dense.to(torch.int32)
    order = torch.argsort(dense, dim=-1, descending=True, stable=True)
    exact = {"memory_format": torch.contiguous_format}
    return dense.sum(dim=-1).to(torch.int32, **exact), order.to(torch.int32, **exact)


def _transposed(num_blocks: Any, indices: Any) -> tuple[Any, Any]:
    return to_ordered(to_dense(num_blocks, indices, indices.shape[-1]).transpose(-2, -1))


def _cropped(num_blocks: Any, indices: Any, rows: int, columns: int) -> tuple[Any, Any]:
    indices = indices[:, :, :rows, :columns]
    num_blocks = num_blocks[:, :, :rows]
    num_blocks = torch.where(num_blocks < columns, num_blocks, columns)
    return torch.sum(indices < num_blocks[:, :, :, None], dim=-1).to(torch.int32), indices


def dq_write_order(mask: BlockMask, descending: bool | None = False) -> tuple[Any, Any]:
    """For each block in the order by columns, how many blocks of its row come before it (after it, if `descending`)."""
    if mask.q_num_blocks is None or mask.q_indices is None:
        raise ValueError("BlockMask must have q_num_blocks and q_indices to compute dq_write_order")
    columns, rows = mask.q_indices.shape[2], mask.kv_indices.shape[2]
    dense = to_dense(mask.kv_num_blocks, mask.kv_indices, columns)
    if mask.full_kv_num_blocks is not None:
        dense = (dense + to_dense(mask.full_kv_num_blocks, mask.full_kv_indices, columns)).clamp(max=1)
    counts = dense.cumsum(dim=-1)
    rank = (counts - dense).to(torch.int32)
    if descending:
        rank = (counts[..., -1:] - 1 - rank).to(torch.int32)

    def looked_up(order: Any) -> Any:
        by_column = rank.transpose(-2, -1).expand(*order.shape[:2], columns, rows)
        return by_column.gather(-1, order.long().clamp(0, rows - 1)).to(torch.int32)

    full = mask.full_q_indices if mask.full_kv_num_blocks is not None else None
    return looked_up(mask.q_indices), None if full is None else looked_up(full)


_TENSORS = (
    *("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"),
    *("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices"),
    *("dq_write_order", "dq_write_order_full", "dq_kv_order"),
)


class BlockMask:
    """A mask by blocks for `flex_attention`, with the function that says what is hidden inside of a block."""

    _TENSOR_ATTRS = list(_TENSORS)
    _CONTEXT_ATTRS = ["seq_lengths", "BLOCK_SIZE", "mask_mod", "dq_kv_order_spt"]

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Any,
        kv_indices: Any,
        full_kv_num_blocks: Any,
        full_kv_indices: Any,
        q_num_blocks: Any,
        q_indices: Any,
        full_q_num_blocks: Any,
        full_q_indices: Any,
        BLOCK_SIZE: tuple[int, int] = (DEFAULT_BLOCK_SIZE, DEFAULT_BLOCK_SIZE),
        mask_mod: MaskMod = noop_mask,
        *,
        dq_write_order: Any = None,
        dq_write_order_full: Any = None,
        dq_kv_order: Any = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if kv_num_blocks is None:
            raise AssertionError("kv_num_blocks must be provided")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        if dq_write_order_full is not None and dq_write_order is None:
            raise ValueError("dq_write_order_full requires dq_write_order")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.dq_write_order = dq_write_order
        self.dq_write_order_full = dq_write_order_full
        self.dq_kv_order = dq_kv_order
        self.dq_kv_order_spt = dq_kv_order_spt
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Any,
        kv_indices: Any,
        full_kv_num_blocks: Any = None,
        full_kv_indices: Any = None,
        BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Any = None,
        dq_write_order_full: Any = None,
        dq_kv_order: Any = None,
    ) -> BlockMask:
        """From the blocks by row; those by column are worked out unless told otherwise."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        by_column: tuple[Any, Any] = (None, None)
        full_by_column: tuple[Any, Any] = (None, None)
        if compute_q_blocks:
            by_column = _transposed(kv_num_blocks, kv_indices)
            if full_kv_num_blocks is not None:
                full_by_column = _transposed(full_kv_num_blocks, full_kv_indices)
        if isinstance(BLOCK_SIZE, int):
            BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * BLOCK_SIZE[0], kv_indices.shape[-1] * BLOCK_SIZE[1])
        if dq_kv_order is not None and not isinstance(dq_kv_order, (bool, Tensor)):
            raise ValueError("dq_kv_order must be a bool, Tensor, or None")
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *by_column,
            *full_by_column,
            BLOCK_SIZE,
            noop_mask if mask_mod is None else mask_mod,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=dq_kv_order if isinstance(dq_kv_order, Tensor) else None,
            dq_kv_order_spt=dq_kv_order if isinstance(dq_kv_order, bool) else None,
        )

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """All parts; `flatten` spreads lengths and block sizes."""
        lengths: tuple[Any, ...] = tuple(self.seq_lengths) if flatten else (self.seq_lengths,)
        sizes: tuple[Any, ...] = tuple(self.BLOCK_SIZE) if flatten else (self.BLOCK_SIZE,)
        parts = [getattr(self, name) for name in _TENSORS]
        return (*lengths, *parts, self.dq_kv_order_spt, *sizes, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the matrix of scores."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        shown = "".join(
            f"    {name}={None if getattr(self, name) is None else getattr(self, name).shape},\n"
            for name in _TENSORS[:8]
        )
        return (
            f"BlockMask(\n{shown}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)"
        )

    def __getitem__(self, index: Any) -> BlockMask:
        """Some batches, heads and rows of blocks; a number keeps its dimension. The mask_mod has to be set again."""
        if self.dq_kv_order is not None:
            raise NotImplementedError(
                "Slicing BlockMask with tensor dq_kv_order is not supported yet. Construct a new BlockMask with "
                "matching precomputed dq_write_order metadata."
            )
        given = index if isinstance(index, tuple) else (index,)
        picked: list[Any] = []
        for i, n in zip((*given, slice(None), slice(None), slice(None))[:3], self.kv_num_blocks.shape[:3]):
            if isinstance(i, int):
                picked.append(slice(i + n, i + n + 1) if -n <= i < 0 else slice(i, i + 1))
            else:
                picked.append(i)
        parts = [None if t is None else t[tuple(picked)] for t in (getattr(self, name) for name in _TENSORS[:4])]
        return self._derived(parts, _sliced_mask_mod_error, self.seq_lengths)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner, for other lengths."""
        if self.dq_kv_order is not None:
            raise NotImplementedError(
                "Adjusting BlockMask with tensor dq_kv_order is not supported yet. Construct a new BlockMask with "
                "matching precomputed dq_write_order metadata."
            )
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])
        parts: list[Any] = [*_cropped(self.kv_num_blocks, self.kv_indices, rows, columns), None, None]
        if self.full_kv_num_blocks is not None:
            parts[2:] = _cropped(self.full_kv_num_blocks, self.full_kv_indices, rows, columns)
        return self._derived(parts, self.mask_mod, (new_q_len, new_kv_len))

    def _derived(self, parts: list[Any], mask_mod: MaskMod, lengths: tuple[int, int]) -> BlockMask:
        by_columns = self.q_indices is not None
        num, indices, full_num, full_indices = parts
        made = type(self).from_kv_blocks(
            num,
            indices,
            full_num,
            full_indices,
            self.BLOCK_SIZE,
            mask_mod,
            lengths,
            by_columns,
            dq_kv_order=self.dq_kv_order_spt,
        )
        if self.dq_write_order is not None:
            made.dq_write_order, made.dq_write_order_full = dq_write_order(made, made.dq_kv_order_spt)
        return made

    def numel(self) -> int:
        """The number of scores."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many percent of the scores are in blocks that nobody looks at."""
        blocks = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            blocks += self.full_kv_num_blocks.sum()
        computed = blocks.item() * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return float(100 * (1 - computed / self.numel()))

    def to_dense(self) -> Any:
        """A matrix of blocks with ones for those that are looked at."""
        dense = to_dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is not None:
            dense = dense | to_dense(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.shape[-1])
        return dense

    def to_string(self, grid_size: Any = (20, 20), limit: int = 4) -> str:
        """A drawing with at most that many rows and columns, of at most `limit` batches and heads."""
        dense = self.to_dense()
        *batches, rows, columns = dense.shape
        if isinstance(grid_size, int):
            grid_size = (grid_size, grid_size)
        down, right = max(1, -(-rows // grid_size[0])), max(1, -(-columns // grid_size[1]))
        drawn: list[str] = []
        for number, place in enumerate(itertools.product(*(range(n) for n in batches))):
            if number == limit:
                drawn += [
                    "...",
                    "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
                ]
                break
            table = dense[place].tolist()
            lines = [
                "".join(
                    2 * _shade([cell for line in table[r : r + down] for cell in line[c : c + right]])
                    for c in range(0, columns, right)
                )
                + "\n"
                for r in range(0, rows, down)
            ]
            drawn.append(f"{place}\n" + "".join(lines))
        return "\n".join(drawn)

    def to(self, device: Any) -> BlockMask:
        """The same mask with its tensors on another device."""
        moved = {name: t if (t := getattr(self, name)) is None else t.to(device) for name in _TENSORS}
        return BlockMask(
            self.seq_lengths,
            **moved,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            dq_kv_order_spt=self.dq_kv_order_spt,
        )


def _shade(cells: list[int]) -> str:
    return " " if not any(cells) else "█" if all(cells) else "░"


# -- masks from functions ----------------------------------------------------------------------------------------------
def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """A mask_mod that shows what any of the given ones shows."""
    _check_callable(mask_mods)

    def or_mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = b.new_zeros((), dtype=torch.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """A mask_mod that shows what all of the given ones show."""
    _check_callable(mask_mods)

    def and_mask(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        result = b.new_ones((), dtype=torch.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def _check_callable(mask_mods: tuple[Any, ...]) -> None:
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def _default_device(device: Any) -> Any:
    return device if device is not None else torch.accelerator.current_accelerator() or "cpu"


def create_mask(mod_fn: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Any:
    """The mask that a mask_mod, or a score_mod where it gives -inf, stands for, as a tensor of bools."""
    device = _default_device(device)
    shape = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    b, h, q, kv = (torch.arange(0, n, device=device) for n in shape)
    if is_score_mod(mod_fn):
        scores = evaluate(mod_fn, torch.zeros(shape, device=device), (b, h, q, kv))
        return torch.where(torch.isneginf(scores.expand(shape)), False, True)
    return evaluate(mod_fn, None, (b, h, q, kv)).expand(shape)


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The block mask of a mask_mod; `separate_full_blocks` notes blocks in which nothing is hidden."""
    device = _default_device(device)
    if is_score_mod(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if _compile:
        raise NotImplementedError("create_block_mask: _compile=True is not implemented; leave _compile out")
    if not isinstance(dq_kv_order, bool):
        raise ValueError("dq_kv_order must be a bool when using create_block_mask")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else (BLOCK_SIZE[0], BLOCK_SIZE[1])
    counts = _block_counts(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), size, device)
    whole = size[0] * size[1]
    full: tuple[Any, Any] = to_ordered(counts == whole) if separate_full_blocks else (None, None)
    partial = to_ordered((counts > 0) & (counts < whole) if separate_full_blocks else counts > 0)
    made = BlockMask.from_kv_blocks(partial[0], partial[1], full[0], full[1], size, mask_mod, (Q_LEN, KV_LEN))
    if compute_dq_write_order:
        made.dq_write_order, made.dq_write_order_full = dq_write_order(made, dq_kv_order)
        made.dq_kv_order_spt = dq_kv_order
    return made


def _block_counts(mask_mod: MaskMod, shape: Any, size: Any, device: Any) -> Any:
    """How many scores of each block are shown; the mask is made for some rows of blocks at a time."""
    batch, heads, queries, keys = shape
    rows, columns = -(-queries // size[0]), -(-keys // size[1])
    b, h, kv = (torch.arange(n, device=device) for n in (batch, heads, keys))
    step = max(1, TILE // max(1, batch * heads * keys * size[0]))
    parts: list[Any] = []
    for first in range(0, rows, step):
        last = min(rows, first + step)
        q = torch.arange(first * size[0], min(queries, last * size[0]), device=device)
        mask = evaluate(mask_mod, None, (b, h, q, kv))
        if mask.dtype is not torch.bool:
            raise AssertionError(f"mask.dtype must be torch.bool, got {mask.dtype}")
        mask = mask.expand(batch, heads, q.numel(), keys)
        mask = pad(mask, (0, columns * size[1] - keys, 0, (last - first) * size[0] - q.numel()))
        mask = mask.view(batch, heads, last - first, size[0], columns, size[1])
        parts.append(mask.sum(dim=[3, 5]))
    return torch.cat(parts, dim=2) if parts else torch.zeros((batch, heads, 0, columns), device=device)


def _create_empty_block_mask(query: Tensor, key: Tensor) -> BlockMask:
    """A block mask of one block, in which nothing is hidden."""
    device = query.device
    return BlockMask.from_kv_blocks(
        kv_num_blocks=torch.ones([1, 1, 1], dtype=torch.int32, device=device),
        kv_indices=torch.zeros([1, 1, 1, 1], dtype=torch.int32, device=device),
        BLOCK_SIZE=LARGE_BLOCK_SIZE,
        seq_lengths=(1, 1),
    )
