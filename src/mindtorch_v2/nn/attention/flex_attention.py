"""Attention whose scores and masks are functions that the user writes.

A `score_mod(score, b, h, q_idx, kv_idx)` changes each score, a `mask_mod(b, h, q_idx, kv_idx)` says whether it counts,
and a `BlockMask` which blocks of scores are looked at. Both functions are written for one score (`_batching`).

Invariant: scores are computed for some rows of blocks at a time, and only for blocks that the mask has; where more than
one such part is recorded for autograd it is computed again in the backward pass, so that no more scores than one part's
are ever held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypedDict

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ..._warn import warn_once
from ._batching import evaluate
from ._block_mask import DEFAULT_BLOCK_SIZE as _DEFAULT_SPARSE_BLOCK_SIZE  # noqa: F401 (libraries ask for it)
from ._block_mask import LARGE_BLOCK_SIZE as _LARGE_SPARSE_BLOCK_SIZE
from ._block_mask import (
    TILE,
    BlockMask,
    _sliced_mask_mod_error,
    and_masks,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
    to_dense,
)
from ._block_mask import _create_empty_block_mask as _create_empty_block_mask

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

for _public in (BlockMask, and_masks, create_block_mask, create_mask, noop_mask, or_masks):
    _public.__module__ = __name__
del _public

# Nothing is compiled here; the switch exists for programs that set it.
_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False
_BACKENDS = ("AUTO", "TRITON", "FLASH", "TRITON_DECODE")
# Rows of a part, unless the blocks are larger.
_ROWS = 128


class FlexKernelOptions(TypedDict, total=False):
    """Hints for compiled kernels: they change how fast, never what is computed, and nothing here is compiled."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    kpack: int
    matrix_instr_nonkdim: int
    waves_per_eu: int
    BACKEND: Literal["AUTO", "TRITON", "FLASH", "TRITON_DECODE"]


