"""CPU lines of random counts: the algorithms of Hörmann (1993) for large expectations, inversion for small ones.

Invariant: every number comes from the generator the call was given, one at a time.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...._dtype import float64
from ..kernels.random import UNIFORM, draw
from ..lines import cpu, into
from ..numpy_view import np_view

Uniform = Callable[[], float]


def _uniform(like: Any, generator: Any) -> Uniform:
    """Numbers of [0, 1) in double precision, one for each call."""
    place = like.new_empty((1,), dtype=float64)
    seen = np_view(place)

    def one() -> float:
        draw(UNIFORM, place, generator, 0.0, 1.0)
        return float(seen[0])

    return one


# -- events -------------------------------------------------------------------------------------------------------
def _events(rate: float, uniform: Uniform) -> int:
    if not rate >= 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if rate == 0:
        return 0
    if rate < 10:
        count, product, end = 0, uniform(), math.exp(-rate)
        while product > end:
            count, product = count + 1, product * uniform()
        return count
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    accepted = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43) if us else -1
        if us >= 0.07 and v <= accepted:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        if math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b) <= (
                -rate + k * log_rate - math.lgamma(k + 1)):
            return k


def _poisson(out: Any, self: Any, generator: Any) -> None:
    import numpy as np

    uniform = _uniform(self, generator)
    found = [_events(rate, uniform) for rate in np_view(self).astype("float64").ravel().tolist()]
    np_view(out)[...] = np.array(found, "float64").reshape(out._shape)


# -- successes ----------------------------------------------------------------------------------------------------
_TAILS = (0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
          0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287)


def _tail(k: float) -> float:
    """What Stirling's formula leaves out of log(k!)."""
    if k <= 9:
        return _TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _by_inversion(count: float, prob: float, uniform: Uniform) -> float:
    log_other, waited, found = math.log1p(-prob), 0.0, 0
    while True:
        u = uniform()
        waited += math.ceil(math.log(u) / log_other) if u else math.inf
        if waited > count:
            return found
        found += 1


def _by_rejection(count: float, prob: float, uniform: Uniform) -> float:
    spread = math.sqrt(count * prob * (1 - prob))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    c = count * prob + 0.5
    accepted = 0.92 - 4.2 / b
    odds = prob / (1 - prob)
    alpha = (2.83 + 5.1 / b) * spread
    m = math.floor((count + 1) * prob)
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + c) if us else -1
        if us >= 0.07 and v <= accepted:
            return k
        if k < 0 or k > count:
            continue
        bound = ((m + 0.5) * math.log((m + 1) / (odds * (count - m + 1)))
                 + (count + 1) * math.log((count - m + 1) / (count - k + 1))
                 + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
                 + _tail(m) + _tail(count - m) - _tail(k) - _tail(count - k))
        if math.log(v * alpha / (a / (us * us) + b)) <= bound:
            return k


def _successes(count: float, prob: float, uniform: Uniform) -> float:
    if count <= 0 or prob <= 0:
        return 0
    if prob >= 1:
        return count
    if math.isnan(prob) or math.isnan(count):
        return math.nan
    rare = prob if prob <= 0.5 else 1 - prob
    found = (_by_rejection if count * rare >= 10 else _by_inversion)(count, rare, uniform)
    return found if prob <= 0.5 else count - found


def _binomial(out: Any, count: Any, prob: Any, generator: Any) -> None:
    import numpy as np

    uniform = _uniform(count, generator)
    n, p = (np.broadcast_to(np_view(t), out._shape).astype("float64").ravel().tolist() for t in (count, prob))
    found = [_successes(trials, chance, uniform) for trials, chance in zip(n, p)]
    np_view(out)[...] = np.array(found, "float64").reshape(out._shape)


cpu("poisson", into(_poisson))
cpu("binomial", into(_binomial))
