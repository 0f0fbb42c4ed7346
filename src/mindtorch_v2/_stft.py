"""Short-time Fourier transforms, as `torch.functional` shows them.

Invariant: everything here is Python over rows; arguments are refused with PyTorch's texts before anything is computed.
"""

from __future__ import annotations

import warnings
from typing import Any

from ._api import lazy_tables
from ._dispatch import registry
from ._dispatch.binding import need, refuse
from ._dispatch.schema import Schema, parse
from ._overrides import overridable
from ._tensor_base import TensorBase, all_values
from ._warn import warn_once

_NO_WINDOW = (
    "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. "
    "Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral "
    "leakage.To suppress this warning and use a rectangular window, explicitly set "
    "`window=torch.ones(n_fft, device=<device>)`."
)
_REAL_RESULT = (
    "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex "
    "tensors for all inputs, and return_complex=False will raise an error.\nNote: you can still call "
    "torch.view_as_real on the complex output to recover the old return format."
)
_STFT = parse(
    "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
    "bool normalized=False, bool? onesided=None, bool? return_complex=None) -> Tensor"
)
_ISTFT = parse(
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor"
)


def _stft_call(
    x: Any,
    n_fft: int,
    hop: int,
    size: int,
    window: Any,
    normalized: bool,
    onesided: bool | None,
    return_complex: bool | None,
) -> str:
    """The call as PyTorch repeats it in complaints."""

    def shown(value: bool | None) -> str:
        return "None" if value is None else str(int(value))

    seen = "None" if window is None else f"{_typed(window)}{{{list(window._shape)}}}"
    return (
        f"stft({_typed(x)}{list(x._shape)}, n_fft={n_fft}, hop_length={hop}, win_length={size}, window={seen}, "
        f"normalized={shown(normalized)}, onesided={shown(onesided)}, return_complex={shown(return_complex)}, "
        "align_to_window=None) : "
    )


def _typed(t: Any) -> str:
    """`torch.FloatTensor`, or what PyTorch writes for dtypes that never had such a type."""
    name = t._dtype.scalar_name
    return f"CPU{name}Type" if t._dtype.is_complex or name == "BFloat16" else f"torch.{name}Tensor"


def _check_types(schema: Schema, *given: Any) -> None:
    """Refuse arguments that are not of the schema's types."""
    for position, (argument, value) in enumerate(zip(schema.args, given), 1):
        need(schema.name, argument, position, value)
        if argument.is_tensor and not (value is None or isinstance(value, TensorBase)):
            raise refuse(schema.name, argument, position, value)


