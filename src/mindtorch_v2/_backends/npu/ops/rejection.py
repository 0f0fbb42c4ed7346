"""Random numbers that are drawn by rejection, on the device: gamma, Poisson and binomial.

Invariant: nothing waits for the device. Every element takes part in a fixed number of rounds and keeps the first
proposal that was accepted; the rounds are so many that one without any is less likely than one in 10**12, and then the
distribution's centre stands for it. Numbers are drawn in float32, or in float64 for results of that type.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...._dtype import dtype, float32, float64
from ...._strides import contiguous_strides
from ...common.runtime import empty
from .random import normal, uniform

# Least acceptance of a proposal: 0.95 for gamma, 0.75 for counts.
_GAMMA_ROUNDS = 12
_COUNT_ROUNDS = 24
# Below this mean events are counted one by one; more than 64 of them have a chance of less than 10**-28.
_FEW = 10.0
_MOST_EVENTS = 64


def precise(dt: dtype) -> dtype:
    """The type that numbers of a dtype are drawn in."""
    return float64 if dt is float64 else float32


class Source:
    """Noise in the shape of a parameter."""

    def __init__(self, like: Any, generator: Any, name: str) -> None:
        self.like, self.generator, self.name = like, generator, name

    def _new(self) -> Any:
        t = self.like
        return empty(t._shape, contiguous_strides(t._shape), t._dtype, t._device)

    def uniform(self) -> Any:
        """In (0, 1]: a logarithm may be taken."""
        t = self._new()
        uniform(t, 0.0, 1.0, self.generator, self.name)
        return 1 - t

    def normal(self) -> Any:
        t = self._new()
        normal(t, 0.0, 1.0, self.generator, self.name)
        return t


def first_accepted(start: Any, rounds: int, propose: Callable[[], tuple[Any, Any]]) -> Any:
    """`start`, or the first proposal that came with a yes."""
    result, waiting = start, None
    for _ in range(rounds):
        proposal, accepted = propose()
        take = accepted if waiting is None else accepted & waiting
        result = proposal.where(take, result)
        waiting = ~accepted if waiting is None else waiting & ~accepted
    return result


def gamma(alpha: Any, generator: Any, name: str) -> Any:
    """Marsaglia and Tsang (2000): a cube of a normal number, squeezed; below 1 a power of a uniform one corrects it."""
    source = Source(alpha, generator, name)
    small = alpha < 1
    d = (alpha + 1).where(small, alpha) - 1 / 3
    c = (9 * d).rsqrt()

    def propose() -> tuple[Any, Any]:
        x, u = source.normal(), source.uniform()
        v = 1 + c * x
        v = v * v * v
        # Where v is not positive its logarithm is no number, and no number is less than anything.
        return d * v, (v > 0) & (u.log() < 0.5 * x * x + d * (1 - v + v.log()))

    drawn = first_accepted(d, _GAMMA_ROUNDS, propose)
    drawn = (drawn * source.uniform().pow(1 / alpha)).where(small, drawn)
    tiny = 2.0**-1022 if alpha._dtype is float64 else 2.0**-126
    return drawn.clamp_min(tiny)


def _transformed(source: Source, centre: Any, a: Any, b: Any, surely: Any, accepted: Callable[[Any, Any, Any], Any],
                 start: Any) -> Any:
    """Hoermann's transformed rejection of counts: a ratio of uniforms, most of it inside a box that needs no test."""

    def propose() -> tuple[Any, Any]:
        u, v = source.uniform() - 0.5, source.uniform()
        us = 0.5 - u.abs()
        k = ((2 * a / us + b) * u + centre).floor()
        inside = (us >= 0.07) & (v <= surely)
        return k, (k >= 0) & (inside | (((us >= 0.013) | (v <= us)) & accepted(k, us, v)))

    return first_accepted(start, _COUNT_ROUNDS, propose)


def poisson(rate: Any, generator: Any) -> Any:
    """Few events: uniform numbers are multiplied until they fall below exp(-rate). Many: transformed rejection."""
    source = Source(rate, generator, "poisson")
    floor = (-rate).exp()
    product, few = source.uniform(), rate * 0
    for _ in range(_MOST_EVENTS):
        few = few + (product > floor)
        product = product * source.uniform()
    lam = rate.clamp_min(_FEW)
    log_rate = lam.log()
    b = 0.931 + 2.53 * lam.sqrt()
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)

    def accepted(k: Any, us: Any, v: Any) -> Any:
        return (v * inverse / (a / (us * us) + b)).log() <= k * log_rate - lam - (k + 1).lgamma()

    many = _transformed(source, lam + 0.43, a, b, 0.9277 - 3.6224 / (b - 2), accepted, lam.floor())
    return few.where(rate < _FEW, many)


def _stirling(k: Any) -> Any:
    """What Stirling's formula of the logarithm of k! leaves out."""
    x = k + 1
    squared = x * x
    return (1 / 12 - (1 / 360 - 1 / 1260 / squared) / squared) / x


def binomial(count: Any, prob: Any, generator: Any) -> Any:
    """Few successes: the trials until each are added up. Many: transformed rejection. Of a likely success the failures
    are counted."""
    flipped = prob > 0.5
    p = (1 - prob).where(flipped, prob)
    n = count + p * 0
    source = Source(n, generator, "binomial")
    mean = n * p
    # Trials to the next success; of a chance of 0 there is none.
    scale = 1 / (-p).log1p()
    trials, few = (source.uniform().log() * scale).ceil().clamp_min(1), mean * 0
    for _ in range(_MOST_EVENTS):
        few = few + (trials <= n)
        trials = trials + (source.uniform().log() * scale).ceil().clamp_min(1)
    few = few.where(p > 0, mean * 0)

    crowd, q = n.clamp_min(2 * _FEW), (p.clamp_min(1e-30))
    q = q.where(mean >= _FEW, q * 0 + 0.5)
    deviation = (crowd * q * (1 - q)).sqrt()
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * q
    odds = q / (1 - q)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = ((crowd + 1) * q).floor()
    at_mode = (mode + 0.5) * ((mode + 1) / (odds * (crowd - mode + 1))).log()
    at_mode = at_mode + _stirling(mode) + _stirling(crowd - mode)

    def accepted(k: Any, us: Any, v: Any) -> Any:
        bound = (at_mode + (crowd + 1) * ((crowd - mode + 1) / (crowd - k + 1)).log()
                 + (k + 0.5) * (odds * (crowd - k + 1) / (k + 1)).log() - _stirling(k) - _stirling(crowd - k))
        return (k <= crowd) & ((v * alpha / (a / (us * us) + b)).log() <= bound)

    many = _transformed(source, crowd * q + 0.5, a, b, 0.92 - 4.2 / b, accepted, mode)
    many = many.minimum(crowd)
    drawn = few.where(mean < _FEW, many)
    drawn = (n - drawn).where(flipped, drawn)
    # No number among the parameters is none in the result, and a chance beyond [0, 1] has none.
    legal = (count >= 0) & (prob >= 0) & (prob <= 1)
    return drawn.where(legal, drawn * 0 + math.nan)
