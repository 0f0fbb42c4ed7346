"""`torch.fft`: made from the rows `fft_<name>` when first asked for, and the frequencies of a transform's result.

Invariant: transforms are computed by their rows.
"""
from __future__ import annotations

from typing import Any

from .._ops import late

__getattr__ = late.namespace(__name__, "fft_")
__dir__ = late.listing(__name__, "fft_")


def fftfreq(n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
            requires_grad: bool = False) -> Any:
    """The frequencies of `fft` of n samples that are d apart."""
    from .. import arange, cat

    dtype, device = (out.dtype, out.device) if out is not None else (dtype, device)
    high = arange((n + 1) // 2, dtype=dtype or _default(), layout=layout, device=device)
    low = arange(-(n // 2), 0, dtype=dtype or _default(), layout=layout, device=device)
    return _given(cat((high, low)) * (1.0 / (n * d)), out, requires_grad)


def rfftfreq(n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Any:
    """The frequencies of `rfft` of n samples that are d apart."""
    from .. import arange

    dtype, device = (out.dtype, out.device) if out is not None else (dtype, device)
    return _given(arange(n // 2 + 1, dtype=dtype or _default(), layout=layout, device=device) * (1.0 / (n * d)), out,
                  requires_grad)


def _default() -> Any:
    from .. import get_default_dtype

    return get_default_dtype()


def _given(value: Any, out: Any, requires_grad: bool) -> Any:
    if out is not None:
        return out.resize_(value.shape).copy_(value)
    return value.requires_grad_() if requires_grad else value
