"""Attention over sequences of different lengths packed behind each other.

Invariant: as in PyTorch the operators behind this are kernels of a device that the CPU does not have; arguments are
checked, shapes are known, and computing raises.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mindtorch_v2 as torch

from ..._tensor import Tensor

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What else to return: `lse`, the logarithms of the sums of the exponentials of the scores."""

    lse: bool = False


def _check(query: Tensor, key: Tensor, window_size: Any, enable_gqa: bool, paged: bool) -> None:
    heads, given = query.size(1), key.size(2 if paged else 1)
    if not enable_gqa and heads != given:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={given}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % given:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={given}."
        )
    if len(window_size) != 2:
        raise ValueError(f"window_size must have length 2, got {len(window_size)}")


def _refuse(operator: str, query: Tensor) -> None:
    if query.device.type != "meta":
        where = query.device.type.upper()
        raise NotImplementedError(
            f"Could not run 'aten::{operator}' with arguments from the '{where}' backend. This could be because the "
            "operator doesn't exist for this backend; 'aten::" + operator + "' is only available for these backends: "
            "[Meta]."
        )


def _result(out: Tensor, query: Tensor, return_aux: AuxRequest | None) -> Any:
    if return_aux is None or not return_aux.lse:
        return out
    return out, torch.empty((query.size(1), query.size(0)), dtype=torch.float32, device=query.device)


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """Attention of packed sequences that begin at `cu_seq_q` and `cu_seq_k`."""
    _check(query, key, window_size, enable_gqa, block_table is not None)
    _refuse("_flash_attention_forward", query)
    return _result(torch.empty_like(query), query, return_aux)


def varlen_attn_out(
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """The same into memory that is given."""
    _check(query, key, window_size, enable_gqa, block_table is not None)
    _refuse("_flash_attention_forward_no_dropout_inplace", query)
    return _result(out, query, return_aux)
