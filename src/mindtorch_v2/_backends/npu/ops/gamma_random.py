"""NPU lines of the gamma family: the vendor draws uniform and normal numbers, the rest is composed of them."""
from __future__ import annotations

from typing import Any

from ...._dtype import float64
from ...common.gamma_slopes import beta_slope, gamma_slope
from .. import creation
from ..lines import into, npu
from .rejection import gamma


def _functions() -> Any:
    import mindtorch_v2

    return mindtorch_v2


def _standard_gamma(out: Any, self: Any, generator: Any) -> None:
    creation.copy(out, gamma(self, generator, "_standard_gamma"))


def _dirichlet(out: Any, self: Any, generator: Any) -> None:
    """Gamma numbers by their sum; the limits keep them inside, as PyTorch does."""
    drawn = gamma(self, generator, "_sample_dirichlet")
    low, high = (2.0**-1022, 1 - 2.0**-53) if self._dtype is float64 else (2.0**-126, 1 - 2.0**-24)
    creation.copy(out, (drawn / drawn.sum(-1, keepdim=True)).clamp(low, high))


def _gamma_grad(out: Any, self: Any, output: Any) -> None:
    given = (t.to(out._device).expand(out._shape) for t in (self, output))
    creation.copy(out, gamma_slope(_functions(), *given))


def _dirichlet_grad(out: Any, x: Any, alpha: Any, total: Any) -> None:
    given = (t.to(out._device).expand(out._shape) for t in (x, alpha, total))
    creation.copy(out, beta_slope(_functions(), *given))


npu("_standard_gamma", into(_standard_gamma))
npu("_sample_dirichlet", into(_dirichlet))
npu("_standard_gamma_grad", into(_gamma_grad))
npu("_dirichlet_grad", into(_dirichlet_grad))
