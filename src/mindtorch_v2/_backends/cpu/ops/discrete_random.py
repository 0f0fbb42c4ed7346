"""CPU lines of random counts."""
from __future__ import annotations

from typing import Any

from ..kernels.random import BINOMIAL, POISSON, draw_given
from ..lines import cpu, into


def _poisson(out: Any, self: Any, generator: Any) -> None:
    draw_given(POISSON, out, generator, self, self)


def _binomial(out: Any, count: Any, prob: Any, generator: Any) -> None:
    draw_given(BINOMIAL, out, generator, count, prob)


cpu("poisson", into(_poisson))
cpu("binomial", into(_binomial))
