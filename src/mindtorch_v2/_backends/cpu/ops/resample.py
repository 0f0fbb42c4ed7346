"""CPU lines of resampling, and of columns of windows.

Invariant: taps come from the row's file; the native kernel sums over them in the dtype of the input, two-byte floats
and bytes in float32.
"""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dtype import float32, float64, uint8
from ...._ops.resample import MODES, Taps, taps_of
from ...._tensor_base import numel
from ..kernels.dense import deliver, dense_as, operand, target, triple, wide_dtype
from ..lines import cpu, into
from ..numpy_view import np_view

Ints = tuple[int, ...]


def _packed(taps: list[Taps]) -> tuple[Ints, Ints, tuple[float, ...]]:
    """Numbers of taps, places and weights of three dimensions."""
    missing = 3 - len(taps)
    places: list[int] = [0] * missing
    weights: list[float] = [1.0] * missing
    for where, what in taps:
        for p, w in zip(where, what):
            places += p
            weights += w
    return triple(tuple(len(where[0]) for where, _ in taps), 1), tuple(places), tuple(weights)


def _run(out: Any, source: Any, inner: Ints, outer: Ints, taps: list[Taps], backward: bool) -> None:
    if numel(out) == 0:
        return
    dt = float32 if source._dtype is uint8 else wide_dtype(source._dtype)
    y = target(out, dt)
    _native.resample(*operand(dense_as(source, dt)), *operand(y), source._shape[0] * source._shape[1], triple(inner, 1),
                     triple(outer, 1), *_packed(taps), backward)
    if out._dtype is uint8:
        values = np_view(y)
        values[...] = values.round().clip(0, 255)
    deliver(out, y)


def _serve(name: str, mode: Any, aligned: bool) -> None:
    def options(rest: tuple[Any, ...]) -> tuple[bool, tuple[Any, ...]]:
        return (rest[0], rest[1:]) if aligned else (False, rest)

    def forward(out: Any, self: Any, output_size: Ints, *rest: Any) -> None:
        align, scales = options(rest)
        sizes = self._shape[2:]
        _run(out, self, sizes, tuple(output_size),
             taps_of(mode, sizes, output_size, align, scales, self._dtype is float64), False)

    def backward(out: Any, grad_output: Any, output_size: Ints, input_size: Ints, *rest: Any) -> None:
        align, scales = options(rest)
        sizes = tuple(input_size[2:])
        _run(out, grad_output, sizes, tuple(output_size),
             taps_of(mode, sizes, output_size, align, scales, grad_output._dtype is float64), True)

    cpu(name, into(forward))
    cpu(f"{name}_backward", into(backward))


for _name, (_rank, _mode, _aligned) in MODES.items():
    _serve(_name, _mode, _aligned)
