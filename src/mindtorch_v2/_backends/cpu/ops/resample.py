"""CPU lines of resampling, and of windows as columns (im2col).

Invariant: taps come from the row's file; the native kernel sums over them in the dtype of the input, two-byte floats
in float32. Bytes are summed in fixed point, and rounded to bytes after each dimension, as PyTorch does.
"""
from __future__ import annotations

from functools import lru_cache
from typing import Any

from .... import _native
from ...._dtype import float32, float64, uint8
from ...._ops.resample import BYTES, MODES, Taps, fixed_point, taps_of
from ...._tensor_base import numel
from ..kernels.dense import deliver, dense_as, is_last, last_as, operand, target, target_last, triple, wide_dtype
from ..lines import cpu, into
from ..numpy_view import np_view

Ints = tuple[int, ...]
_resample: Any = _native.resample
_resample_last: Any = _native.resample_last


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
    # Bytes get here to be copied from the nearest places, which float32 does exactly.
    dt = float32 if source._dtype is uint8 else wide_dtype(source._dtype)
    shape = source._shape
    geometry = (triple(inner, 1), triple(outer, 1),
                *_packed(mode, inner, outer, align, scales, source._dtype is float64), backward)
    if is_last(out) or (is_last(source) and not backward):
        y = target_last(out, dt)
        _resample_last(*operand(last_as(source, dt)), *operand(y), *shape[:2], *geometry)
    else:
        y = target(out, dt)
        _resample(*operand(dense_as(source, dt)), *operand(y), shape[0] * shape[1], *geometry)
    deliver(out, y)


def _bytes(out: Any, source: Any, taps: list[Taps]) -> None:
    import numpy

    found = np_view(source)
    for d in range(len(taps) - 1, -1, -1):
        places, weights, bits = fixed_point(taps[d])
        if len(places) == found.shape[d + 2]:
            continue  # whatever the factor was
        most = max(map(len, places))
        total: Any = (1 << bits) >> 1
        for k in range(most):
            where = [p[k] if k < len(p) else 0 for p in places]
            factors = numpy.array([w[k] if k < len(w) else 0 for w in weights], numpy.int32)
            total = total + found.take(where, d + 2) * factors.reshape((-1,) + (1,) * (found.ndim - d - 3))
        found = (total >> bits).clip(0, 255).astype(numpy.uint8)
    np_view(out)[...] = found


def _serve(name: str, mode: Any, aligned: bool) -> None:
    def options(rest: tuple[Any, ...]) -> tuple[bool, tuple[Any, ...]]:
        return (rest[0], rest[1:]) if aligned else (False, rest)

    def forward(out: Any, self: Any, output_size: Any, *rest: Any) -> None:
        align, scales = options(rest)
        sizes = self._shape[2:]
        if self._dtype is uint8 and name in BYTES:
            _bytes(out, self, taps_of(mode, sizes, tuple(output_size), align, scales, True))
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
