"""CPU lines of factories that are more than filling."""

from __future__ import annotations

from typing import Any

from ..._dtype import complex32, float64
from ..common.spacing import exponents, one, power
from .kernels.creation import ARANGE, EYE, LINSPACE, LOWER, UPPER, Range
from .kernels.moves import complex_of, polar
from .lines import cpu, into
from .numpy_view import np_view


def _logspace(out: Any, start: Any, end: Any, steps: int, base: float, *options: Any) -> None:
    narrow = out._dtype is complex32 or (out._dtype.is_floating_point and out._dtype.itemsize == 1)
    if narrow and steps > 1:
        raise NotImplementedError(f"\"logspace_cpu\" not implemented for '{out._dtype.scalar_name}'")
    if narrow and steps:
        out.fill_(power(base, start))
    elif steps == 1:
        np_view(out)[...] = np_view(one(base, start, out))
    elif steps:
        import numpy

        whole, wide = out._dtype.is_integer, numpy.complex128 if out._dtype.is_complex else numpy.float64
        first, last = (int(start), int(end)) if whole else (start, end)
        found = exponents(first, last, steps, float64 if whole else out._dtype, out._device)
        with numpy.errstate(all="ignore"):
            np_view(out)[...] = numpy.power(wide(base), np_view(found)).astype(out._dtype.np)


cpu("arange", Range(ARANGE))
cpu("linspace", Range(LINSPACE))
cpu("eye", Range(EYE))
cpu("logspace", into(_logspace, aliasing=True))
cpu("tril_indices", Range(LOWER))
cpu("triu_indices", Range(UPPER))
cpu("complex", into(complex_of))
cpu("polar", into(polar))
