"""Resampling of images: nearest, linear, cubic, and anti-aliased: linear, cubic, Lanczos.

Invariant: every mode is a list of taps (place, weight) for each dimension, worked out here in the precision PyTorch
works it out in; forward sums over the taps, backward is the transpose, so each is the other's derivative.
"""
from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from .._dispatch.op import Op, Spec
from .._dtype import float32, float64, int32, int64, uint8
from .composites.formulas import in_format, narrow, wide
from .rules.base import KeptRule
from .rules.layout import in_format_of
from .table import composite, op

Ints = tuple[int, ...]
# For each result of one dimension: the places it reads and their weights.
Taps = tuple[list[list[int]], list[list[float]]]


def _rounder(double: bool) -> Callable[[float], float]:
    """PyTorch works places out in float32 unless the input is float64."""
    if double:
        return float
    single = struct.Struct("f")
    return lambda x: float(single.unpack(single.pack(x))[0])


def _scale(n: int, m: int, align: bool, scale: float | None, r: Callable[[float], float]) -> float:
    if align:
        return r((n - 1) / (m - 1)) if m > 1 else 0.0
    return r(1.0 / scale) if scale is not None and scale > 0 else r(n / m)


def nearest(n: int, m: int, align: bool, scale: float | None, double: bool) -> Taps:
    r = _rounder(double)
    step = _scale(n, m, False, scale, r)
    return [[min(int(r(i * step)), n - 1)] for i in range(m)], [[1.0]] * m


def nearest_2d(n: int, m: int, align: bool, scale: float | None, double: bool) -> Taps:
    """For images PyTorch does not ask the factor where sizes stay or double."""
    return nearest(n, m, align, None if m in (n, 2 * n) else scale, double)


def nearest_exact(n: int, m: int, align: bool, scale: float | None, double: bool) -> Taps:
    r = _rounder(double)
    step = _scale(n, m, False, scale, r)
    return [[min(int(r((i + 0.5) * step)), n - 1)] for i in range(m)], [[1.0]] * m


def linear(n: int, m: int, align: bool, scale: float | None, double: bool) -> Taps:
    if n == m:
        return [[i] for i in range(m)], [[1.0]] * m
    r = _rounder(double)
    step = _scale(n, m, align, scale, r)
    places, weights = [], []
    for i in range(m):
        at = r(step * i) if align else max(r(r(step * (i + 0.5)) - 0.5), 0.0)
        first = min(int(at), n - 1)
        second = min(max(r(at - first), 0.0), 1.0)
        places.append([first, min(first + 1, n - 1)])
        weights.append([r(1.0 - second), second])
    return places, weights


def _near(x: float, a: float) -> float:
    return ((a + 2) * x - (a + 3)) * x * x + 1