@overridable
def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """The Fourier transforms of overlapping parts of a signal."""
    if align_to_window is not None and center:
        raise RuntimeError("stft: align_to_window should only be set when center = false")
    if align_to_window:
        raise NotImplementedError(
            "stft: align_to_window=True is not supported; windows start at the parts' first sample"
        )
    lazy_tables.load("fft")
    input.dim()  # PyTorch's function is Python here, and so is its complaint
    _check_types(_STFT, input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex)
    x = input
    if center and x.dim() in (1, 2):
        from .nn.functional import pad

        x = x if x.dim() == 2 else x.unsqueeze(0)
        x = pad(x.unsqueeze(0), [n_fft // 2, n_fft // 2], pad_mode).squeeze(0)
        x = x if input.dim() == 2 else x.squeeze(0)
    if window is None:
        warn_once(_NO_WINDOW)
    given = onesided, return_complex
    hop, size = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    is_complex = input._dtype.is_complex or (window is not None and window._dtype.is_complex)
    onesided = not is_complex if onesided is None else onesided
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further "
                "require that return_complex=True in a future PyTorch release."
            )
        return_complex = True
    elif not return_complex:
        warn_once(_REAL_RESULT)
    call = _stft_call(x, n_fft, hop, size, window, normalized, *given)
    if not input._dtype.is_inexact:
        raise RuntimeError(f"{call}expected a tensor of floating point or complex values")
    if input.dim() not in (1, 2):
        raise RuntimeError(f"{call}expected a 1D or 2D tensor")
    x = x if x.dim() == 2 else x.unsqueeze(0)
    if not 0 < n_fft <= x._shape[-1]:
        raise RuntimeError(f"{call}expected 0 < n_fft < {x._shape[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{call}expected hop_length > 0, but got hop_length={hop}")
    if not 0 < size <= n_fft:
        raise RuntimeError(f"{call}expected 0 < win_length <= n_fft, but got win_length={size}")
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if window is not None and (window.dim() != 1 or window._shape[0] != size):
        raise RuntimeError(
            f"{call}expected a 1D window tensor of size equal to win_length={size}, but got window with "
            f"size {list(window._shape)}"
        )
    if size < n_fft:
        left = (n_fft - size) // 2
        window = x.new_ones((size,)) if window is None else window
        window = registry.get("constant_pad_nd").call((window, (left, n_fft - size - left), 0))
    parts = x.unfold(-1, n_fft, hop)
    parts = parts if window is None else parts * window
    scale = 1 if normalized else 0
    if is_complex:
        out = registry.get("_fft_c2c").call((parts, (2,), scale, True))
    else:
        out = registry.get("_fft_r2c").call((parts, (2,), scale, onesided))
    out = out.transpose_(1, 2)
    out = out if input.dim() == 2 else out.squeeze_(0)
    return out if return_complex else registry.get("view_as_real").call((out,))


@overridable
def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """The signal of which `stft` gave the transform: overlapping parts, weighed by their windows and added."""
    _check_types(
        _ISTFT, input, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex
    )
    lazy_tables.load("fft")
    hop, size = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    call = _istft_call(input, n_fft, hop, size, window, center, normalized, onesided, length, return_complex)
    onesided = _check_istft(call, input, n_fft, hop, size, window, onesided)
    frames = input._shape[-1]
    real = input._dtype.to_real()
    if window is None:
        warn_once(
            "A window was not provided. A rectangular window will be applied.Please provide the same window "
            "used by stft to make the inversion lossless.To suppress this warning and use a rectangular "
            "window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
        )
        # One window for all that a mapped input stands for: its sums are looked at below.
        kind = input._dtype if return_complex else real
        window = registry.get("ones").call(((size,), kind, None, input._device, None))
    if size != n_fft:
        left = (n_fft - size) // 2
        window = registry.get("constant_pad_nd").call((window, (left, n_fft - size - left), 0))
    x = (input if input.dim() == 3 else input.unsqueeze(0)).transpose(1, 2)
    scale = 1 if normalized else 2
    if return_complex:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        x = registry.get("_fft_c2c").call((x, (2,), scale, False))
    else:
        if window._dtype.is_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        x = x if onesided else x.narrow(-1, 0, n_fft // 2 + 1)
        x = registry.get("_fft_c2r").call((x, (2,), scale, n_fft))
    total = n_fft + hop * (frames - 1)
    weighed = _overlapped(x * window.view((1, 1, n_fft)), total, hop)
    weights = _overlapped((window * window).expand((1, frames, n_fft)), total, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    signal = weighed.narrow(-1, start, min(end, total) - start)
    weights = weights.narrow(-1, start, min(end, total) - start)
    if weights._device.type != "meta" and not float(all_values(weights).abs().min()) > 1e-11:
        raise RuntimeError(f"{call[:-2]}window overlap add min: 1\n[ CPUBoolType{{}} ]")
    signal = signal / weights
    if end > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in "
            "the tail. Please check your center and hop_length settings.",
            stacklevel=2,
        )
        signal = registry.get("constant_pad_nd").call((signal, (0, end - total), 0))
    return signal if input.dim() == 3 else signal.squeeze(0)


def _check_istft(call: str, input: Any, n_fft: int, hop: int, size: int, window: Any, onesided: bool | None) -> bool:
    """Refuse what no `stft` can have given; whether the input holds half of the frequencies."""
    if not input._dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if not input.numel():
        raise RuntimeError(f"{call}input tensor cannot be empty.")
    if input.dim() < 2:
        n = input.dim() + 1  # counted with the two parts of a number
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got -3)")
    if input.dim() > 3:
        raise RuntimeError(f"{call}expected a tensor with 3 or 4 dimensions, but got {input.dim() + 1}")
    bins = input._shape[-2]
    onesided = bins != n_fft if onesided is None else onesided
    if onesided and n_fft // 2 + 1 != bins:
        raise RuntimeError(
            f"{call}expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"n_fft / 2 + 1 when onesided=True, but got {bins}"
        )
    if not onesided and n_fft != bins:
        raise RuntimeError(
            f"{call}expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"n_fft when onesided=False, but got {bins}"
        )
    if not 0 < hop <= size:
        raise RuntimeError(f"{call}expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        raise RuntimeError(f"{call}expected 0 < win_length <= n_fft")
    if window is not None and (window.dim() != 1 or window._shape[0] != size):
        raise RuntimeError(f"{call}Invalid window shape. window has to be 1D and length of `win_length`")
    return onesided


def _overlapped(parts: Any, total: int, hop: int) -> Any:
    """The sum of parts (batch, part, sample) that start `hop` apart: the adjoint of `unfold`."""
    return registry.get("unfold_backward").call((parts, (parts._shape[0], total), 1, parts._shape[2], hop))


def _istft_call(
    input: Any,
    n_fft: int,
    hop: int,
    size: int,
    window: Any,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int | None,
    return_complex: bool,
) -> str:
    """The call as PyTorch repeats it in complaints."""
    seen = "None" if window is None else f"{_typed(window)}{{{list(window._shape)}}}"
    return (
        f"istft({_typed(input)}{list(input._shape)}, n_fft={n_fft}, hop_length={hop}, win_length={size}, "
        f"window={seen}, center={int(center)}, normalized={int(normalized)}, onesided="
        f"{None if onesided is None else int(onesided)}, length={length}, return_complex={int(return_complex)}) : "
    )
