"""CPU lines of factories that are more than filling."""
from __future__ import annotations

from typing import Any

from ... import _native
from ..._tensor_base import is_contiguous
from .lines import cpu, into
from .numpy_view import np_view


def _ranged(out: Any, fill: Any) -> None:
    """`fill(storage, code)` writes a dense range at the start of a storage."""
    if is_contiguous(out) and out._offset == 0:
        fill(out._storage, out._dtype.code)
        return
    dense = _native.Storage(out.numel() * out._dtype.itemsize)
    fill(dense, out._dtype.code)
    _native.copy(out._storage, out._offset, out._stride, out._dtype.code, dense, 0, (1,), out._dtype.code, out._shape)


def _arange(out: Any, start: Any, end: Any, step: Any, *options: Any) -> None:
    n = out.numel()
    _ranged(out, lambda storage, code: _native.arange(storage, code, n, start, step))


def _linspace(out: Any, start: Any, end: Any, steps: int, *options: Any) -> None:
    _ranged(out, lambda storage, code: _native.linspace(storage, code, steps, start, end))


def _logspace(out: Any, start: Any, end: Any, steps: int, base: float, *options: Any) -> None:
    import numpy

    wide = numpy.complex128 if out._dtype.is_complex else numpy.float64
    if steps:
        exponents = numpy.linspace(start, end, steps, dtype=wide)
        np_view(out)[...] = numpy.power(wide(base), exponents).astype(out._dtype.np)


def _eye(out: Any, n: int, m: int, *options: Any) -> None:
    if is_contiguous(out) and out._offset == 0:
        _native.eye(out._storage, out._dtype.code, n, m)
        return
    import numpy

    np_view(out)[...] = numpy.eye(n, m, dtype=out._dtype.np)


def _tril_indices(out: Any, row: int, col: int, offset: int, *options: Any) -> None:
    import numpy

    np_view(out)[...] = numpy.stack(numpy.tril_indices(row, offset, col))


def _triu_indices(out: Any, row: int, col: int, offset: int, *options: Any) -> None:
    import numpy

    np_view(out)[...] = numpy.stack(numpy.triu_indices(row, offset, col))


def _complex(out: Any, real: Any, imag: Any) -> None:
    parts = np_view(out)
    parts.real = np_view(real)
    parts.imag = np_view(imag)


def _polar(out: Any, length: Any, angle: Any) -> None:
    import numpy

    parts, r, phi = np_view(out), np_view(length), np_view(angle)
    parts.real = r * numpy.cos(phi)
    parts.imag = r * numpy.sin(phi)


for _name, _fn in {"arange": _arange, "linspace": _linspace, "logspace": _logspace, "eye": _eye,
                   "tril_indices": _tril_indices, "triu_indices": _triu_indices}.items():
    cpu(_name, into(_fn, aliasing=True))
cpu("complex", into(_complex))
cpu("polar", into(_polar))
