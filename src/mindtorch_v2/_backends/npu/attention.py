"""The vendor's fused attention and its gradient: which calls it serves, and its launches.

Invariant: a mask says what is hidden, and is given in one of the documented shapes; numbers that are added to scores,
and dropout, go by the composition.
"""

from __future__ import annotations

from typing import Any, Final

from ..._core_operators import CORE
from ..._dispatch import registry
from ..._dtype import bool as bool_
from ..._dtype import float32
from ..._ops.rules.layout import preserved_strides
from ..._tensor_base import TensorBase
from ..common.runtime import empty, empty_contiguous
from . import creation, launch, table

FORWARD: Final = "aclnnFlashAttentionScore"
BACKWARD: Final = "aclnnFlashAttentionScoreGrad"
_TITLE: Final = "scaled_dot_product_attention"
# Tokens before and after that may be seen: all of them.
_ALL: Final = 2147483647
# Values of sparseMode: a mask of every score, and one for all that are above the diagonal, of that size.
_GIVEN: Final = 0
_LEFT_UP: Final = 2
_COMPRESSED: Final = 2048
# How often the vendor stores the statistics of a query.
_COPIES: Final = 8
# Values of innerPrecise: plain, and with queries that may look at nothing.
_PLAIN: Final = 0
_SOME_SEE_NOTHING: Final = 2


def fits(
    query: TensorBase,
    key: TensorBase,
    value: TensorBase,
    attn_mask: Any,
    dropout_p: Any,
    is_causal: bool,
    scale: Any,
    enable_gqa: bool,
) -> bool:
    q, k, v = query._shape, key._shape, value._shape
    n = len(q)
    if n not in (3, 4) or len(k) != n or len(v) != n or dropout_p != 0 or (n == 3 and enable_gqa):
        return False
    dt = query._dtype
    if not table.signature(FORWARD).params[0].mask >> dt.code & 1 or key._dtype is not dt or value._dtype is not dt:
        return False
    if k[:-1] != v[:-1] or q[-1] != k[-1] or q[-1] != v[-1] or q[0] != k[0] or 0 in q or 0 in k:
        return False
    if n == 4 and q[1] != k[1] and (not enable_gqa or q[1] % k[1]):
        return False
    if attn_mask is None:
        return True
    mask: TensorBase = attn_mask
    return not is_causal and mask._dtype is bool_ and _mask_fits(mask._shape, q, k)


def _mask_fits(shape: tuple[int, ...], q: tuple[int, ...], k: tuple[int, ...]) -> bool:
    """Whether a mask can be expanded to every score."""
    scores = q[:-1] + (k[-2],)
    short = len(scores) - len(shape)
    if len(shape) < 2 or short < 0:
        return False
    for i, m in enumerate(shape):
        if m != 1 and m != scores[short + i]:
            return False
    return True


def _by_head(t: TensorBase) -> Any:
    """(batch, heads, tokens, width)"""
    return CORE.unsqueeze.call((t, 1)) if len(t._shape) == 3 else t


def _ordered_like(t: TensorBase) -> TensorBase:
    """For a result in the order of an operand: heads that lie behind tokens are joined again without a copy. Without
    heads, and where features do not lie side by side, it is contiguous, as in PyTorch."""
    if len(t._shape) == 3 or t._stride[3] != 1:
        return empty_contiguous(t._shape, t._dtype, t._device)
    return empty(t._shape, preserved_strides(t), t._dtype, t._device)


def _above_diagonal(rows: int, columns: int, like: TensorBase) -> TensorBase:
    ones = empty_contiguous((rows, columns), bool_, like._device)
    creation.fill(ones, True)
    out: TensorBase = registry.get("triu").call((ones, 1))
    return out


def _hidden(query: TensorBase, key: TensorBase, attn_mask: Any, is_causal: bool) -> Any:
    """What may not be seen; None where everything may."""
    rows, columns = query._shape[-2], key._shape[-2]
    if is_causal:
        if max(rows, columns) <= _COMPRESSED:
            return _above_diagonal(rows, columns, query)
        return _above_diagonal(_COMPRESSED, _COMPRESSED, query)
    if attn_mask is None:
        return None
    out = attn_mask.logical_not()
    if len(query._shape) == 3 and len(out._shape) == 3:
        out = out.unsqueeze(1)
    if len(out._shape) == 3:
        out = out.unsqueeze(0)
    if len(out._shape) == 2:
        return out.expand((rows, columns))
    batch, heads = (query._shape[0], 1) if len(query._shape) == 3 else (query._shape[0], query._shape[1])
    if out._shape[1] == 1:
        return out.expand((out._shape[0], 1, rows, columns))
    return out.expand((batch, heads, rows, columns))


def _factor(query: TensorBase, scale: Any) -> float:
    return 1.0 / float(query._shape[-1]) ** 0.5 if scale is None else float(scale)


def _mode(query: TensorBase, key: TensorBase, is_causal: bool) -> int:
    return _LEFT_UP if is_causal and max(query._shape[-2], key._shape[-2]) > _COMPRESSED else _GIVEN


def attention(
    query: TensorBase,
    key: TensorBase,
    value: TensorBase,
    attn_mask: Any,
    dropout_p: Any,
    is_causal: bool,
    scale: Any,
    enable_gqa: bool,
) -> tuple[Any, Any]:
    """The result, and what its gradient wants of it."""
    hidden = _hidden(query, key, attn_mask, is_causal)
    q: TensorBase = _by_head(query)
    batch, heads, rows = q._shape[0], q._shape[1], q._shape[2]
    dev = query._device
    top = empty_contiguous((batch, heads, rows, _COPIES), float32, dev)
    total = empty_contiguous((batch, heads, rows, _COPIES), float32, dev)
    out = _ordered_like(query)
    inner = _PLAIN if attn_mask is None else _SOME_SEE_NOTHING
    values: list[Any] = [q, _by_head(key), _by_head(value), None, None, None, hidden, None, _factor(query, scale), 1.0]
    values += [_ALL, _ALL, heads, "BNSD", inner, _mode(query, key, is_causal), top, total]
    values += [empty_contiguous((0,), query._dtype, dev), _by_head(out)]
    launch.launch(launch.resolve(FORWARD), values, _TITLE)
    return out, (out, top, total) if hidden is None else (out, top, total, hidden)


def back(grad: TensorBase, needs: Any, args: Any, kept: Any) -> tuple[Any, ...]:
    query: TensorBase = args[0]
    key: TensorBase = args[1]
    value: TensorBase = args[2]
    hidden = kept[3] if len(kept) > 3 else None
    inner = _PLAIN if args[3] is None else _SOME_SEE_NOTHING
    q: TensorBase = _by_head(query)
    values: list[Any] = [q, _by_head(key), _by_head(value), _by_head(grad), None, None, None, hidden, kept[1], kept[2]]
    values += [None, _by_head(kept[0]), None, _factor(query, args[6]), 1.0, _ALL, _ALL, q._shape[1], "BNSD", inner]
    values.append(_mode(query, key, args[5]))
    grads: list[Any] = []
    for t in (query, key, value):
        g = _ordered_like(t)
        grads.append(g)
        values.append(_by_head(g))
    values.append(empty_contiguous((0,), query._dtype, query._device))
    launch.launch(launch.resolve(BACKWARD), values, _TITLE + "_backward")
    for i in range(3):
        if not needs[i]:
            grads[i] = None
    return grads[0], grads[1], grads[2], None, None, None, None, None
