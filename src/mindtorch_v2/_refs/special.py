"""`torch._refs.special`: references of special functions."""

from __future__ import annotations

import mindtorch_v2 as torch

from ._names import finder

_NAMES = """
    bessel_j0 bessel_j1 entr erfcx expit i0e i1 i1e log_ndtr logit log_softmax multigammaln ndtr ndtri softmax
    spherical_bessel_j0 xlog1py zeta
    """

__getattr__ = finder("_refs.special", _NAMES, lambda: torch.special)
__all__ = _NAMES.split()  # noqa: PLE0605