class AuxRequest(NamedTuple):
    """What else to return: the logarithms of the sums of the exponentials of the scores, and the largest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for with `AuxRequest`."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


# -- checks ------------------------------------------------------------------------------------------------------------
def _check_inputs(query: Any, key: Any, value: Any, block_mask: Any, enable_gqa: bool) -> None:
    from ._utils import _validate_sdpa_input

    if query.is_nested or key.is_nested or value.is_nested:
        raise NotImplementedError(
            "flex_attention does not support NestedTensor inputs, including torch.compile(flex_attention) with jagged "
            "NestedTensor inputs. Convert inputs to dense tensors before calling flex_attention."
        )
    _validate_sdpa_input(query, key, value, allow_lowp_kv=True)
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    if query.device.type not in ("cpu", "npu"):
        raise ValueError(
            "FlexAttention is only supported on CUDA, CPU, HPU, or MPS devices. Found input tensors on "
            f"{query.device.type} device."
        )
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    heads, given = query.size(1), key.size(1)
    if not enable_gqa and heads != given:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={given}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % given:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={given}."
        )
    if query.size(0) != key.size(0):
        if block_mask is None:
            raise ValueError(
                "Expect query and key/value to have the same batch size, or non-none block_mask, but got "
                f"block_mask=None, Bq={query.size(0)}, and Bkv={key.size(0)}."
            )
        if block_mask.kv_num_blocks.size(0) != query.size(0):
            raise ValueError(
                "Expect query and key/value to have the same batch size, or block_mask and query to have the same "
                f"batch size, but got Bq={query.size(0)}, Bkv={key.size(0)}, "
                f"B_block_mask={block_mask.kv_num_blocks.size(0)}."
            )


def _check_block_mask(block_mask: BlockMask, query: Any, key: Any) -> None:
    if block_mask.mask_mod is _sliced_mask_mod_error:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if block_mask.BLOCK_SIZE != (_LARGE_SPARSE_BLOCK_SIZE, _LARGE_SPARSE_BLOCK_SIZE):
        queries, keys = block_mask.shape[-2:]
        told = (
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.size(-2)} and "
            f"kv_len={key.size(-2)}. As the block mask was created for a "
        )
        if query.size(-2) > queries or key.size(-2) > keys:
            raise ValueError(
                told + "smaller length than you're using it for, you likely need to create a new block mask."
            )
        if query.size(-2) < queries or key.size(-2) < keys:
            raise ValueError(
                told + "larger length than you're using it for, you can either 1. create a new block mask with the "
                "correct length, or 2. 'adjust' the existing block mask to the correct length by calling "
                "block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the upper left corner, "
                "which does not work for all mask_mods!"
            )
    if query.device != block_mask.kv_num_blocks.device:
        raise RuntimeError(
            "Expect q/k/v and block_mask to be on the same device but got "
            f"{query.device} and {block_mask.kv_num_blocks.device}."
        )


def _check_options(options: Any, query: Any, max_scores: bool) -> None:
    options = {} if options is None else dict(options)
    if "BACKEND" in options:
        if options.get("FORCE_USE_FLEX_ATTENTION", False):
            raise RuntimeError(
                "BACKEND cannot be combined with legacy FORCE_USE_FLEX_ATTENTION. BACKEND supersedes the legacy knob; "
                "please drop FORCE_USE_FLEX_ATTENTION and only specify the desired BACKEND."
            )
        if options["BACKEND"] not in _BACKENDS:
            raise ValueError(f"Invalid BACKEND value '{options['BACKEND']}'. Must be one of {_BACKENDS}")
    for name in ("OUTPUT_LOGSUMEXP", "OUTPUT_MAX"):
        if name in options:
            raise AssertionError(f"{name} must not be in kernel_options")
    if max_scores and options.get("BACKEND") == "FLASH":
        raise NotImplementedError(
            "Returning max scores is not supported with BACKEND='FLASH'. Use return_aux=AuxRequest(lse=True) or omit "
            "max_scores."
        )
    if max_scores and query.device.type == "cpu":
        raise NotImplementedError("Returning max scores is not supported on CPU/MPS.")


# -- parts -------------------------------------------------------------------------------------------------------------
class _Part(NamedTuple):
    """Some queries and the keys they look at; cells are blocks, `None` where all of them are looked at wholly."""

    rows: tuple[int, int]
    columns: Any
    partial: Any
    full: Any


def _whole_parts(shape: tuple[int, ...], keys: int, masked: bool) -> Iterator[_Part]:
    """Without blocks: all keys for as many queries as are held at once."""
    batch, heads, queries = shape
    step = max(1, TILE // max(1, batch * heads * keys))
    for first in range(0, queries, step):
        yield _Part((first, min(queries, first + step)), slice(0, keys), True if masked else None, None)


def _block_parts(mask: BlockMask, queries: int, keys: int) -> Iterator[_Part]:
    """Rows of blocks, with the columns that any batch and head has there."""
    columns = mask.kv_indices.shape[-1]
    partial = to_dense(mask.kv_num_blocks, mask.kv_indices, columns).bool()
    full: Any = None
    looked_at = partial
    if mask.full_kv_num_blocks is not None:
        full = to_dense(mask.full_kv_num_blocks, mask.full_kv_indices, columns).bool()
        looked_at = partial | full
    # The shapes of all parts depend on these few numbers, so that the host has to know them.
    table = looked_at.flatten(0, -3).any(0).tolist()
    tall, broad = mask.BLOCK_SIZE
    group = max(1, _ROWS // tall)
    for first in range(0, len(table), group):
        last = min(len(table), first + group)
        chosen = [c for c in range(columns) if any(row[c] for row in table[first:last])]
        rows = (min(queries, first * tall), min(queries, last * tall))
        if rows[0] == rows[1]:
            return
        runs = _runs(chosen, broad, keys)
        picked: Any = slice(*runs[0]) if len(runs) == 1 else runs
        yield _Part(rows, picked, partial, full)


def _runs(blocks: list[int], size: int, keys: int) -> list[tuple[int, int]]:
    """The tokens of blocks, as runs without gaps."""
    runs: list[tuple[int, int]] = []
    for block in blocks:
        start, stop = min(keys, block * size), min(keys, (block + 1) * size)
        if runs and runs[-1][1] == start:
            runs[-1] = (runs[-1][0], stop)
        elif start < stop:
            runs.append((start, stop))
    return runs


class _Call(NamedTuple):
    """What all parts of one call share."""

    score_mod: Callable[..., Any] | None
    mask: BlockMask | None
    scale: float
    want_lse: bool
    want_max: bool


def _shown(call: _Call, part: _Part, places: Any) -> Any:
    """Which scores count, as a tensor that broadcasts to them; None for all."""
    mask = call.mask
    if mask is None or part.partial is None:
        return None
    if part.partial is True:
        return evaluate(mask.mask_mod, None, places)
    _, _, q, kv = places
    cells = (slice(None), slice(None), (q // mask.BLOCK_SIZE[0])[:, None], kv // mask.BLOCK_SIZE[1])
    shown = part.partial[cells] & evaluate(mask.mask_mod, None, places)
    return shown if part.full is None else shown | part.full[cells]


def _columns(t: Any, columns: Any) -> Any:
    if isinstance(columns, slice):
        return t[:, :, columns]
    return torch.cat([t[:, :, start:stop] for start, stop in columns], dim=2)


def _compute(call: _Call, part: _Part, query: Any, key: Any, value: Any) -> Any:
    """Results, and what else was asked for, of one part."""
    working = torch.float64 if query.dtype is torch.float64 else torch.float32
    q = query[:, :, part.rows[0] : part.rows[1]]
    batch, heads, rows = q.shape[:3]
    if part.columns == []:
        out = value.new_zeros((batch, heads, rows, value.size(-1)), dtype=query.dtype)
        nothing = q.new_full((batch, heads, rows), -math.inf, dtype=working)
        return out, nothing if call.want_lse else None, nothing if call.want_max else None
    k, v = _columns(key, part.columns), _columns(value, part.columns)
    # Heads that share keys and values are rows of one product; keys and values are not copied for each.
    shared, count = key.size(1), k.size(2)
    together = heads // shared * rows
    grouped = q.to(working).reshape(batch, shared, together, q.size(-1))
    scores = grouped @ k.to(working).transpose(-2, -1)
    scores = (scores * call.scale).view(batch, heads, rows, count)
    device = query.device
    b, h = torch.arange(batch, device=device), torch.arange(heads, device=device)
    runs = [(part.columns.start, part.columns.stop)] if isinstance(part.columns, slice) else part.columns
    kv = torch.cat([torch.arange(*run, device=device) for run in runs])
    places = (b, h, torch.arange(*part.rows, device=device), kv)
    if call.score_mod is not None:
        # A score_mod may give another dtype, or a value that does not depend on everything.
        changed = evaluate(call.score_mod, scores, places).expand(scores.shape)
        scores = changed if changed.is_floating_point() else changed.to(working)
    shown = _shown(call, part, places)
    if shown is not None:
        scores = torch.where(shown, scores, torch.tensor(-math.inf, dtype=working, device=device))
    weights = torch._safe_softmax(scores, -1).to(query.dtype)
    weights = weights.reshape(batch, shared, together, count)
    out = (weights @ v.to(query.dtype)).view(batch, heads, rows, v.size(-1))
    lse = scores.logsumexp(-1) if call.want_lse else None
    return out, lse, scores.amax(-1) if call.want_max else None


def _attend(call: _Call, query: Any, key: Any, value: Any) -> list[Any]:
    from ...utils.checkpoint import checkpoint

    mask = call.mask
    dense = mask is None or mask.BLOCK_SIZE == (_LARGE_SPARSE_BLOCK_SIZE, _LARGE_SPARSE_BLOCK_SIZE)
    queries, keys = query.size(2), key.size(2)
    if mask is None or dense:
        parts = list(_whole_parts(tuple(query.shape[:3]), keys, mask is not None))
    else:
        parts = list(_block_parts(mask, queries, keys))
    if not parts:
        parts = [_Part((0, queries), slice(0, keys), None, None)]
    if len(parts) == 1 or not torch.is_grad_enabled():
        results = [_compute(call, part, query, key, value) for part in parts]
    else:
        results = [checkpoint(_compute, call, part, query, key, value, use_reentrant=False) for part in parts]
    joined: list[Any] = []
    for pieces in zip(*results):
        joined.append(None if pieces[0] is None else pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=2))
    return joined


def _ordered_like(out: Any, query: Any) -> Any:
    """The result with its dimensions in memory in the order of the query's, but the last one always dense."""
    order = [*sorted(range(3), key=query.stride().__getitem__, reverse=True), 3]
    if order == [0, 1, 2, 3]:
        return out
    back = [order.index(d) for d in range(4)]
    return out.permute(order).contiguous().permute(back)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Scaled dot product attention of (batch, heads, tokens, width) tensors with scores changed by `score_mod` and
    hidden by `block_mask`.

    scale: of the scores, by default one over the square root of the width. enable_gqa: heads of queries share heads of
    keys. return_aux: also give an `AuxOutput`; `return_lse` is its older form. kernel_options: see FlexKernelOptions.
    """
    _check_inputs(query, key, value, block_mask, enable_gqa)
    if block_mask is not None:
        _check_block_mask(block_mask, query, key)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    if return_lse:
        warn_once(
            "return_lse is deprecated and will be removed in v2.10. Please use return_aux=AuxRequest(lse=True) "
            "instead.",
            FutureWarning,
        )
    wanted = AuxRequest(lse=return_lse) if return_aux is None else return_aux
    _check_options(kernel_options, query, wanted.max_scores)
    batch = query.size(0)
    if key.size(0) != batch:
        if key.size(0) != 1:
            raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={batch} and Bkv={key.size(0)}")
        key, value = (t.expand(batch, *t.shape[1:]) for t in (key, value))
    if value.size(2) != key.size(2):
        front = batch * query.size(1)
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{front}, {key.size(2)}] but got: "
            f"[{front}, {value.size(2)}]."
        )
    factor = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    call = _Call(score_mod, block_mask, factor, wanted.lse, wanted.max_scores)
    out, lse, largest = _attend(call, query, key, value)
    out = _ordered_like(out, query)
    if return_aux is not None:
        return out, AuxOutput(lse, largest)
    return (out, lse) if return_lse else out
