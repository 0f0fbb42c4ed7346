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


def _whole(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """On the whole of all tensors: what reads their values would read those of a part."""
    from ..._tensor import Tensor
    from ...utils._pytree import tree_map_only
    from ._api import DTensor

    meshes: list[Any] = []

    def gathered(each: Any) -> Any:
        mesh = each.device_mesh
        meshes.append(mesh)
        places = [Replicate()] * mesh.ndim
        return each.redistribute(mesh, places).to_local(grad_placements=places)

    given, named = tree_map_only(DTensor, gathered, (tuple(args), dict(kwargs)))
    out = func(*given, **named)
    return tree_map_only(
        Tensor, lambda each: DTensor.from_local(each, meshes[0], [Replicate()] * meshes[0].ndim, run_check=False), out
    )


def _one_hot(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Without a number of classes it is the largest value that counts."""
    told = kwargs.get("num_classes", args[1] if len(args) > 1 else -1)
    return _whole(func, args, kwargs) if told == -1 else NotImplemented


def _quantile(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Several quantiles are in a tensor, which is looked into."""
    return (
        NotImplemented
        if isinstance(kwargs.get("q", args[1] if len(args) > 1 else None), float)
        else _whole(func, args, kwargs)
    )


def _told_by_a_tensor(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Where numbers of pieces or copies are in a tensor, its values decide the shape."""
    from ._api import DTensor

    later = [*args[1:], *(each for name, each in kwargs.items() if name not in ("self", "input"))]
    alone = func.__name__ == "repeat_interleave" and not later
    return _whole(func, args, kwargs) if alone or any(isinstance(each, DTensor) for each in later) else NotImplemented


def _refused(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    raise NotImplementedError(f"Operator aten.{func.__name__}.default does not have a sharding strategy registered.")


_TAKEN: dict[str, Any] = {"scaled_dot_product_attention": _attention, "matmul": _matmul, "__matmul__": _matmul}
_TAKEN |= dict.fromkeys(
    "bincount histogramdd embedding_bag ctc_loss combinations unravel_index pdist ldl_factor ldl_factor_ex "
    "linalg_ldl_factor linalg_ldl_factor_ex".split(),
    _whole,
)
_TAKEN |= {"tensor_split": _told_by_a_tensor, "repeat_interleave": _told_by_a_tensor}
_TAKEN |= dict.fromkeys("resize_ resize_as_ set_".split(), _refused)
_TAKEN |= {"one_hot": _one_hot, "quantile": _quantile, "nanquantile": _quantile, "instance_norm": _whole}


def served(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function gives on tensors of a mesh, or NotImplemented where its parts can say it."""
    taken = _TAKEN.get(getattr(func, "__name__", ""))
    return NotImplemented if taken is None else taken(func, args, kwargs)
