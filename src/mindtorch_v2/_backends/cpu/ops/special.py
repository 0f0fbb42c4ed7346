"""CPU lines of special functions: modified Bessel functions natively, others by SciPy and NumPy.

Invariant: values are computed in float64 and rounded once.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import _native
from ...._ops.rules.layout import expand_strides
from ...._ops.special import POLYNOMIALS
from ...._tensor_base import TensorBase, numel
from ..kernels.dense import deliver, dense_as, operand, target, wide_dtype
from ..lines import binary, cpu, into
from ..numpy_view import np_view
from .polynomials import far_polynomial


def _wide(x: Any) -> Any:
    import numpy

    return np_view(x).astype("float64") if isinstance(x, TensorBase) else numpy.asarray(x, "float64")


def scipy_special(name: str) -> Any:
    """A function of `scipy.special` of the operator's arguments."""

    def kernel(out: Any, *args: Any) -> None:
        import numpy
        from scipy import special

        with numpy.errstate(all="ignore"):
            np_view(out)[...] = getattr(special, name)(*[_wide(a) for a in args])

    return into(kernel)


for _name, _theirs in (
        ("igamma", "gammainc"), ("igammac", "gammaincc"), ("special_erfcx", "erfcx"), ("special_log_ndtr", "log_ndtr"),
        ("special_ndtri", "ndtri"), ("special_zeta", "zeta"), ("special_bessel_j0", "j0"), ("special_bessel_j1", "j1"),
        ("special_bessel_y0", "y0"), ("special_bessel_y1", "y1")):
    cpu(_name, scipy_special(_theirs))


def _modified(kind: int) -> Any:
    """A modified Bessel function, by its number in the native module."""

    def kernel(out: Any, self: Any) -> None:
        dt = wide_dtype(out._dtype)
        result = target(out, dt)
        if numel(out):
            _native.bessel(kind, *operand(dense_as(self, dt)), *operand(result), numel(out))
        deliver(out, result)

    return into(kernel)


for _name, _kind in (
        ("i0", 0), ("special_modified_bessel_i0", 0), ("special_i0e", 1), ("special_i1", 2),
        ("special_modified_bessel_i1", 2), ("special_i1e", 3), ("special_modified_bessel_k0", 4),
        ("special_scaled_modified_bessel_k0", 5), ("special_modified_bessel_k1", 6),
        ("special_scaled_modified_bessel_k1", 7)):
    cpu(_name, _modified(_kind))


def _airy(out: Any, self: Any) -> None:
    from scipy import special

    np_view(out)[...] = special.airy(_wide(self))[0]


def _spherical(out: Any, self: Any) -> None:
    import numpy

    x = _wide(self)
    safe = numpy.where(x == 0, 1, x)
    with numpy.errstate(all="ignore"):
        np_view(out)[...] = numpy.where(numpy.isinf(x), 0, numpy.where(x == 0, 1, numpy.sin(safe) / safe))


cpu("special_airy_ai", into(_airy))
cpu("special_spherical_bessel_j0", into(_spherical))


# -- polynomials by their recurrences --------------------------------------------------------------------------------
Step = Callable[[Any, int, Any, Any], Any]
_FIRST: dict[str, Callable[[Any], Any]] = {
    "t": lambda x: x, "u": lambda x: 2 * x, "v": lambda x: 2 * x - 1, "w": lambda x: 2 * x + 1,
    "h": lambda x: 2 * x, "he": lambda x: x, "l": lambda x: 1 - x, "p": lambda x: x,
}
_NEXT: dict[str, Step] = {
    "h": lambda x, k, q, p: 2 * x * q - 2 * k * p,
    "he": lambda x, k, q, p: x * q - k * p,
    "l": lambda x, k, q, p: ((2 * k + 1 - x) * q - k * p) / (k + 1),
    "p": lambda x, k, q, p: ((2 * k + 1) * x * q - k * p) / (k + 1),
}


def _chebyshev(x: Any, k: int, q: Any, p: Any) -> Any:
    return 2 * x * q - p


# Recurrences end here; of higher degrees the closed or the asymptotic form is as exact and takes no time.
_FAR = 16384


def _polynomial(name: str) -> Any:
    kind = name.rpartition("_")[2]
    shifted = name.startswith("shifted")

    def kernel(out: Any, x: Any, n: Any) -> None:
        import numpy

        at, degree = numpy.broadcast_arrays(_wide(x), numpy.trunc(_wide(n)))
        if shifted:
            at = 2 * at - 1
        # As in PyTorch, whose degrees are whole numbers of 64 bits: others have become negative ones.
        degree = numpy.where(numpy.abs(degree) < 2.0**63, degree, -1.0)
        near = numpy.where(degree <= _FAR, degree, -1.0)
        with numpy.errstate(all="ignore"):
            before, current = numpy.ones_like(at), _FIRST[kind](at)
            value = numpy.where(near < 0, 0.0, numpy.where(near == 0, before, current))
            for k in range(1, int(near.max(initial=0))):
                before, current = current, _NEXT.get(kind, _chebyshev)(at, k, current, before)
                value = numpy.where(near == k + 1, current, value)
            if (degree > _FAR).any():
                value = numpy.where(degree > _FAR, far_polynomial(kind, at, degree), value)
        np_view(out)[...] = value

    return into(kernel)


for _name in POLYNOMIALS:
    cpu(f"special_{_name}", _polynomial(_name))


# -- bits and whole numbers -----------------------------------------------------------------------------------------
def _numpy_into(name: str, out: Any, *args: Any) -> None:
    import numpy

    np_view(out)[...] = getattr(numpy, name)(*[np_view(a).astype(np_view(out).dtype) for a in args])


def _nextafter(out: Any, self: Any, other: Any) -> None:
    if out._dtype.itemsize < 4:
        _numpy_into("nextafter", out, self, other)
        return
    shape = out._shape
    code = out._dtype.code
    _native.binary(_native.NEXTAFTER, self._storage, int(self._offset), expand_strides(self, shape), self._dtype.code,
                   other._storage, int(other._offset), expand_strides(other, shape), other._dtype.code,
                   out._storage, int(out._offset), out._stride, code, shape, code, 1)


def _frexp(outs: Any, self: Any) -> None:
    import numpy

    x = np_view(self)
    mantissa, exponent = numpy.frexp(x.astype("float32") if x.dtype.itemsize == 2 else x)
    np_view(outs[0])[...] = mantissa
    np_view(outs[1])[...] = exponent


cpu("gcd", binary("GCD"))
cpu("lcm", binary("LCM"))
cpu("heaviside", binary("HEAVISIDE"))
cpu("nextafter", into(_nextafter, aliasing=True))
cpu("frexp.Tensor", into(_frexp))
