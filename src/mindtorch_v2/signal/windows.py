"""`torch.signal.windows`: weights for the samples of a signal.

Invariant: every window is made of other operators, in PyTorch's order of operations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


class _Maker:
    """The checks and options that all windows share."""

    def __init__(self, name: str, M: int, dtype: Any, layout: Any, device: Any, requires_grad: bool) -> None:
        import mindtorch_v2 as torch

        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not None and layout is not torch.strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        self.dtype = torch.get_default_dtype() if dtype is None else dtype
        if self.dtype not in (torch.float32, torch.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {self.dtype}")
        if not isinstance(requires_grad, bool):
            raise TypeError(f"empty(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
        self.torch, self.device, self.requires_grad, self.M = torch, device, requires_grad, M

    def line(self, start: Any, end: Any) -> Any:
        return self.torch.linspace(start, end, self.M, dtype=self.dtype, device=self.device)

    def done(self, window: Any) -> Any:
        return window.requires_grad_() if self.requires_grad else window

    def none(self) -> Any:
        return self.done(self.torch.empty((0,), dtype=self.dtype, device=self.device))


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """exp(-|n - center| / tau)"""
    make = _Maker("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return make.none()
    middle = (M if not sym and M > 1 else M - 1) / 2.0 if center is None else center
    k = make.line(-middle * (1 / tau), (-middle + (M - 1)) * (1 / tau))
    return make.done((-k.abs()).exp())


def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Half a sine."""
    make = _Maker("cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return make.none()
    constant = math.pi / (M + 1 if not sym and M > 1 else M)
    return make.done(make.line(0.5 * constant, (0.5 + (M - 1)) * constant).sin())


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """The density of a normal distribution."""
    make = _Maker("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return make.none()
    start = -(M if not sym and M > 1 else M - 1) / 2.0
    constant = 1 / (std * math.sqrt(2))
    k = make.line(start * constant, (start + (M - 1)) * constant)
    return make.done((-(k**2)).exp())


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """A ratio of Bessel functions."""
    make = _Maker("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return make.none()
    if M == 1:
        return make.done(make.torch.ones((1,), dtype=make.dtype, device=device))
    torch = make.torch
    top = torch.tensor(beta, dtype=make.dtype, device=device)
    constant = 2.0 * beta / (M if not sym else M - 1)
    # Where the line ends is a number, which the host works out.
    near = torch.tensor(beta, dtype=make.dtype, device="cpu")
    end = torch.minimum(near, -near + (M - 1) * constant)
    k = make.line(-beta, end.item())
    return make.done(torch.i0((top * top - k**2).sqrt()) / torch.i0(top))


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """A sum of cosines with the weights `a`."""
    make = _Maker("general_cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return make.none()
    if M == 1:
        return make.done(make.torch.ones((1,), dtype=make.dtype, device=device))
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    torch = make.torch
    constant = 2 * math.pi / (M if not sym else M - 1)
    k = make.line(0, (M - 1) * constant)
    weights = torch.tensor([(-1) ** i * w for i, w in enumerate(a)], device=device, dtype=make.dtype)
    i = torch.arange(weights.shape[0], dtype=weights.dtype, device=weights.device)
    return make.done((weights.unsqueeze(-1) * (i.unsqueeze(-1) * k).cos()).sum(0))


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Any:
    """alpha - (1 - alpha) cos"""
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """`general_hamming` with alpha 0.54."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """`general_hamming` with alpha 0.5."""
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Three cosines."""
    _Maker("blackman", M, dtype, layout, device, requires_grad)
    return general_cosine(
        M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def nuttall(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Four cosines."""
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """A triangle."""
    make = _Maker("bartlett", M, dtype, layout, device, requires_grad)
    if M == 0:
        return make.none()
    if M == 1:
        return make.done(make.torch.ones((1,), dtype=make.dtype, device=device))
    constant = 2 / (M if not sym else M - 1)
    return make.done(1 - make.line(-1, -1 + (M - 1) * constant).abs())
