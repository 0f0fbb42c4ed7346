"""Functions that are taken over before they are made of operators: their parts would flatten split dimensions.

Invariant: each is the function itself on every rank's part, where batch and heads are split in the same way everywhere.
"""

from __future__ import annotations

from typing import Any

from .placement_types import Placement, Replicate, Shard


def _agreed(tensors: list[Any], kept: int) -> tuple[Placement, ...] | None:
    """The placements that all have, if only dimensions before the last `kept` are split; None if there are none."""
    from ._api import DTensor

    if not all(isinstance(each, DTensor) for each in tensors):
        return None
    first = tensors[0].placements
    rank = tensors[0].dim()
    if not any(each.is_shard() for each in first):
        return None
    for each in tensors:
        if each.placements != first or each.dim() != rank or each.device_mesh != tensors[0].device_mesh:
            return None
    ok = all(isinstance(each, Replicate) or (isinstance(each, Shard) and each.dim < rank - kept) for each in first)
    lead = {tuple(each.shape[: rank - kept]) for each in tensors}
    return first if ok and len(lead) == 1 else None


def _on_parts(func: Any, tensors: list[Any], placements: tuple[Placement, ...], kwargs: dict[str, Any]) -> Any:
    from ._api import DTensor

    mesh = tensors[0].device_mesh
    out = func(*[each.to_local() for each in tensors], **kwargs)
    shape = (*tensors[0].shape[: tensors[0].dim() - 2], *out.shape[-2:])
    stride = [1] * len(shape)
    for at in range(len(shape) - 2, -1, -1):
        stride[at] = stride[at + 1] * shape[at + 1]
    return DTensor.from_local(out, mesh, placements, shape=shape, stride=tuple(stride))


def _attention(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = {**dict(zip(names, args)), **kwargs}
    tensors = [given.pop(name) for name in names[:3]]
    mask = given.get("attn_mask")
    if mask is not None or given.get("enable_gqa"):
        return NotImplemented
    placements = _agreed(tensors, 2)
    return NotImplemented if placements is None else _on_parts(func, tensors, placements, given)


def _matmul(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) != 2 or not hasattr(args[0], "dim") or args[0].dim() < 4:
        return NotImplemented
    placements = _agreed(list(args), 2)
    return NotImplemented if placements is None else _on_parts(func, list(args), placements, {})


def _view_in_place(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The tensor becomes the view: its part, and how it lies, too."""
    from ... import no_grad
    from ..._tensor import Tensor
    from ._api import DTensor

    if not isinstance(args[0], DTensor):
        return NotImplemented
    with no_grad():
        seen: Any = getattr(args[0], func.__name__[:-1])(*args[1:], **kwargs)
    found = Tensor.__torch_function__.__func__(DTensor, func, (DTensor,), args, kwargs)  # type: ignore[attr-defined]
    found._local_tensor, found._spec = seen._local_tensor, seen._spec
    return found


_IN_PLACE = "squeeze_ unsqueeze_ transpose_ t_ swapaxes_ swapdims_"
_TAKEN: dict[str, Any] = {"scaled_dot_product_attention": _attention, "matmul": _matmul, "__matmul__": _matmul}
_TAKEN |= dict.fromkeys(_IN_PLACE.split(), _view_in_place)


def served(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function gives on tensors of a mesh, or NotImplemented where its parts can say it."""
    taken = _TAKEN.get(getattr(func, "__name__", ""))
    return NotImplemented if taken is None else taken(func, args, kwargs)
