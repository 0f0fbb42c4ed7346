"""Collectives of Python objects: pickled, and sent as bytes after their sizes.

Invariant: as in PyTorch, what is received is unpickled, and so must come from processes that one trusts.
"""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

from .. import _dtype as _t
from .._tensor import Tensor
from ._collectives import (
    P2POp,
    _check_not_self_rank,
    _one_of,
    _validate_output_list_for_rank,
    _warn_not_in_group,
    all_gather,
    batch_isend_irecv,
    broadcast,
    gather,
    irecv,
    isend,
    recv,
    scatter,
    send,
)
from ._world import (
    _canonicalize_group_rank,
    _get_object_coll_device,
    _group_or_default_group,
    _rank_not_in_group,
    get_global_rank,
    get_world_size,
)

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]

# What a test or a library may replace.
_pickler = pickle.Pickler
_unpickler = pickle.Unpickler


def _object_to_tensor(obj: Any, device: Any, group: Any) -> tuple[Any, Any]:
    from .. import frombuffer, tensor

    file = io.BytesIO()
    _pickler(file).dump(obj)
    data = frombuffer(bytearray(file.getvalue()), dtype=_t.uint8).to(device)
    return data, tensor([data.numel()], dtype=_t.int64, device=device)


def _tensor_to_object(tensor: Any, tensor_size: Any, group: Any) -> Any:
    raw = tensor.cpu().numpy().tobytes()[: int(tensor_size)]
    return _unpickler(io.BytesIO(raw)).load()


def _sized(obj: Any, group: Any) -> tuple[Any, Any, list[int], int]:
    """An object as bytes of the largest size of all ranks' objects; the sizes."""
    from .. import zeros

    device = _get_object_coll_device(group)
    data, size = _object_to_tensor(obj, device, group)
    count = get_world_size(group)
    sizes = zeros(count, dtype=_t.int64, device=device)
    all_gather([sizes[index : index + 1] for index in range(count)], size, group=group)
    known = [int(each) for each in sizes.tolist()]
    largest = max(known)
    padded = zeros(largest, dtype=_t.uint8, device=device)
    padded[: data.numel()] = data
    return padded, device, known, largest


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Give everybody the objects of all."""
    from .. import empty

    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_object")
    data, device, sizes, largest = _sized(obj, group)
    outputs = list(empty(largest * len(sizes), dtype=_t.uint8, device=device).split(largest))
    all_gather(outputs, data, group=group)
    for index, (output, size) in enumerate(zip(outputs, sizes)):
        object_list[index] = _tensor_to_object(output, size, group)
    return None


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Give one process the objects of all."""
    from .. import empty

    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        return _warn_not_in_group("gather_object")
    root = _one_of(pg, dst, group_dst)
    _validate_output_list_for_rank(pg.rank(), root, object_gather_list)
    data, device, sizes, largest = _sized(obj, pg)
    outputs: list[Any] | None = None
    if pg.rank() == root:
        outputs = list(empty(largest * len(sizes), dtype=_t.uint8, device=device).split(largest))
    gather(data, outputs, group_dst=root, group=pg)
    if outputs is not None and object_gather_list is not None:
        for index, (output, size) in enumerate(zip(outputs, sizes)):
            object_gather_list[index] = _tensor_to_object(output, size, pg)
    return None


def _packed(objects: list[Any], device: Any, group: Any) -> tuple[Any, Any]:
    """Objects one after the other, and their sizes."""
    torch: Any = sys.modules[__name__.partition(".")[0]]
    pairs = [_object_to_tensor(each, device, group) for each in objects]
    data = [pair[0] for pair in pairs]
    return data[0] if len(data) == 1 else torch.cat(data), torch.cat([pair[1] for pair in pairs])


def _unpacked(objects: list[Any], data: Any, sizes: Any, group: Any) -> None:
    start = 0
    for index, size in enumerate(int(each) for each in sizes.tolist()):
        objects[index] = _tensor_to_object(data[start : start + size], size, group)
        start += size


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Give the source's objects to all."""
    from .. import empty

    pg = _group_or_default_group(group)
    if _rank_not_in_group(pg):
        return _warn_not_in_group("broadcast_object_list")
    root = _one_of(pg, src, group_src)
    where = device or _get_object_coll_device(pg)
    if pg.rank() == root:
        data, sizes = _packed(object_list, where, pg)
    else:
        sizes = empty(len(object_list), dtype=_t.int64, device=where)
    broadcast(sizes, group_src=root, group=pg)
    if pg.rank() != root:
        data = empty(int(sizes.sum().item()), dtype=_t.uint8, device=where)
    broadcast(data, group_src=root, group=pg)
    if pg.rank() != root:
        _unpacked(object_list, data, sizes, pg)
    return None


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Give everybody one object of the source's list."""
    from .. import empty, tensor

    pg = _group_or_default_group(group)
    root = _one_of(pg, src, group_src)
    if _rank_not_in_group(pg):
        return _warn_not_in_group("scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    where = _get_object_coll_device(pg)
    parts: list[Any] | None = None
    sizes: list[Any] | None = None
    largest = tensor([0], dtype=_t.int64, device=where)
    if pg.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        pairs = [_object_to_tensor(each, where, pg) for each in scatter_object_input_list]
        sizes = [pair[1] for pair in pairs]
        top = max(pair[0].numel() for pair in pairs)
        largest.fill_(top)
        parts = []
        for data, _ in pairs:
            padded = empty(top, dtype=_t.uint8, device=where)
            padded[: data.numel()] = data
            parts.append(padded)
    broadcast(largest, group_src=root, group=pg)
    output = empty(int(largest.item()), dtype=_t.uint8, device=where)
    scatter(output, parts, group_src=root, group=pg)
    size = tensor([0], dtype=_t.int64, device=where)
    scatter(size, sizes, group_src=root, group=pg)
    scatter_object_output_list[0] = _tensor_to_object(output, size.item(), pg)
    return None


def _post(tensor: Any, op: Any, peer: int, pg: Any, use_batch: bool) -> None:
    if use_batch:
        batch_isend_irecv([P2POp(op, tensor, group_peer=peer, group=pg)]).pop().wait()
    elif op is isend:
        send(tensor, group_dst=peer, group=pg)
    else:
        recv(tensor, group_src=peer, group=pg)


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects."""
    pg = _group_or_default_group(group)
    target = _canonicalize_group_rank(pg, dst, group_dst)
    _check_not_self_rank(pg, target, "destination")
    if _rank_not_in_group(pg):
        return _warn_not_in_group("send_object_list")
    data, sizes = _packed(object_list, device or _get_object_coll_device(pg), pg)
    _post(sizes, isend, target, pg, use_batch)
    _post(data, isend, target, pg, use_batch)
    return None


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects into a list; the global rank of the sender."""
    from .. import empty

    pg = _group_or_default_group(group)
    source = _canonicalize_group_rank(pg, src, group_src)
    _check_not_self_rank(pg, source, "source")
    if _rank_not_in_group(pg):
        _warn_not_in_group("recv_object_list")
        return -1
    where = device or _get_object_coll_device(pg)
    sizes: Tensor = empty(len(object_list), dtype=_t.int64, device=where)
    _post(sizes, irecv, source, pg, use_batch)
    data = empty(int(sizes.sum().item()), dtype=_t.uint8, device=where)
    _post(data, irecv, source, pg, use_batch)
    _unpacked(object_list, data, sizes, pg)
    return get_global_rank(pg, source)
