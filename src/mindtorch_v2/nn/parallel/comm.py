"""Copies and sums between devices.

Invariant: a copy to the device where a tensor already is shares its memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor


def device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of an NPU by number, name or device; -1 is the CPU, None the current NPU."""
    if isinstance(device, str):
        device = torch.device(device)
    index: int | None = None
    if isinstance(device, torch.device):
        if not allow_cpu and device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    elif isinstance(device, int):
        index = device
    if index is not None:
        return index
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return int(torch.accelerator.current_device_index())


def place(index: int) -> Any:
    """The device with that number."""
    return torch.device("cpu") if index == -1 else torch.device("npu", index)


def copy_to(tensor: Tensor, index: int) -> Tensor:
    """The tensor on a device; never the same object."""
    moved = tensor.to(place(index), non_blocking=True)
    return tensor.view_as(tensor) if moved is tensor else moved


def broadcast(tensor: Tensor, devices: Iterable[Any] | None = None, *, out: Sequence[Tensor] | None = None) -> Any:
    """The tensor on each of the devices, or copied into each of `out`."""
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    if out is not None:
        for target in out:
            target.copy_(tensor, non_blocking=True)
        return tuple(out)
    return tuple(copy_to(tensor, device_index(device)) for device in devices or ())


def _groups(tensors: Sequence[Tensor], buffer_size: int) -> Iterator[list[int]]:
    """Places of tensors that share a buffer: of one dtype and device, in order, and together not above the size; a
    larger tensor is alone."""
    open_groups: dict[Any, tuple[list[int], int]] = {}
    for i, tensor in enumerate(tensors):
        key, size = (tensor.dtype, tensor.device), tensor.numel() * tensor.element_size()
        places, filled = open_groups.get(key, ([], 0))
        if filled and filled + size > buffer_size:
            yield places
            places, filled = [], 0
        places.append(i)
        open_groups[key] = places, filled + size
    for places, _ in open_groups.values():
        yield places


def _flat(tensors: list[Tensor]) -> Tensor:
    joined: Tensor = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
    return joined


def _parts(flat: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    """A buffer taken apart as the tensors are; each part counts its own writes, as nobody sees the buffer."""
    pieces = flat.split([tensor.numel() for tensor in tensors])
    return [piece.view(tensor.shape).data for piece, tensor in zip(pieces, tensors)]


def broadcast_coalesced(tensors: Sequence[Tensor], devices: Iterable[Any], buffer_size: int = 10485760) -> Any:
    """For each device the tensors on it; small ones are copied together, in buffers of at most `buffer_size` bytes."""
    if buffer_size <= 0:
        raise ValueError(f"broadcast_coalesced: buffer_size must be positive, got {buffer_size}")
    indices = [device_index(device) for device in devices]
    results: list[list[Any]] = [[None] * len(tensors) for _ in indices]
    for places in _groups(tensors, buffer_size):
        some = [tensors[i] for i in places]
        flat = None
        for index, found in zip(indices, results):
            if len(some) == 1 or some[0].device == place(index):
                copies = [copy_to(tensor, index) for tensor in some]
            else:
                flat = _flat(some) if flat is None else flat
                copies = _parts(copy_to(flat, index), some)
            for i, copy in zip(places, copies):
                found[i] = copy
    return results


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of several NPUs, on one of those."""
    index = device_index(destination, optional=True)
    size = inputs[0].size()
    root = None
    for i, tensor in enumerate(inputs):
        if tensor.device.type == "cpu":
            raise AssertionError(f"reduce_add expects all inputs to be on GPUs, but input {i} is on CPU")
        if tensor.get_device() == index:
            root = i
        if tensor.size() != size:
            got, expected = ("x".join(str(n) for n in s) for s in (tensor.size(), size))
            raise ValueError(f"input {i} has invalid size: got {got}, but expected {expected}")
    if root is None:
        raise RuntimeError("reduce_add expects destination to be on the same GPU with one of the tensors")
    if len(inputs) == 1:
        return inputs[0]
    first, *others = [tensor for i, tensor in enumerate(inputs) if i != root]
    result: Tensor = inputs[root] + first.to(place(index), non_blocking=True)
    for other in others:
        result.add_(other.to(place(index), non_blocking=True))
    return result


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """The sums of corresponding tensors, each sequence from one NPU; small ones are moved and added together, in
    buffers of at most `buffer_size` bytes."""
    if buffer_size <= 0:
        raise ValueError(f"reduce_add_coalesced: buffer_size must be positive, got {buffer_size}")
    columns = list(zip(*inputs, strict=True))
    sums: list[Any] = [None] * len(columns)
    for places in _groups([column[0] for column in columns], buffer_size):
        some = [columns[i][0] for i in places]
        # What has not the same size everywhere is refused as it is alone.
        if len(places) == 1 or any(
            t.size() != column[0].size() for column in (columns[i] for i in places) for t in column
        ):
            found = [reduce_add(columns[i], destination) for i in places]
        else:
            flats = [_flat([columns[i][k] for i in places]) for k in range(len(inputs))]
            found = _parts(reduce_add(flats, destination), some)
        for i, result in zip(places, found):
            sums[i] = result
    return tuple(sums)


def scatter(
    tensor: Tensor,
    devices: Iterable[Any] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Sequence[Any] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Parts of the tensor along `dim`, one on each device; `streams` says on which stream each is copied."""
    if out is not None:
        for name, value in (("devices", devices), ("chunk_sizes", chunk_sizes)):
            if value is not None:
                raise RuntimeError(f"'{name}' must not be specified when 'out' is specified, but got {name}={value}")
        chunk_sizes = [target.size(dim) for target in out]
        parts = tensor.split(chunk_sizes, dim)
        for target, part in zip(out, parts, strict=True):
            target.copy_(part, non_blocking=True)
        return tuple(out)
    indices = [device_index(device) for device in devices or ()]
    parts = tensor.chunk(len(indices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    moved: list[Tensor] = []
    for i, (part, index) in enumerate(zip(parts, indices)):
        stream = streams[i] if streams is not None else None
        if stream is None:
            moved.append(copy_to(part, index))
        else:
            with torch.npu.stream(stream):
                moved.append(copy_to(part, index))
    return tuple(moved)


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The tensors one after another along `dim`, on one device."""
    if out is not None:
        if destination is not None:
            raise RuntimeError(
                f"'destination' must not be specified when 'out' is specified, but got destination={destination}"
            )
        sizes = [tensor.size(dim) for tensor in tensors]
        for target, tensor in zip(out.split(sizes, dim), tensors, strict=True):
            target.copy_(tensor, non_blocking=True)
        return out
    if destination == -1:
        warnings.warn(
            "Using -1 to represent CPU tensor is deprecated. Please use a device object or string instead, e.g., "
            '"cpu".',
            FutureWarning,
            stacklevel=2,
        )
    index = device_index(destination, optional=True, allow_cpu=True)
    return torch.cat([tensor.to(place(index), non_blocking=index != -1) for tensor in tensors], dim)
