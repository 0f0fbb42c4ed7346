"""Attention over nested tensors: that of each of the many by itself.

Invariant: the result equals the operator's on each of the many, and has the structure of the query.
"""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .._dispatch.op import Op
from .construct import strided_from_list
from .history import components, values_of, wrap
from .parts import is_nested, structure_of
from .table import JAGGED, STRIDED, serves


def _check(query: Any, key: Any, value: Any, attn_mask: Any) -> None:
    given = {"query": query, "key": key, "value": value}
    if not all(is_nested(t) for t in given.values()):
        raise ValueError(
            "Expected query, key, and value to be nested tensors, but got query.is_nested: "
            f"{query.is_nested}, key.is_nested: {key.is_nested}, and value.is_nested: {value.is_nested} instead."
        )
    for what, text in (("dtype", "dtype"), ("device", "device type")):
        if len({str(getattr(t, what)) for t in given.values()}) > 1:
            found = ", ".join([f"{n}.{what}: {getattr(t, what)}" for n, t in list(given.items())[:2]])
            raise ValueError(
                f"Expected query, key, and value to have the same {text}, but got {found}, and "
                f"value.{what}: {getattr(value, what)} instead."
            )
    if any(t.dim() < 3 for t in given.values()):
        raise ValueError(
            "Expected query, key, and value to all be at least 3 dimensional, but got query.dim: "
            f"{query.dim()}, key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    ragged = [structure_of(t).ragged for t in given.values()]
    if len(set(ragged)) > 1:
        raise ValueError(
            "Expected query, key, and value to all be ragged on the same dimension, but got ragged dims "
            f"{ragged[0]}, {ragged[1]}, and {ragged[2]}, respectively."
        )
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")


@serves(JAGGED, "scaled_dot_product_attention")
def _jagged(op: Op, query: Any, key: Any, value: Any, attn_mask: Any, *rest: Any) -> Any:
    _check(query, key, value, attn_mask)
    structure = structure_of(query)
    if query.dim() > 3 and structure.ragged == 1:
        # The ragged dimension is one of many independent ones.
        return wrap(op.call((values_of(query), values_of(key), values_of(value), None, *rest)), structure)
    each = zip(components(query), components(key), components(value), strict=True)
    found = [op.call((q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), None, *rest)).squeeze(0) for q, k, v in each]
    # The rows of all one after the other, as the layout has them before the heads are moved.
    rows = torch.cat([t.transpose(0, structure.ragged - 1) for t in found])
    if structure.lengths is not None:
        lengths = torch.nn.functional.pad(structure.lengths.cumsum(0), (1, 0))
        return wrap(rows.transpose(0, structure.ragged - 1), type(structure)(lengths, None, structure.ragged))
    return wrap(rows.transpose(0, structure.ragged - 1), structure)


@serves(STRIDED, "scaled_dot_product_attention")
def _strided(op: Op, query: Any, key: Any, value: Any, attn_mask: Any, *rest: Any) -> Any:
    if not (is_nested(query) and is_nested(key) and is_nested(value)):
        raise RuntimeError(
            "scaled_dot_product_attention: Expected query, key, and value to all be nested tensors of one layout"
        )
    if attn_mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: Nested tensors for query / key are not supported when an explicit attn_mask "
            "is set"
        )
    if rest[1]:
        raise RuntimeError(
            "_scaled_dot_product_attention: Nested tensors for query / key are not supported when is_causal=True"
        )
    each = zip(components(query), components(key), components(value), strict=True)
    return strided_from_list([op.call((q, k, v, None, *rest)) for q, k, v in each])


# -- layers in one piece ------------------------------------------------------------------------------------------
@serves(STRIDED, "_native_multi_head_attention")
def _layer(op: Op, query: Any, key: Any, value: Any, *rest: Any) -> Any:
    """Each of the many by itself; weights are padded with zeros to the longest, as PyTorch's are."""
    if not (is_nested(query) and is_nested(key) and is_nested(value)):
        raise RuntimeError("cat(): expected each tensor in given list to be nested")
    if any(structure_of(t).sizes != structure_of(query).sizes for t in (key, value)):
        raise RuntimeError(
            "cat(): expected all nested tensors to have matching ragged structures outside of the concatenated dim"
        )
    _check_no_mask(rest[6])
    results: list[Any] = []
    weights: list[Any] = []
    for each in zip(components(query), components(key), components(value)):
        out, weight = op.call((*[t.unsqueeze(0) for t in each], *rest))
        results.append(out.squeeze(0))
        weights.append(weight)
    made = strided_from_list(results) if results else strided_from_list([], query.dtype, query.device)
    if not weights or weights[0] is None:
        return made, None
    longest = max(w.shape[-1] for w in weights)
    return made, torch.cat([_padded(w, longest) for w in weights])


def _padded(weight: Any, size: int) -> Any:
    """A square of weights in a larger one of zeros."""
    more = size - weight.shape[-1]
    return torch.nn.functional.pad(weight, (0, more, 0, more)) if more else weight


@serves(STRIDED, "_transformer_encoder_layer_fwd")
def _encoder_layer(op: Op, src: Any, *rest: Any) -> Any:
    _check_no_mask(rest[-2])
    results = [op.call((t.unsqueeze(0), *rest)).squeeze(0) for t in components(src)]
    return strided_from_list(results) if results else strided_from_list([], src.dtype, src.device)


def _check_no_mask(mask: Any) -> None:
    if mask is not None:
        raise RuntimeError("NestedTensor with mask is not supported yet")
