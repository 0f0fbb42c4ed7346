"""CPU lines of factories that are more than filling."""

from __future__ import annotations

from typing import Any

from ..._dtype import complex32
from .kernels.creation import ARANGE, EYE, LINSPACE, LOWER, UPPER, Range
from .lines import cpu, into
from .numpy_view import np_view


def _logspace(out: Any, start: Any, end: Any, steps: int, base: float, *options: Any) -> None:
    if out._dtype is complex32 or (out._dtype.is_floating_point and out._dtype.itemsize == 1):
        if steps > 1:
            raise NotImplementedError(f"\"logspace_cpu\" not implemented for '{out._dtype.scalar_name}'")
        if steps == 1:
            out.fill_(base**start)
        return
    import numpy

    wide = numpy.complex128 if out._dtype.is_complex else numpy.float64
    if steps:
        exponents = numpy.linspace(start, end, steps, dtype=wide)
        np_view(out)[...] = numpy.power(wide(base), exponents).astype(out._dtype.np)


def _complex(out: Any, real: Any, imag: Any) -> None:
    if out._dtype is complex32:  # which NumPy does not have
        out.real.copy_(real)
        out.imag.copy_(imag)
        return
    parts = np_view(out)
    parts.real = np_view(real)
    parts.imag = np_view(imag)


def _polar(out: Any, length: Any, angle: Any) -> None:
    import numpy

    parts, r, phi = np_view(out), np_view(length), np_view(angle)
    parts.real = r * numpy.cos(phi)
    parts.imag = r * numpy.sin(phi)


cpu("arange", Range(ARANGE))
cpu("linspace", Range(LINSPACE))
cpu("eye", Range(EYE))
cpu("logspace", into(_logspace, aliasing=True))
cpu("tril_indices", Range(LOWER))
cpu("triu_indices", Range(UPPER))
cpu("complex", into(_complex))
cpu("polar", into(_polar))
