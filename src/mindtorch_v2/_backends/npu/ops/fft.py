"""NPU lines of Fourier transforms: the vendor has none, so they are products with the matrix of roots of unity.

Invariant: a size is split into factors of at most 64 where it has them, so that n samples cost about 64 n products for
each factor; real and imaginary parts go through the matrix unit one by one.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dispatch import registry
from ...._dtype import float64
from ...._ops.composites.fft import NONE, ROOT
from ...._ops.rules.base import wrap_dims
from ..lines import npu, parts

Ints = tuple[int, ...]
_complex = registry.get("complex")
_cat = registry.get("cat")
_AT_ONCE = 64


def _roots(rows: int, columns: int, n: int, like: Any) -> tuple[Any, Any]:
    """cos and sin of 2 pi j k / n for j < rows, k < columns; j k is reduced first, so that angles are exact."""
    from .... import arange

    j, k = (arange(size, device=like._device) for size in (rows, columns))
    angle = (j.unsqueeze(1) * k).remainder(n).to(float64) * (2 * math.pi / n)
    return angle.cos().to(like._dtype), angle.sin().to(like._dtype)


def _factor(n: int) -> int:
    """A factor to split off, or n where there is none or no need."""
    if n <= _AT_ONCE:
        return n
    return next((f for f in range(_AT_ONCE, 1, -1) if n % f == 0), n)


def _turned(re: Any, im: Any, cos: Any, sin: Any, sign: int, by: Any) -> tuple[Any, Any]:
    """(re + i im) (cos + sign i sin), where `by` multiplies; im may be none."""
    if im is None:
        return by(re, cos), by(re, sin) * sign
    return by(re, cos) - by(im, sin) * sign, by(im, cos) + by(re, sin) * sign


def _transformed(re: Any, im: Any, sign: int) -> tuple[Any, Any]:
    """Along the last dimension, unscaled."""
    n = int(re._shape[-1])
    a = _factor(n)
    if a == n:
        return _turned(re, im, *_roots(n, n, n, re), sign, lambda x, y: x.matmul(y))
    # x[j1 b + j2] and X[k1 + a k2]: over j1, then turned by j2 k1 / n, then over j2.
    b = n // a
    front = tuple(re._shape[:-1])

    def split(t: Any) -> Any:
        return None if t is None else t.reshape((*front, a, b)).mT

    first = _transformed(split(re), split(im), sign)
    left, right = _turned(*first, *_roots(b, a, n, re), sign, lambda x, y: x * y)
    re, im = _transformed(left.mT.contiguous(), right.mT.contiguous(), sign)
    return re.mT.reshape((*front, n)), im.mT.reshape((*front, n))


def _along(re: Any, im: Any, dims: Ints, sign: int) -> tuple[Any, Any]:
    for d in dims:
        last = None if im is None else im.movedim(d, -1).contiguous()
        re, im = _transformed(re.movedim(d, -1).contiguous(), last, sign)
        re, im = re.movedim(-1, d), im.movedim(-1, d)
    return re, im


def _scale(normalization: int, sizes: list[int]) -> float:
    count = math.prod(sizes)
    return 1.0 if normalization == NONE else 1 / math.sqrt(count) if normalization == ROOT else 1 / count


def _scaled(re: Any, im: Any, factor: float) -> Any:
    if factor != 1.0:
        re, im = re * factor, im * factor
    return _complex.call((re, im))


def _c2c(self: Any, dim: Ints, normalization: int, forward: bool) -> Any:
    dims = wrap_dims(dim, self.dim())
    if not self.numel() or not dims:
        return self.clone()
    re, im = _along(self.real, self.imag, dims, -1 if forward else 1)
    return _scaled(re, im, _scale(normalization, [self._shape[d] for d in dims]))


def _r2c(self: Any, dim: Ints, normalization: int, onesided: bool) -> Any:
    dims = wrap_dims(dim, self.dim())
    last = dims[-1]
    if not self.numel():
        return _complex.call((self, self)).narrow(last, 0, self._shape[last] // 2 + 1 if onesided else
                                                  self._shape[last])
    re, im = _along(self, None, (last,), -1)
    if onesided:
        half = self._shape[last] // 2 + 1
        re, im = re.narrow(last, 0, half), im.narrow(last, 0, half)
    re, im = _along(re, im, dims[:-1], -1)
    return _scaled(re, im, _scale(normalization, [self._shape[d] for d in dims]))


def _c2r(self: Any, dim: Ints, normalization: int, last_dim_size: int) -> Any:
    dims = wrap_dims(dim, self.dim())
    last, n = dims[-1], last_dim_size
    if not self.numel():
        return self.real.new_zeros((*self._shape[:last], n, *self._shape[last + 1:]))
    re, im = _along(self.real, self.imag, dims[:-1], 1)
    # The frequencies above the middle are those below it, mirrored.
    half, rest = n // 2 + 1, n - n // 2 - 1
    re, im = re.narrow(last, 0, half), im.narrow(last, 0, half)
    if rest:
        re, im = (_cat.call(((t, t.narrow(last, 1, rest).flip(last) * sign), last)) for t, sign in ((re, 1), (im, -1)))
    out = _along(re, im, (last,), 1)[0]
    factor = _scale(normalization, [*(self._shape[d] for d in dims[:-1]), n])
    return out.contiguous() if factor == 1.0 else out * factor


npu("_fft_c2c", parts(_c2c))
npu("_fft_r2c", parts(_r2c))
npu("_fft_c2r", parts(_c2r))
