"""Window functions of the top level, and `torch.range`.

Invariant: a window is made of other operators, in PyTorch's order of operations; the rounding of half precision shows
that order.
"""

from __future__ import annotations

import math
from typing import Any

from ._creation import _MISSING, _device_arg, _dtype_arg, _factory_device, _finish, _given, _number, stray
from ._dispatch.binding import need
from ._dispatch.op import type_name
from ._dispatch.schema import Arg
from ._dtype import get_default_dtype
from ._dtype_names import cpp_name
from ._layout import layout as Layout
from ._layout import strided
from ._overrides import overridable
from ._sizes import LONG_MAX
from ._tensor_base import TensorBase
from ._warn import warn

_LENGTH = Arg("window_length", "int", False, False, 0, "", False, False, False, None)
_NUMBER = Arg("beta", "float", False, False, 0, "", False, False, False, None)
_PERIODIC = Arg("periodic", "bool", False, False, 0, "", False, False, False, None)
_REQUIRES_GRAD = Arg("requires_grad", "bool", False, False, 0, "", False, True, True, False)


def _refused(fname: str, given: tuple[Any, ...], named: dict[str, Any]) -> TypeError:
    """What PyTorch says where several signatures could be meant."""
    from ._dispatch.complaint import _combination

    return _combination(fname, [], tuple(x for x in given if x is not _MISSING), named)


def _floats(fname: str, given: tuple[Any, ...], options: dict[str, Any]) -> list[float]:
    """The numbers behind length and periodic."""
    try:
        return [float(need(fname, _NUMBER, i + 3, x)) for i, x in enumerate(given[2:]) if x is not _MISSING]
    except TypeError:
        raise _refused(fname, given, options) from None


_OPTIONS = frozenset(("dtype", "layout", "device", "pin_memory", "requires_grad"))


class _Window:
    """The arguments that all windows share: how many points, and where the result goes."""

    def __init__(self, name: str, length: Any, periodic: Any, options: dict[str, Any]) -> None:
        given = (length, periodic)
        if options.keys() - _OPTIONS or length is _MISSING:
            raise _refused(name, given, options)
        layout, dt = options.get("layout"), None
        try:
            self.length = n = int(need(name, _LENGTH, 1, length))
            self.periodic = True if periodic is _MISSING else bool(need(name, _PERIODIC, 2, periodic))
            self.grad = need(name, _REQUIRES_GRAD, 0, options.get("requires_grad", False))
            dt = _dtype_arg(name, options.get("dtype"))
            self.device = _factory_device(name, options.get("device"))
            if layout is not None and not isinstance(layout, Layout):
                raise TypeError
        except TypeError:
            if periodic is _MISSING and not options:
                raise
            raise _refused(name, given, options) from None
        self.dtype = get_default_dtype() if dt is None else dt
        self.pin = options.get("pin_memory", False)
        if layout is not None and layout is not strided:
            hann = " (default)" if name == "hann_window" and dt is None else ""
            raise RuntimeError(f"{name} is not implemented for sparse types, got: {self._shown(hann, 'Sparse')}")
        if not self.dtype.is_inexact:
            shown = self._shown("", "Strided" if layout else "Strided (default)")
            raise RuntimeError(f"{name} expects floating point dtypes, got: {shown}")
        if n < 0:
            raise RuntimeError(f"{name} requires non-negative window_length, got window_length={n}")
        # A periodic window is a symmetric one of one more point, without the last.
        self.count = n + self.periodic if n > 1 else n

    def _shown(self, default: str, layout: str) -> str:
        place = "cpu" if self.device is None else str(self.device)
        return (
            f"TensorOptions(dtype={cpp_name(self.dtype)}{default}, device={place}, layout={layout}, "
            "requires_grad=false (default), "
            f"pinned_memory={str(bool(self.pin)).lower()}, memory_format=(nullopt))"
        )

    def factor(self, x: float) -> float:
        """A number to multiply with. PyTorch rounds it to the window's dtype first, which half precision shows."""
        import mindtorch_v2 as torch

        if not self.dtype.is_floating_point or self.dtype.itemsize > 2:
            return x
        return float(torch.scalar_tensor(x, dtype=self.dtype, device="cpu").item())

    def few(self) -> Any:
        """The window of no or one point; None where there are more."""
        import mindtorch_v2 as torch

        if self.length > 1:
            return None
        make = torch.ones if self.length else torch.empty
        return self.done(make((self.length,), dtype=self.dtype, device=self.device, pin_memory=self.pin))

    def points(self) -> Any:
        """0, 1, 2, ..."""
        import mindtorch_v2 as torch

        return torch.arange(self.count, dtype=self.dtype, device=self.device, pin_memory=self.pin)

    def done(self, window: Any) -> Any:
        window = window.narrow(0, 0, self.length) if window._shape[0] > self.length else window
        return _finish(window, self.grad)


def bartlett_window(window_length: Any = _MISSING, periodic: Any = _MISSING, **options: Any) -> Any:
    """A triangle: bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None,
    pin_memory=False, requires_grad=False)"""
    make = _Window("bartlett_window", window_length, periodic, options)
    few = make.few()
    if few is not None:
        return few
    window = make.points().mul_(make.factor(2.0 / (make.count - 1)))
    half = ((make.count - 1) >> 1) + 1
    window.narrow(0, half, make.count - half).mul_(-1).add_(2)
    return make.done(window)


