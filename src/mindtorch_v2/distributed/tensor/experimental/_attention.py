"""Attention over a sequence of which every rank has a part.

Invariant: what a rank computes of its queries is what one process computes of them. Keys and values are gathered before
they are looked at, and their gradients scattered; queries stay. With balance, a rank has a piece from the front and one
from the back, so that all have as much to look at when attention looks back alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from .... import arange, cat, no_grad
from ....nn import functional as F
from ....overrides import TorchFunctionMode
from ... import _functional_collectives as funcol
from ...device_mesh import DeviceMesh

__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]


class _RotateMethod(Enum):
    ALL_TO_ALL = auto()
    ALL_GATHER = auto()


@dataclass
class _ContextParallelOptions:
    convert_to_f32: bool = True
    enable_load_balance: bool = True
    rotate_method: _RotateMethod = _RotateMethod.ALL_GATHER


_cp_options = _ContextParallelOptions()


def set_rotate_method(rotate_method: str) -> None:
    """How keys and values come to the ranks; they are gathered."""
    if rotate_method == "alltoall":
        raise NotImplementedError("set_rotate_method: 'alltoall' is not served; 'allgather' is, and is the default")
    if rotate_method != "allgather":
        raise NotImplementedError(f"Context Parallel does not support using {rotate_method} for kv shards rotation")
    _cp_options.rotate_method = _RotateMethod.ALL_GATHER


class _LoadBalancer:
    """In which order a sequence is cut into parts."""

    def _generate_indices(self, restore: bool = False) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._generate_indices")


class _HeadTailLoadBalancer(_LoadBalancer):
    """Of twice as many pieces as ranks, each rank has one from the front and the one as far from the back."""

    def __init__(self, seq_length: int, world_size: int, device: Any) -> None:
        if seq_length % (2 * world_size):
            raise ValueError(
                f"a sequence of {seq_length} cannot be split into {2 * world_size} pieces, two for each of "
                f"{world_size} ranks"
            )
        self.seq_length, self.world_size, self.device = seq_length, world_size, device

    def _generate_indices(self, restore: bool = False) -> Any:
        pieces = arange(self.seq_length, device=self.device).chunk(2 * self.world_size)
        order = cat([pieces[at] for rank in range(self.world_size) for at in (rank, len(pieces) - 1 - rank)])
        return (order.argsort() if restore else order).unsqueeze(0)


def _balancer(length: int, mesh: DeviceMesh, device: Any) -> _LoadBalancer | None:
    if not _cp_options.enable_load_balance or mesh.size() == 1:
        return None
    return _HeadTailLoadBalancer(length, mesh.size(), device)


def _one_dimension(mesh: DeviceMesh) -> None:
    if mesh.ndim != 1:
        raise ValueError(f"context parallelism needs a mesh of one dimension, got {mesh.ndim}")


def _order(balancer: _LoadBalancer | None, length: int, device: Any, restore: bool = False) -> Any:
    if balancer is None:
        return arange(length, device=device)
    return balancer._generate_indices(restore=restore)[0]


def _context_parallel_shard(
    mesh: DeviceMesh, buffers: Sequence[Any], seq_dims: Sequence[int], load_balancer: _LoadBalancer | None = None
) -> list[Any]:
    """This rank's parts of some tensors."""
    _one_dimension(mesh)
    if len(buffers) != len(seq_dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    found = []
    for buffer, dim in zip(buffers, seq_dims):
        length = buffer.shape[dim]
        if length % mesh.size():
            raise ValueError(f"a sequence of {length} cannot be split among {mesh.size()} ranks")
        order = _order(load_balancer, length, buffer.device)
        mine = order.chunk(mesh.size())[mesh.get_local_rank()]
        found.append(buffer.index_select(dim, mine))
    return found


def context_parallel_unshard(
    mesh: DeviceMesh, buffers: list[Any], seq_dims: list[int], load_balancer: _LoadBalancer | None = None
) -> list[Any]:
    """The tensors that ranks have parts of, whole."""
    _one_dimension(mesh)
    found = []
    for buffer, dim in zip([each.detach() for each in buffers], seq_dims):
        whole = funcol.all_gather_tensor(buffer.contiguous(), dim % buffer.dim(), (mesh, 0))
        balancer = load_balancer or _balancer(whole.shape[dim], mesh, buffer.device)
        order = _order(balancer, whole.shape[dim], buffer.device, restore=True)
        found.append(whole.index_select(dim, order))
    return found


class _Gathered(TorchFunctionMode):
    """Attention of this rank's queries with everybody's keys and values."""

    def __init__(self, mesh: DeviceMesh) -> None:
        super().__init__()
        self.mesh = mesh

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not F.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        return self._attention(*args, **(kwargs or {}))

    def _attention(
        self,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        if attn_mask is not None:
            raise NotImplementedError("context_parallel: argument 'attn_mask' must be None; is_causal is served")
        keys, values = (
            funcol.all_gather_tensor_autograd(each, each.dim() - 2, (self.mesh, 0)) for each in (key, value)
        )
        mask = None
        if is_causal:
            ranks, length = self.mesh.size(), keys.shape[-2]
            if query.shape[-2] * ranks != length:
                raise RuntimeError(
                    f"context_parallel: is_causal needs as many queries as keys on each rank, got {query.shape[-2]} "
                    f"and {key.shape[-2]}"
                )
            places = _order(_balancer(length, self.mesh, query.device), length, query.device)
            mine = places.chunk(ranks)[self.mesh.get_local_rank()]
            mask = mine.unsqueeze(1) >= places
        return F.scaled_dot_product_attention(query, keys, values, mask, dropout_p, False, scale, enable_gqa)


@contextlib.contextmanager
def context_parallel(
    mesh: DeviceMesh,
    *,
    buffers: list[Any] | None = None,
    buffer_seq_dims: list[int] | None = None,
    no_restore_buffers: set[Any] | None = None,
) -> Iterator[None]:
    """Inside, the buffers are this rank's parts of themselves, and attention looks at the parts of all."""
    _one_dimension(mesh)
    given, dims, kept = buffers or [], buffer_seq_dims or [], no_restore_buffers or set()
    if len(given) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    if any(not any(each is buffer for buffer in given) for each in kept):
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    restored = [each for each in given if not any(each is other for other in kept)]
    before = [(each, each.detach().clone()) for each in restored]
    for buffer, dim in zip(given, dims):
        balancer = _balancer(buffer.shape[dim], mesh, buffer.device)
        (part,) = _context_parallel_shard(mesh, [buffer], [dim], balancer)
        _put(buffer, part)
    try:
        with _Gathered(mesh):
            yield
    finally:
        for buffer, whole in before:
            _put(buffer, whole)


def _put(buffer: Any, values: Any) -> None:
    with no_grad():
        buffer.resize_(values.shape)
        buffer.copy_(values)
