"""`torch.fft`: made from the rows `fft_<name>` when first asked for, and the frequencies of a transform's result.

Invariant: transforms are computed by their rows.
"""

from __future__ import annotations as _annotations  # noqa: F401 (not a public name)

from typing import Any as _Any

from .._api import lazy_tables as _late

__getattr__ = _late.namespace(__name__, "fft_")
__dir__ = _late.listing(__name__, "fft_")


def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: _Any = None,
    dtype: _Any = None,
    layout: _Any = None,
    device: _Any = None,
    requires_grad: bool = False,
) -> _Any:
    """The frequencies of `fft` of n samples that are d apart."""
    from .. import arange, cat

    dtype, device = (out.dtype, out.device) if out is not None else (dtype, device)
    high = arange((n + 1) // 2, dtype=dtype or _default(), layout=layout, device=device)
    low = arange(-(n // 2), 0, dtype=dtype or _default(), layout=layout, device=device)
    return _given(cat((high, low)) * (1.0 / (n * d)), out, requires_grad)


def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: _Any = None,
    dtype: _Any = None,
    layout: _Any = None,
    device: _Any = None,
    requires_grad: bool = False,
) -> _Any:
    """The frequencies of `rfft` of n samples that are d apart."""
    from .. import arange

    dtype, device = (out.dtype, out.device) if out is not None else (dtype, device)
    return _given(
        arange(n // 2 + 1, dtype=dtype or _default(), layout=layout, device=device) * (1.0 / (n * d)),
        out,
        requires_grad,
    )


def _default() -> _Any:
    from .. import get_default_dtype

    return get_default_dtype()


def _given(value: _Any, out: _Any, requires_grad: bool) -> _Any:
    if out is not None:
        return out.resize_(value.shape).copy_(value)
    return value.requires_grad_() if requires_grad else value
