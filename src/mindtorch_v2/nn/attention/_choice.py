"""Which implementation of attention a call gets where not all are allowed.

Invariant: on the CPU the fused and the plain implementation are one composition, so that only what is refused differs;
on an NPU the fused one is the vendor's function.
"""

from __future__ import annotations

from typing import Any

from ..._dtype_names import cpp_name
from ..._ops import attention as rows
from ..._warn import warn
from .._sdp import SDP


def _shape(t: Any) -> str:
    return str(list(t.shape))


def _heads_refused(query: Any, key: Any, value: Any, grouped: bool) -> str | None:
    q, k, v = query.shape, key.shape, value.shape
    if grouped and k[:2] != v[:2]:
        return (
            "Both fused kernels require key and value to have the same num_heads and batch_size but got: Key sizes: "
            f"{_shape(key)}, Value sizes: {_shape(value)}, Query sizes: {_shape(query)} instead."
        )
    if grouped and (k[1] == 0 or q[1] % k[1]):
        return (
            "The number of heads in key/value must divide number of heads in query.Got input Key sizes(): "
            f"{k[1]}, Value sizes(): {v[1]}, Query sizes(): {q[1]} instead."
        )
    broadcast = "To broadcast dense inputs, try using unsqueeze and expand_to before passing them into the kernel."
    if not q[0] == k[0] == v[0]:
        return (
            "For dense inputs, both fused kernels require query, key and value to have the same batch_size. "
            f"Query.sizes(): {_shape(query)}, Key.sizes(): {_shape(key)}, Value.sizes(): {_shape(value)} instead. "
            + broadcast
        )
    if not grouped and not q[1] == k[1] == v[1]:
        return (
            "For dense input, both fused kernels require query, key and value to have the same num_heads. "
            f"Query.sizes(): {_shape(query)}, Key sizes(): {_shape(key)}, Value sizes(): {_shape(value)} instead. "
            + broadcast
        )
    return None


def _mask_refused(query: Any, key: Any, mask: Any) -> str | None:
    if mask is None:
        return None
    if mask.requires_grad or mask.size(-2) not in (1, query.size(-2)) or mask.size(-1) not in (1, key.size(-2)):
        return ""
    if mask.dim() == 2 or (
        mask.dim() == 4 and mask.size(0) in (1, query.size(0)) and mask.size(1) in (1, query.size(1))
    ):
        return None
    return (
        "Please use the following attn mask shapes: 2d - ({Q_seq_len, 1}  x {KV_seq_len, 1}); 4d - ({Batch, 1} x "
        "{Num_heads, 1} x {Q_seq_len, 1}  x {KV_seq_len, 1})"
    )


def _fused_refused(query: Any, key: Any, value: Any, mask: Any, dropout_p: float, grouped: bool) -> str | None:
    """Why PyTorch's fused implementation for the CPU does not take this call; an empty text where it gives none."""
    if dropout_p > 0:
        return "Both fused kernels do not support non-zero dropout."
    if not query.dim() == key.dim() == value.dim() == 4:
        return (
            "All fused kernels requires query, key and value to be 4 dimensional, but got Query dim: "
            f"{query.dim()}, Key dim: {key.dim()}, Value dim: {value.dim()} instead."
        )
    for reason in (_heads_refused(query, key, value, grouped), _mask_refused(query, key, mask)):
        if reason is not None:
            return reason
    if not query.size(-1) == key.size(-1) == value.size(-1):
        return (
            "Flash attention requires q,k,v to have the same last dimension. Got Query.size(-1): "
            f"{query.size(-1)}, Key.size(-1): {key.size(-1)}, Value.size(-1): {value.size(-1)} instead."
        )
    if not query.stride(-1) == key.stride(-1) == value.stride(-1) == 1:
        return (
            "All fused kernels require the last dimension of the input to have stride 1. Got Query.stride(-1): "
            f"{query.stride(-1)}, Key.stride(-1): {key.stride(-1)}, Value.stride(-1): {value.stride(-1)}"
        )
    if not query.is_floating_point() or query.dtype.itemsize == 1:
        return (
            "Expected query, key and value to all be of dtype: {Float, Double, BFloat16, Half}. Got Query dtype: "
            f"{cpp_name(query.dtype)}, Key dtype: {cpp_name(key.dtype)}, and Value dtype: {cpp_name(value.dtype)} "
            "instead."
        )
    return None


def by_parts(
    query: Any, key: Any, value: Any, mask: Any, dropout_p: float, is_causal: bool, scale: Any, grouped: bool
) -> bool:
    """Whether the call has to go by the composition although the device may have a fused function; raises where no
    implementation that is allowed takes it."""
    rows.check(query, key, value, mask, is_causal)
    device = query.device.type
    if device not in ("cpu", "npu"):
        return False
    fused, plain = SDP.enabled["flash"], SDP.enabled["math"]
    if device == "npu":
        # What others add to PyTorch goes by "overrideable" there.
        fused = fused or SDP.enabled["overrideable"]
    if not fused and not plain:
        raise RuntimeError(
            "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the "
            "math kernel and the fused kernels."
        )
    if not fused:
        return True
    reason: str | None
    if device == "npu":
        from ..._backends.npu.attention import fits

        taken = fits(query, key, value, mask, dropout_p, is_causal, scale, grouped)
        reason = None if taken else "The vendor's fused function does not take these dtypes, shapes or options."
    else:
        reason = _fused_refused(query, key, value, mask, dropout_p, grouped)
    if reason is not None and not plain:
        warn("Flash attention kernel not used because:")
        if reason:
            warn(reason)
        raise RuntimeError("No available kernel.  Aborting execution.")
    return False
