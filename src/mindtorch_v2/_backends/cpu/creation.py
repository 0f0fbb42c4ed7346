"""CPU lines of factories that are more than filling."""

from __future__ import annotations

from typing import Any

from ..._dtype import complex32
from .kernels.creation import ARANGE, EYE, LINSPACE, Range
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


def _tril_indices(out: Any, row: int, col: int, offset: int, *options: Any) -> None:
    import numpy

    offset = max(min(offset, col), -row)
    rows = numpy.arange(max(-offset, 0), row if col else 0)
    _triangle(out, rows, numpy.zeros_like(rows), numpy.minimum(rows + offset + 1, col))


def _triu_indices(out: Any, row: int, col: int, offset: int, *options: Any) -> None:
    import numpy

    offset = max(min(offset, col), -row)
    rows = numpy.arange(min(row, max(col - offset, 0)))
    starts = numpy.maximum(rows + offset, 0)
    _triangle(out, rows, starts, col - starts)


def _triangle(out: Any, rows: Any, starts: Any, counts: Any) -> None:
    """Each row's number and the numbers of its columns, `counts` of them from `starts` on. Every row has at least one:
    nothing here is longer than the result."""
    import numpy

    to = np_view(out)
    to[0] = numpy.repeat(rows, counts)
    to[1] = numpy.arange(to.shape[1]) - numpy.repeat(numpy.cumsum(counts) - counts - starts, counts)


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
cpu("tril_indices", into(_tril_indices))
cpu("triu_indices", into(_triu_indices))
cpu("complex", into(_complex))
cpu("polar", into(_polar))
