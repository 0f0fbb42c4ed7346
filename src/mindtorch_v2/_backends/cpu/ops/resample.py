"""CPU lines of resampling, and of windows as columns (im2col).

Invariant: taps come from the row's file; the native kernel sums over them in the dtype of the input, two-byte floats
in float32. Bytes are summed in fixed point, and rounded to bytes after each dimension, as PyTorch does.
"""
from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from .... import _native
from ...._dtype import float64, uint8
from ...._ops.resample import BYTES, MODES, fixed_point, taps_of
from ...._tensor_base import numel
from ..kernels.dense import (
    deliver,
    dense,
    dense_as,
    fresh,
    fresh_last,
    is_last,
    last_as,
    operand,
    target,
    target_last,
    triple,
)
from ..lines import cpu, into

Ints = tuple[int, ...]
_resample: Any = _native.resample
_resample_bytes: Any = _native.resample_bytes


@lru_cache(maxsize=16)
def _packed(mode: Any, sizes: Ints, results: Ints, align: bool, scales: tuple[float | None, ...],
            double: bool) -> tuple[Ints, Ints, tuple[float, ...]]:
    """Numbers of taps, places and weights of three dimensions. Networks ask for the same few again and again."""
    taps = taps_of(mode, sizes, results, align, scales, double)
    missing = 3 - len(taps)
    places: list[int] = [0] * missing
    weights: list[float] = [1.0] * missing
    for where, what in taps:
        for p, w in zip(where, what):
            places += p
            weights += w
    return triple(tuple(len(where[0]) for where, _ in taps), 1), tuple(places), tuple(weights)


def _run(out: Any, source: Any, mode: Any, inner: Ints, outer: Ints, align: bool, scales: tuple[float | None, ...],
         backward: bool) -> None:
    if numel(out) == 0:
        return
    dt = source._dtype
    images, channels = source._shape[:2]
    geometry = (triple(inner, 1), triple(outer, 1),
                *_packed(mode, inner, outer, align, scales, dt is float64), backward)
    if is_last(out) or (is_last(source) and not backward):
        y = target_last(out, dt)
        _resample(*operand(last_as(source, dt)), *operand(y), images, channels, *geometry)
    else:
        y = target(out, dt)
        _resample(*operand(dense_as(source, dt)), *operand(y), images * channels, 1, *geometry)
    deliver(out, y)


@lru_cache(maxsize=16)
def _packed_bytes(mode: Any, size: int, results: int, align: bool,
                  scale: float | None) -> tuple[Ints, Ints, Ints, int]:
    """Numbers of taps, places, weights and their bits of one dimension."""
    places, weights, bits = fixed_point(taps_of(mode, (size,), (results,), align, (scale,), True)[0])
    counts = tuple(len(p) for p in places)
    return counts, tuple(p for row in places for p in row), tuple(w for row in weights for w in row), bits


def _bytes(out: Any, source: Any, mode: Any, results: Ints, align: bool, scales: tuple[float | None, ...]) -> None:
    if numel(out) == 0:
        return
    last = is_last(out) or is_last(source)
    found = last_as(source, uint8) if last else dense(source)
    for d in range(len(results) - 1, -1, -1):
        before = found._shape
        size, wanted = before[d + 2], results[d]
        if size == wanted:
            continue  # whatever the factor was
        after = (*before[:d + 2], wanted, *before[d + 3:])
        outer = math.prod(before[:d + 2]) if not last else math.prod((before[0], *before[2:d + 2]))
        rest = math.prod(before[d + 3:]) * (before[1] if last else 1)
        made = fresh_last(after, uint8) if last else fresh(after, uint8)
        _resample_bytes(*operand(found), *operand(made), outer, size, rest, wanted,
                        *_packed_bytes(mode, size, wanted, align, scales[d]))
        found = made
    deliver(out, found)


def _serve(name: str, mode: Any, aligned: bool) -> None:
    def options(rest: tuple[Any, ...]) -> tuple[bool, tuple[Any, ...]]:
        return (rest[0], rest[1:]) if aligned else (False, rest)

    def forward(out: Any, self: Any, output_size: Any, *rest: Any) -> None:
        align, scales = options(rest)
        sizes = self._shape[2:]
        if self._dtype is uint8 and name in BYTES:
            _bytes(out, self, mode, tuple(output_size), align, scales)
            return
        _run(out, self, mode, sizes, tuple(output_size), align, scales, False)

    def backward(out: Any, grad_output: Any, output_size: Any, input_size: Any, *rest: Any) -> None:
        align, scales = options(rest)
        sizes = tuple(input_size[2:])
        _run(out, grad_output, mode, sizes, tuple(output_size), align, scales, True)

    cpu(name, into(forward))
    cpu(f"{name}_backward", into(backward))


for _name, (_rank, _mode, _aligned) in MODES.items():
    _serve(_name, _mode, _aligned)