def _far(x: float, a: float) -> float:
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def cubic(n: int, m: int, align: bool, scale: float | None, double: bool) -> Taps:
    r = _rounder(double)
    step = _scale(n, m, align, scale, r)
    places, weights = [], []
    for i in range(m):
        at = r(step * i) if align else r(r(step * (i + 0.5)) - 0.5)
        first = min(int(at // 1), n - 1)
        t = min(max(r(at - first), 0.0), 1.0)
        places.append([min(max(first + k, 0), n - 1) for k in (-1, 0, 1, 2)])
        weights.append([r(_far(t + 1, -0.75)), r(_near(t, -0.75)), r(_near(1 - t, -0.75)), r(_far(2 - t, -0.75))])
    return places, weights


def _smooth(reach: int, kernel: Callable[[float], float]) -> Callable[[int, int, bool, float | None, bool], Taps]:
    """Anti-aliased: shrinking widens the window that a result reads."""

    def taps(n: int, m: int, align: bool, scale: float | None, double: bool) -> Taps:
        r = _rounder(double)
        step = _scale(n, m, align, scale, r)
        support = reach * 0.5 * max(step, 1.0)
        inverse = 1.0 / step if step >= 1.0 else 1.0
        places: list[list[int]] = []
        weights: list[list[float]] = []
        for i in range(m):
            centre = step * (i + 0.5)
            low = max(int(centre - support + 0.5), 0)
            high = min(int(centre + support + 0.5), n)
            values = [kernel((j - centre + 0.5) * inverse) for j in range(low, high)]
            total = sum(values)
            places.append(list(range(low, high)))
            weights.append([r(v / total) if total else 0.0 for v in values])
        most = max(map(len, places), default=1)
        for where, what in zip(places, weights):
            where += [0] * (most - len(where))
            what += [0.0] * (most - len(what))
        return places, weights

    return taps


def _tent(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _bump(x: float) -> float:
    x = abs(x)
    return _near(x, -0.5) if x < 1 else _far(x, -0.5) if x < 2 else 0.0


def _sinc(x: float) -> float:
    return math.sin(math.pi * x) / (math.pi * x) if x else 1.0


def _lanczos(x: float) -> float:
    return _sinc(x) * _sinc(x / 3) if -3 <= x < 3 else 0.0


smooth_linear = _smooth(2, _tent)
smooth_cubic = _smooth(4, _bump)
smooth_lanczos = _smooth(6, _lanczos)


def taps_of(mode: Any, sizes: Ints, results: Ints, align: bool, scales: tuple[float | None, ...],
            double: bool) -> list[Taps]:
    return [mode(n, m, align, s, double) for n, m, s in zip(sizes, results, scales)]


def merged(taps: Taps) -> Taps:
    """Taps that read one place, at an edge, as one."""
    places, weights = [], []
    for where, what in zip(*taps):
        found: dict[int, float] = {}
        for p, w in zip(where, what):
            found[p] = found.get(p, 0.0) + w
        places.append(list(found))
        weights.append(list(found.values()))
    return places, weights


def fixed_point(taps: Taps) -> tuple[list[list[int]], list[list[int]], int]:
    """The places and weights for bytes: integers of 16 bits, with as many bits behind the point as they hold."""
    places, weights = merged(taps)
    largest = max((w for row in weights for w in row), default=0.0)
    bits = 0
    while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    return places, [[int(w * (1 << bits) + (0.5 if w >= 0 else -0.5)) for w in row] for row in weights], bits


# -- on any device ----------------------------------------------------------------------------------------------------
def _forward(self: Any, taps: list[Taps]) -> Any:
    from .. import tensor

    out = wide(self)
    for d, (places, weights) in enumerate(taps):
        total: Any = None
        for k in range(len(places[0])):
            where = tensor([p[k] for p in places], dtype=int64, device=self._device)
            part = out.index_select(d + 2, where)
            if any(w[k] != 1.0 for w in weights):
                factors = tensor([w[k] for w in weights], dtype=out._dtype, device=self._device)
                part = part * factors.reshape((-1,) + (1,) * (len(self._shape) - d - 3))
            total = part if total is None else total + part
        out = total
    return in_format(narrow(out, self), self)


def _forward_bytes(self: Any, mode: Any, results: Ints, align: bool, scales: tuple[float | None, ...]) -> Any:
    """In fixed point, rounded to bytes after each dimension, as PyTorch does it."""
    from .. import tensor

    out = self
    for d in range(len(results) - 1, -1, -1):
        size = out._shape[d + 2]
        if size == results[d]:
            continue  # whatever the factor was
        places, weights, bits = fixed_point(taps_of(mode, (size,), (results[d],), align, (scales[d],), True)[0])
        total: Any = 1 << (bits - 1)
        for k in range(max(map(len, places))):
            where = tensor([p[k] if k < len(p) else 0 for p in places], dtype=int64, device=self._device)
            factors = tensor([w[k] if k < len(w) else 0 for w in weights], dtype=int32, device=self._device)
            shaped = factors.reshape((-1,) + (1,) * (len(self._shape) - d - 3))
            total = out.index_select(d + 2, where).to(int32) * shaped + total
        out = (total >> bits).clamp(0, 255).to(uint8)
    return in_format(out.clone() if out is self else out, self)


def _backward(grad: Any, sizes: Ints, taps: list[Taps]) -> Any:
    from .. import tensor

    out = wide(grad)
    for d, (places, weights) in enumerate(taps):
        total = out.new_zeros((*out._shape[:d + 2], sizes[d], *out._shape[d + 3:]))
        for k in range(len(places[0])):
            where = tensor([p[k] for p in places], dtype=int64, device=grad._device)
            factors = tensor([w[k] for w in weights], dtype=out._dtype, device=grad._device)
            total = total.index_add(d + 2, where, out * factors.reshape((-1,) + (1,) * (len(grad._shape) - d - 3)))
        out = total
    return in_format(narrow(out, grad), grad)


_SIDES = {1: "W", 2: "HW", 3: "DHW"}
BYTES = frozenset({"upsample_bilinear2d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
                    "_upsample_lanczos2d_aa"})
MODES: dict[str, tuple[int, Any, bool]] = {}


def _check(given: Ints, output_size: Ints, rank: int) -> Ints:
    """The size of the result; `given` is that of the input."""
    if len(output_size) != rank:
        raise RuntimeError(f"It is expected output_size equals to {rank}, but got size {len(output_size)}")
    if len(given) != rank + 2:
        raise RuntimeError(f"It is expected input_size equals to {rank + 2}, but got size {len(given)}")
    sizes = given[2:]
    if any(n <= 0 for n in (*sizes, *output_size)):
        named = [", ".join(f"{side}: {n}" for side, n in zip(_SIDES[rank], values)) for values in (sizes, output_size)]
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({named[0]})"
                           f"{' and' if rank == 1 else ''} output ({named[1]})")
    return (*given[:2], *output_size)


def _declare(name: str, rank: int, mode: Any, aligned: bool) -> None:
    MODES[name] = (rank, mode, aligned)
    sides = [""] if rank == 1 else ["_h", "_w"] if rank == 2 else ["_d", "_h", "_w"]
    scales = ", ".join(f"float? scales{side}=None" for side in sides)
    how = f"{'bool align_corners, ' if aligned else ''}{scales}"
    whole = mode in (nearest, nearest_2d, nearest_exact) or name in BYTES

    def options(rest: tuple[Any, ...]) -> tuple[bool, tuple[Any, ...]]:
        return (rest[0], rest[1:]) if aligned else (False, rest)

    def meta(self: Any, output_size: Ints, *rest: Any) -> Spec:
        shape = _check(self._shape, output_size, rank)
        if 0 in self._shape[1:]:
            raise RuntimeError(f"Non-empty {rank + 2}D data tensor expected but got a tensor with sizes "
                               f"{list(self._shape)}")
        if name.endswith("_aa") and self._device.type == "cpu" and self._dtype not in (float32, float64, uint8):
            raise NotImplementedError("\"compute_index_ranges_weights\" not implemented for "
                                      f"'{self._dtype.scalar_name}'")
        if not self._dtype.is_floating_point and not (whole and self._dtype is uint8):
            raise NotImplementedError(f"\"compute_indices_weights_{mode.__name__}\" not implemented for "
                                      f"'{self._dtype.scalar_name}'")
        return in_format_of(self, shape)

    def meta_backward(grad_output: Any, output_size: Ints, input_size: Ints, *rest: Any) -> Spec:
        shape = _check(tuple(input_size), output_size, rank)
        got = grad_output._shape
        if len(got) != rank + 2:
            raise RuntimeError(f"Expected grad_output to be a tensor of dimension {rank + 2} but got: dimension "
                               f"{len(got)}")
        for d, n in enumerate(shape):
            if got[d] != n:
                raise RuntimeError("Expected grad_output to have the same shape as output; "
                                   f"output.size({d}) = {n} but got grad_output.size({d}) = {got[d]}")
        return in_format_of(grad_output, tuple(input_size))

    def kernel(self: Any, output_size: Ints, *rest: Any) -> Any:
        align, factors = options(rest)
        if self._dtype is uint8 and name in BYTES:
            return _forward_bytes(self, mode, output_size, align, factors)
        return _forward(self, taps_of(mode, self._shape[2:], output_size, align, factors, self._dtype is float64))

    def kernel_backward(grad_output: Any, output_size: Ints, input_size: Ints, *rest: Any) -> Any:
        align, factors = options(rest)
        sizes = tuple(input_size[2:])
        return _backward(grad_output, sizes,
                         taps_of(mode, sizes, output_size, align, factors, grad_output._dtype is float64))

    first = "align_corners, " if aligned else ""
    named = first + ", ".join(f"scales{side}" for side in sides)
    space: dict[str, Any] = {}
    backward: Op = op(f"{name}_backward(Tensor grad_output, SymInt[{rank}] output_size, SymInt[{rank + 2}] input_size, "
                      f"{how}) -> Tensor", meta=meta_backward, kernel=kernel_backward, function=False, method=False,
                      out=True, grad=dict(grad_output=_formula(f"lambda g, output_size, {named}: "
                                                     f"call((g, output_size, {named}))", space)))
    forward: Op = op(f"{name}(Tensor self, SymInt[{rank}] output_size, {how}) -> Tensor", meta=KeptRule(meta),
                     kernel=kernel, function=False, method=False, out=True,
                     grad=dict(self=_formula(f"lambda g, self_shape, output_size, {named}: call((g, output_size, "
                                             f"tuple(self_shape), {named}))", {"call": backward.call})))
    space["call"] = forward.call

    def by_factors(input: Any, output_size: Ints | None, *rest: Any) -> Any:
        factors = rest[-1]
        if (output_size is None) == (factors is None):
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        if output_size is not None:
            _expect_spatial(input, "output_size", output_size)
            return forward.call((input, output_size, *rest[:-1], *(None,) * rank))
        _expect_spatial(input, "scale_factors", factors)
        wanted = [n * f for n, f in zip(input._shape[2:], factors)]
        if not all(-(2.0**63) <= n < 2.0**63 for n in wanted):
            raise RuntimeError("value cannot be converted to type int64_t without overflow")
        sizes = tuple(int(n) for n in wanted)
        return forward.call((input, sizes, *rest[:-1], *factors))

    composite(f"{name}.vec(Tensor input, SymInt[]? output_size, {'bool align_corners, ' if aligned else ''}float[]? "
              "scale_factors) -> Tensor", by_factors, function=False, method=False)


def _expect_spatial(input: Any, name: str, given: Any) -> None:
    """One size, or factor, for each dimension behind the channels."""
    if len(given) != input.dim() - 2:
        raise RuntimeError(f"Expected static_cast<int64_t>({name}->size()) == spatial_dimensions to be true, but got "
                           "false.  (Could this error message be improved?  If so, please report an enhancement "
                           "request to PyTorch.)")


def _formula(text: str, space: dict[str, Any]) -> Any:
    """A formula names what it needs by its parameters, which differ with the rank."""
    return eval(text, space)


for _rank in (1, 2, 3):
    _declare(f"upsample_nearest{_rank}d", _rank, nearest_2d if _rank == 2 else nearest, False)
    _declare(f"_upsample_nearest_exact{_rank}d", _rank, nearest_exact, False)
_declare("upsample_linear1d", 1, linear, True)
_declare("upsample_bilinear2d", 2, linear, True)
_declare("upsample_trilinear3d", 3, linear, True)
_declare("upsample_bicubic2d", 2, cubic, True)
_declare("_upsample_bilinear2d_aa", 2, smooth_linear, True)
_declare("_upsample_bicubic2d_aa", 2, smooth_cubic, True)
_declare("_upsample_lanczos2d_aa", 2, smooth_lanczos, True)
