"""NPU lines of random counts, composed of the uniform numbers that the vendor draws."""
from __future__ import annotations

from typing import Any

from .. import creation
from ..lines import into, npu
from .rejection import binomial, poisson, precise


def _poisson(out: Any, self: Any, generator: Any) -> None:
    creation.copy(out, poisson(self.to(precise(self._dtype)), generator))


def _binomial(out: Any, count: Any, prob: Any, generator: Any) -> None:
    creation.copy(out, binomial(count, prob, generator))


npu("poisson", into(_poisson))
npu("binomial", into(_binomial))
