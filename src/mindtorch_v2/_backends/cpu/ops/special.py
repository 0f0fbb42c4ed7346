"""CPU lines of special functions: natively, but for Airy's and the incomplete gamma functions, which are SciPy's.

Invariant: values are computed in float64 and rounded once.
"""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._ops.rules.layout import expand_strides
from ...._ops.special import POLYNOMIALS, ldexp
from ...._tensor_base import TensorBase, numel
from ...common.runtime import copy_same_device
from ..kernels.dense import deliver, dense_as, operand, target, wide_dtype
from ..lines import binary, cpu, into, unary
from ..numpy_view import np_view


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


cpu("igamma", scipy_special("gammainc"))
cpu("igammac", scipy_special("gammaincc"))
for _name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0", "erfcx", "log_ndtr", "ndtri",
              "entr"):
    cpu(f"special_{_name}", unary(_name.upper()))
for _name in ("zeta", "xlog1py", *POLYNOMIALS):
    cpu(f"special_{_name}", binary(_name.upper()))


def _logit(out: Any, self: Any, eps: float | None) -> None:
    _native.unary(_native.LOGIT, self._storage, int(self._offset), self._stride, self._dtype.code, out._storage,
                  int(out._offset), out._stride, out._dtype.code, self._shape, out._dtype.code,
                  -1.0 if eps is None else eps, 0, 0)


def _ldexp(out: Any, self: Any, other: Any) -> None:
    if not self._dtype.is_floating_point or other._dtype.is_inexact:
        copy_same_device(out, ldexp(self, other))
        return
    shape = out._shape
    code = out._dtype.code
    _native.binary(_native.LDEXP, self._storage, int(self._offset), expand_strides(self, shape), self._dtype.code,
                   other._storage, int(other._offset), expand_strides(other, shape), other._dtype.code,
                   out._storage, int(out._offset), out._stride, code, shape, code, 1)


cpu("logit", into(_logit, aliasing=True))
cpu("ldexp", into(_ldexp, aliasing=True, calls_ops=True))


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


cpu("special_airy_ai", into(_airy))


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
    mantissa, exponent = outs
    dt = wide_dtype(self._dtype)
    result, powers = target(mantissa, dt), target(exponent, exponent._dtype)
    if numel(self):
        _native.frexp(*operand(dense_as(self, dt)), *operand(result), *operand(powers), numel(self))
    deliver(mantissa, result)
    deliver(exponent, powers)


cpu("gcd", binary("GCD"))
cpu("lcm", binary("LCM"))
cpu("heaviside", binary("HEAVISIDE"))
cpu("nextafter", into(_nextafter, aliasing=True))
cpu("frexp.Tensor", into(_frexp))
