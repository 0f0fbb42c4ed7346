"""`torch.fft`: made from the rows `fft_<name>` when first asked for, and the frequencies of a transform's result.

Invariant: transforms are computed by their rows.
"""

from __future__ import annotations as _annotations

import math as _math
from typing import Any as _Any

from .._api import lazy_tables as _late
from .._dispatch.binding import need_all as _need_all
from .._dispatch.schema import parse as _parse
from .._tensor import Tensor as Tensor

_FREQUENCIES = {
    name: _parse(
        f"fft_{name}(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool requires_grad=False) -> Tensor"
    )
    for name in ("fftfreq", "rfftfreq")
}

__getattr__ = _late.namespace(__name__, "fft_")
__dir__ = _late.listing(__name__, "fft_")
__all__ = """fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift
ifftshift Tensor""".split()  # noqa: PLE0605


def _placed(name: str, out: _Any, dtype: _Any, device: _Any) -> tuple[_Any, _Any]:
    """Dtype and device of the result: those of `out` where it is given."""
    from .._dispatch.op import plain_name
    from .._tensor_base import TensorBase

    if out is None:
        return dtype, device
    if not isinstance(out, TensorBase):
        raise TypeError(f"fft_{name}(): argument 'out' must be Tensor, not {plain_name(out)}")
    return out.dtype, out.device


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

    _need_all(_FREQUENCIES["fftfreq"], n, d, dtype, layout, device, requires_grad)
    dtype, device = _placed("fftfreq", out, dtype, device)
    scale, dtype = _checked("fftfreq", n, d, dtype)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    high = arange((n + 1) // 2, dtype=dtype, layout=layout, device=device)
    low = arange(-(n // 2), 0, dtype=dtype, layout=layout, device=device)
    return _given(cat((high, low)) * scale, out, requires_grad)


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

    _need_all(_FREQUENCIES["rfftfreq"], n, d, dtype, layout, device, requires_grad)
    dtype, device = _placed("rfftfreq", out, dtype, device)
    scale, dtype = _checked("rfftfreq", n, d, dtype)
    # C++ divides towards zero.
    count = n // 2 + 1 if n >= 0 else -(-n // 2) + 1
    return _given(arange(count, dtype=dtype, layout=layout, device=device) * scale, out, requires_grad)


def _checked(name: str, n: int, d: float, dtype: _Any) -> tuple[float, _Any]:
    """What the numbers of periods are multiplied with, and the dtype they are made in."""
    from .. import get_default_dtype

    if not isinstance(n, int):
        raise TypeError(f"fft_{name}(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    dtype = get_default_dtype() if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    span = n * float(d)
    return (1.0 / span if span else _math.inf), dtype


def _given(value: _Any, out: _Any, requires_grad: bool) -> _Any:
    if out is not None:
        if out.numel() not in (0, value.numel()):
            from .. import arange

            arange(value.numel(), out=out)  # warns of the other size, in the words of ranges as PyTorch does
        return out.resize_(value.shape).copy_(value)
    return value.requires_grad_() if requires_grad else value