def blackman_window(window_length: Any = _MISSING, periodic: Any = _MISSING, **options: Any) -> Any:
    """Three cosines: blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None,
    pin_memory=False, requires_grad=False)"""
    make = _Window("blackman_window", window_length, periodic, options)
    few = make.few()
    if few is not None:
        return few
    window = make.points().mul_(make.factor(math.pi / (make.count - 1)))
    return make.done(window.mul(4).cos_().mul_(make.factor(0.08)) - window.mul(2).cos_().mul_(0.5) + 0.42)


def hamming_window(
    window_length: Any = _MISSING, periodic: Any = _MISSING, alpha: Any = _MISSING, beta: Any = _MISSING, **options: Any
) -> Any:
    """alpha - beta cos: hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None,
    device=None, pin_memory=False, requires_grad=False)"""
    name = "hamming_window"
    _in_order(name, dict(window_length=window_length, periodic=periodic, alpha=alpha, beta=beta))
    numbers = _floats(name, (window_length, periodic, alpha, beta), options)
    a, b = [*numbers, *(0.54, 0.46)[len(numbers) :]]
    return _cosine(name, window_length, periodic, a, b, options)


def hann_window(window_length: Any = _MISSING, periodic: Any = _MISSING, **options: Any) -> Any:
    """(1 - cos) / 2: hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None,
    pin_memory=False, requires_grad=False)"""
    return _cosine("hann_window", window_length, periodic, 0.5, 0.5, options)


def _cosine(name: str, length: Any, periodic: Any, alpha: float, beta: float, options: dict[str, Any]) -> Any:
    make = _Window(name, length, periodic, options)
    few = make.few()
    if few is not None:
        return few
    waves = make.points().mul_(make.factor(math.pi * 2.0 / (make.count - 1))).cos_()
    return make.done(waves.mul_(make.factor(-beta)).add_(alpha))


def kaiser_window(window_length: Any = _MISSING, periodic: Any = _MISSING, beta: Any = _MISSING, **options: Any) -> Any:
    """A ratio of Bessel functions: kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None,
    device=None, pin_memory=False, requires_grad=False)"""
    import mindtorch_v2 as torch

    name = "kaiser_window"
    _in_order(name, dict(window_length=window_length, periodic=periodic, beta=beta))
    b = next(iter(_floats(name, (window_length, periodic, beta), options)), 12.0)
    make = _Window(name, window_length, periodic, options)
    few = make.few()
    if few is not None:
        return few
    points = make.points()
    half = make.dtype.is_floating_point and make.dtype.itemsize < 4
    x = points.float() if half else points
    middle = (make.count - 1) / 2.0
    x = x.sub_(middle).div_(middle)
    inner = (1 - x * x).clamp_(min=0).sqrt_().mul_(b)
    top = torch.i0(torch.full((), abs(b), dtype=inner.dtype, device=inner.device))
    window = torch.i0(inner).div_(top)
    return make.done(window.to(make.dtype) if half else window)


def _in_order(fname: str, given: dict[str, Any]) -> None:
    """These signatures have no defaults but fewer arguments: one cannot be given without those before it."""
    names = list(given)
    last = max((i for i, n in enumerate(names) if given[n] is not _MISSING), default=-1)
    if last > 0 and any(given[n] is _MISSING for n in names[:last]):
        positional = tuple(given[n] for n in names[: next(i for i, n in enumerate(names) if given[n] is _MISSING)])
        raise _refused(fname, positional, {n: given[n] for n in names[len(positional) :] if given[n] is not _MISSING})


# -- range --------------------------------------------------------------------------------------------------------
@overridable
def range(
    start: Any = _MISSING,
    end: Any = _MISSING,
    step: Any = 1,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: Any = False,
    **unknown: Any,
) -> Any:
    """Numbers from start to end, both included; deprecated in favour of `arange`."""
    import mindtorch_v2 as torch

    if unknown:
        raise stray("range", (start, end, step), unknown)
    if start is not _MISSING and end is _MISSING:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    _given("range", start=start, end=end)
    first, last, by = (_number("range", n, i + 1, x) for i, (n, x) in enumerate(_named(start, end, step)))
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    if out is not None and not isinstance(out, TensorBase):
        raise TypeError(f"range(): argument 'out' must be Tensor, not {type_name(out)}")
    dt = _dtype_arg("range", dtype)
    made = get_default_dtype() if dt is None and out is None else dt if out is None else out._dtype
    if not (made.is_integer or made.is_floating_point) or made.name.startswith(("uint1", "uint3", "uint6", "float8")):
        raise NotImplementedError(f"\"range_cpu\" not implemented for '{made.scalar_name}'")
    if made.is_integer and all(math.isfinite(x) for x in (first, last)):
        first, last, by = int(first), int(last), int(by)
    if by == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"unsupported range: {first:g} -> {last:g}")
    if (by > 0) != (last >= first) and last != first:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.floor((last - first) / by) + 1
    if not 0 <= count <= LONG_MAX:
        raise RuntimeError(f"invalid size, possible overflow? size: {count:g}")
    # `arange` leaves its end out: half a step behind the last number it makes exactly `count` of them.
    stop = first + by * count if made.is_integer else first + by * (count - 0.5)
    if out is not None:
        given: Any = out
        if given.numel() != count:
            given.resize_((count,))
        return given.copy_(torch.arange(first, stop, by, dtype=made, device=given._device).view(given._shape))
    where = None if device is None else _device_arg("range", device)
    return torch.arange(
        first, stop, by, dtype=made, device=where, layout=layout, pin_memory=pin_memory, requires_grad=requires_grad
    )


def _named(start: Any, end: Any, step: Any) -> list[tuple[str, Any]]:
    return [("start", start), ("end", end), ("step", step)]
