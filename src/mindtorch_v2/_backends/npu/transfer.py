"""Raw memory between host and device, and between devices.

Invariant: a copy is ordered with the work of the current stream. One that the caller did not allow to be late has run
when its function returns; one that may be late keeps the memory of both sides from being reused before it has run.
"""

from __future__ import annotations

from typing import Any, Final

from ..._dispatch.keys import CPU, NPU
from ..._tensor_base import TensorBase, numel
from ..common.transfer import add_transfer
from . import errors, pinned, runtime, streams
from .acl_loader import ensure_acl
from .allocator import Room
from .memory import NpuStorage, allocator, captured_in, check_allocated, stream_of

_HOST_TO_DEVICE: Final = 1
_DEVICE_TO_HOST: Final = 2
_DEVICE_TO_DEVICE: Final = 3


def _index(t: TensorBase) -> int:
    index = t._device.index
    return runtime.current_device() if index is None else index


def _address(t: TensorBase) -> int:
    if t._device.type == "npu":
        check_allocated(t)
    storage: Any = t._storage
    return int(storage.ptr + t._offset * t._dtype.itemsize)


def _start(index: int, to: int, source: int, nbytes: int, kind: int, operator: str) -> int:
    """Give the copy to the current stream of a device; the stream."""
    runtime.use(index)
    stream = streams.raw_stream(index)
    errors.record("aclrtMemcpyAsync", operator, index, stream)
    errors.check(ensure_acl().aclrtMemcpyAsync(to, nbytes, source, nbytes, kind, stream), "aclrtMemcpyAsync", operator)
    return stream


def _between_host(device: TensorBase, host: TensorBase, kind: int, non_blocking: bool) -> None:
    nbytes = numel(host) * host._dtype.itemsize
    if nbytes == 0:
        return
    index = _index(device)
    storage: NpuStorage = device._storage
    room = captured_in(index, stream_of(index))
    if room is not None:
        _hold_for_graph(host, non_blocking, room)
    late = non_blocking and not runtime.STATE.blocking and pinned.block_of(host._storage) is not None
    if runtime.STATE.waits != runtime.QUIET and room is None and not late:
        runtime.unasked_wait()
    if kind == _HOST_TO_DEVICE:
        operator = "copy_ to the device"
        stream = _start(index, _address(device), _address(host), nbytes, kind, operator)
    else:
        operator = "copy_ to the host"
        stream = _start(index, _address(host), _address(device), nbytes, kind, operator)
    if room is not None:
        return
    block = pinned.block_of(host._storage) if late else None
    if block is None:
        allocator(index).vendor.synchronize(stream, operator)
        return
    storage.record_stream(stream)
    try:
        pinned.note_copy(block, index, stream)
    except BaseException:
        # Without an event nobody would know when the memory is free again.
        allocator(index).vendor.synchronize(stream, operator)
        raise


def _hold_for_graph(host: TensorBase, non_blocking: bool, room: Room) -> None:
    """A copy inside a graph happens at every replay, so the host's memory must be page-locked and stay."""
    if not non_blocking or pinned.block_of(host._storage) is None:
        raise RuntimeError(
            "a copy between CPU and NPU cannot be captured in a graph unless the CPU tensor is in pinned memory and "
            "non_blocking=True is given: any other copy waits for the stream"
        )
    room.held.append(host._storage)


def to_device(dst: TensorBase, src: TensorBase, non_blocking: bool) -> None:
    """From the CPU. The elements of the two lie in the same order without gaps, as in all functions here."""
    _between_host(dst, src, _HOST_TO_DEVICE, non_blocking)


def to_host(dst: TensorBase, src: TensorBase, non_blocking: bool) -> None:
    """To the CPU."""
    _between_host(src, dst, _DEVICE_TO_HOST, non_blocking)


# Pairs (device, other) where the first may reach the memory of the second.
_PEERS: Final[set[tuple[int, int]]] = set()


def _connect(index: int, peer: int) -> None:
    if (index, peer) in _PEERS:
        return
    if not runtime.can_access_peer(index, peer):
        raise RuntimeError(
            f"npu:{index} cannot reach the memory of npu:{peer}, so tensors cannot be copied between "
            f"them directly; copy through the CPU: t.cpu().to('npu:{peer}')"
        )
    runtime.use(index)
    errors.check(ensure_acl().aclrtDeviceEnablePeerAccess(peer, 0), "aclrtDeviceEnablePeerAccess")
    _PEERS.add((index, peer))


def between_devices(dst: TensorBase, src: TensorBase, non_blocking: bool) -> None:
    """From one NPU to another, on the source's stream. It has run when this returns, also where the caller would let
    it be late: the vendor does not say that a stream can wait for an event of another device."""
    nbytes = numel(src) * src._dtype.itemsize
    if nbytes == 0:
        return
    source, to = _index(src), _index(dst)
    if runtime.STATE.waits != runtime.QUIET:
        runtime.unasked_wait()
    _connect(source, to)
    _connect(to, source)
    operator = "copy_ between devices"
    allocator(to).vendor.synchronize(streams.raw_stream(to), operator)
    stream = _start(source, _address(dst), _address(src), nbytes, _DEVICE_TO_DEVICE, operator)
    allocator(source).vendor.synchronize(stream, operator)


add_transfer(int(NPU), int(CPU), to_device)
add_transfer(int(CPU), int(NPU), to_host)
add_transfer(int(NPU), int(NPU), between_devices)
