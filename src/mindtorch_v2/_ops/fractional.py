"""Pooling over windows whose places are drawn at random, so that sizes shrink by any ratio.

Invariant: along each dimension the first window starts at the front and the last one ends at the back; what lies
between follows from one random number. Places are counted in the plane of a channel.
"""
from __future__ import annotations

import math
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op, Spec
from .._dtype import int64
from .rules.base import like
from .table import op

Ints = tuple[int, ...]
_arange = registry.get("arange")
_SIDES = {2: ("height", "width"), 3: ("time", "height", "width")}


def _check(rank: int, self: Any, kernel_size: Ints, output_size: Ints, random_samples: Any) -> list[Spec]:
    name = "fractional_max_pool2d()" if rank == 2 else "fractional_max_pool3d_out()"
    n = self.dim()
    for what, given in (("kernel_size", kernel_size), ("output_size", output_size)):
        if len(given) != rank:
            raise RuntimeError(f"fractional_max_pool{rank}d: {what} must either be a single Int or tuple of "
                               + ("Ints" if rank == 2 else "three Ints"))
    if n not in (rank + 1, rank + 2):
        raise RuntimeError(f"{name}: Expected {rank + 1}D or {rank + 2}D tensor, but got: {list(self._shape)}")
    for d in range(n - rank - 1, n):
        if self._shape[d] == 0:
            said = "fractional_max_pool2d()" if rank == 2 else "fractional_max_pool3d_out()"
            raise RuntimeError(f"{said}: Expected input to have non-zero size for non-batch dimensions, but got"
                               f"{list(self._shape)} with dimension {d} being empty.")
    for side, size, window, wanted in zip(_SIDES[rank], self._shape[n - rank:], kernel_size, output_size):
        if wanted + window - 1 > size:
            raise RuntimeError(f"{name}: pool {side} {window} too large relative to input {side} {size}")
    if not self._dtype.is_floating_point:
        raise NotImplementedError(f"\"fractional_max_pool{rank}d_out_frame\" not implemented for "
                                  f"'{self._dtype.scalar_name}'")
    if random_samples._dtype is not self._dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if random_samples.dim() != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {random_samples.dim()}")
    batch = self._shape[0] if n == rank + 2 else 1
    if random_samples._shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if random_samples._shape[1] != self._shape[n - rank - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if random_samples._shape[2] != rank:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {rank}; got {random_samples._shape[2]}.")
    shape = (*self._shape[:n - rank], *output_size)
    return [like(self, shape), like(self, shape, int64)]


def _starts(samples: Any, size: int, wanted: int, window: int) -> Any:
    """Where the windows of one dimension start, in the shape (batch, channels, wanted)."""
    if wanted == 1:
        return samples.new_full((*samples._shape, 1), size - window, dtype=int64)
    step = samples.new_full((), size - window) / samples.new_full((), wanted - 1)
    i = _arange.call((0, wanted - 1, 1, samples._dtype, None, samples._device, None))
    at = samples.unsqueeze(-1)
    found = ((i + at) * step).to(int64) - (at * step).to(int64)
    last = found.new_full((*samples._shape, 1), size - window)
    return registry.get("cat").call(((found, last), -1))


def starts_of(rank: int, self: Any, kernel_size: Ints, output_size: Ints, random_samples: Any) -> list[Any]:
    """Where the windows of each dimension start: (batch, channels, number of windows)."""
    sizes = self._shape[-rank:]
    samples = random_samples.narrow(0, 0, self._shape[0] if self.dim() == rank + 2 else 1)
    # The last number belongs to the first dimension when there are two, and to the last when there are three.
    return [_starts(samples.select(2, rank - 1 - d if rank == 2 else d), sizes[d], output_size[d], kernel_size[d])
            for d in range(rank)]


def pool_in_parts(rank: int, self: Any, kernel_size: Ints, output_size: Ints, random_samples: Any) -> tuple[Any, Any]:
    if 0 in output_size:
        shape = (*self._shape[:self.dim() - rank], *output_size)
        return self.new_zeros(shape) + self.sum() * 0, self.new_zeros(shape, dtype=int64)
    whole = self.unsqueeze(0) if self.dim() == rank + 1 else self
    batch, channels = whole._shape[:2]
    sizes = whole._shape[2:]
    lead = (batch, channels)
    place = None
    for d, start in enumerate(starts_of(rank, whole, kernel_size, output_size, random_samples)):
        inside = _arange.call((0, kernel_size[d], 1, int64, None, self._device, None))
        here = start.unsqueeze(-1) + inside
        spread = [*lead, *(1,) * (2 * rank)]
        spread[2 + d], spread[2 + rank + d] = output_size[d], kernel_size[d]
        here = here.view(tuple(spread)) * math.prod(sizes[d + 1:])
        place = here if place is None else place + here
    assert place is not None
    place = place.reshape((*lead, math.prod(output_size), math.prod(kernel_size)))
    flat = whole.reshape((*lead, 1, math.prod(sizes))).expand((*lead, math.prod(output_size), math.prod(sizes)))
    values, which = flat.gather(3, place).max(3)
    places = place.gather(3, which.unsqueeze(3)).squeeze(3)
    shape = (*self._shape[:self.dim() - rank], *output_size)
    return values.reshape(shape), places.reshape(shape)


def _back(rank: int, g: Any, indices: Any, shape: Ints) -> Any:
    lead = shape[:len(shape) - rank]
    flat = g.new_zeros((*lead, math.prod(shape[len(shape) - rank:])))
    rows = (*lead, math.prod(g._shape[len(shape) - rank:]))
    return flat.scatter_add(-1, indices.reshape(rows), g.reshape(rows)).view(shape)


def _declare(rank: int) -> Op:
    return op(f"fractional_max_pool{rank}d(Tensor self, int[{rank}] kernel_size, int[{rank}] output_size, Tensor "
              "random_samples) -> (Tensor result0, Tensor result1)",
              meta=lambda *args: _check(rank, *args), kernel=lambda *args: pool_in_parts(rank, *args), out=True,
              nondiff=("result1",), function=False, method=False,
              grad=dict(self=lambda g, result1, self_shape: _back(rank, g, result1, tuple(self_shape))))


FRACTIONAL_2D: Op = _declare(2)
FRACTIONAL_3D: Op = _declare(3)
