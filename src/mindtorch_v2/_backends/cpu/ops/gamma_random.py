"""CPU lines of the gamma family."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ...._dtype import float64
from ...common.gamma_slopes import beta_slope, gamma_slope
from ...common.runtime import empty_contiguous
from ..kernels.random import GAMMA, draw_given
from ..lines import cpu, into
from ..numpy_view import np_view


def _gamma(out: Any, self: Any, generator: Any) -> None:
    draw_given(GAMMA, out, generator, self, self)


def _dirichlet(out: Any, self: Any, generator: Any) -> None:
    """Gamma numbers by their sum. They are drawn in double precision, in which few of them vanish."""
    import numpy as np

    drawn = empty_contiguous(out._shape, float64, out._device)
    draw_given(GAMMA, drawn, generator, self, self)
    whole: Any = drawn
    whole = whole.sum(-1, keepdim=True)
    place = np_view(out)
    kind = place.dtype.type
    share = (np_view(drawn) / np_view(whole)).astype(kind)
    place[...] = np.clip(share, np.finfo(kind).tiny, np.nextafter(kind(1), kind(0)))


def _functions() -> Any:
    import numpy as np
    from scipy.special import digamma

    names = "exp isnan log ones_like sqrt where zeros_like".split()
    return SimpleNamespace(digamma=digamma, **{name: getattr(np, name) for name in names})


def _gamma_grad(out: Any, self: Any, output: Any) -> None:
    import numpy as np

    with np.errstate(all="ignore"):
        np_view(out)[...] = gamma_slope(_functions(), *(np_view(v).astype(np.float64) for v in (self, output)))


def _dirichlet_grad(out: Any, x: Any, alpha: Any, total: Any) -> None:
    import numpy as np

    given = np.broadcast_arrays(*(np_view(v).astype(np.float64) for v in (x, alpha, total)))
    with np.errstate(all="ignore"):
        np_view(out)[...] = beta_slope(_functions(), *given)


cpu("_standard_gamma", into(_gamma))
cpu("_standard_gamma_grad", into(_gamma_grad))
cpu("_sample_dirichlet", into(_dirichlet))
cpu("_dirichlet_grad", into(_dirichlet_grad))
