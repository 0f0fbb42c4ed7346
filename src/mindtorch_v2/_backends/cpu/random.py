"""CPU lines of random numbers."""
from __future__ import annotations

from typing import Any

from ... import _native
from ..._ops.rules.pointwise import expand_strides
from ..._tensor_base import TensorBase, is_contiguous
from ..common.runtime import empty_contiguous
from .lines import cpu, into
from .numpy_view import np_view
from .random_glue import (
    BERNOULLI,
    CAUCHY,
    EXPONENTIAL,
    FULL_RANGE,
    GEOMETRIC,
    INTEGERS,
    LOG_NORMAL,
    NORMAL,
    UNIFORM,
    Draw,
    draw,
    state_of,
)

cpu("rand", Draw(UNIFORM, -1, 1, 0.0, 1.0))
cpu("randn", Draw(NORMAL, -1, 1, 0.0, 1.0))
cpu("rand_like", Draw(UNIFORM, -1, -1, 0.0, 1.0))
cpu("randn_like", Draw(NORMAL, -1, -1, 0.0, 1.0))
cpu("uniform", Draw(UNIFORM, 1, 3, 0.0, 1.0))
cpu("normal", Draw(NORMAL, 1, 3, 0.0, 1.0))
cpu("cauchy", Draw(CAUCHY, 1, 3, 0.0, 1.0))
cpu("log_normal", Draw(LOG_NORMAL, 1, 3, 0.0, 1.0))


def _between(out: Any, low: int, high: int, generator: Any) -> None:
    draw(INTEGERS, out, generator, low, high - low)


def _randint(out: Any, low: int, high: int, size: Any, generator: Any, *options: Any) -> None:
    _between(out, low, high, generator)


def _randint_like(out: Any, self: Any, low: int, high: int, *options: Any) -> None:
    _between(out, low, high, None)


def _random(out: Any, self: Any, low: int | None, high: int | None, generator: Any) -> None:
    if low is None and high is None:
        draw(FULL_RANGE, out, generator, 0, 0)
    elif high is None:
        top = {4: 2 ** 63, 17: 2 ** 64}.get(out._dtype.code)
        if top is None:
            most = {5: 2 ** 11, 6: 2 ** 24, 7: 2 ** 53, 12: 2 ** 8}.get(out._dtype.code)
            top = (most if most is not None else 2 ** (8 * out._dtype.itemsize - out._dtype.is_signed) - 1) + 1
        _between(out, low or 0, top, generator)
    else:
        _between(out, low or 0, high, generator)


def _randperm(out: Any, n: int, generator: Any, *options: Any) -> None:
    if is_contiguous(out) and out._offset == 0:
        _native.random_permutation(state_of(generator), out._storage, out._dtype.code, n)
        return
    dense = empty_contiguous(out._shape, out._dtype, out._device)
    _native.random_permutation(state_of(generator), dense._storage, out._dtype.code, n)
    np_view(out)[...] = np_view(dense)


def _exponential(out: Any, self: Any, lambd: float, generator: Any) -> None:
    draw(EXPONENTIAL, out, generator, lambd, 0.0)


def _geometric(out: Any, self: Any, p: float, generator: Any) -> None:
    draw(GEOMETRIC, out, generator, p, 0.0)


def _bernoulli(out: Any, self: Any, generator: Any) -> None:
    _bernoulli_p(out, self, self, generator)


def _bernoulli_p(out: Any, self: Any, p: Any, generator: Any) -> None:
    if not isinstance(p, TensorBase):
        draw(BERNOULLI, out, generator, float(p), 0.0)
        return
    _native.random_bernoulli(state_of(generator), p._storage, p._offset, expand_strides(p, out._shape), p._dtype.code,
                             out._storage, out._offset, out._stride, out._dtype.code, out._shape)


def _normal_of(out: Any, mean: Any, std: Any, generator: Any) -> None:
    if isinstance(std, TensorBase) and bool((np_view(std) < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    draw(NORMAL, out, generator, 0.0, 1.0)
    values = np_view(out)
    values *= np_view(std) if isinstance(std, TensorBase) else std
    values += np_view(mean) if isinstance(mean, TensorBase) else mean


def _multinomial(out: Any, self: Any, num_samples: int, replacement: bool, generator: Any) -> None:
    import numpy

    weights = np_view(self).astype(numpy.float64)
    if not (numpy.isfinite(weights) & (weights >= 0)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    total = weights.sum(-1, keepdims=True)
    if (total <= 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement and num_samples > 1 and ((weights > 0).sum(-1) < num_samples).any():
        raise RuntimeError(
            "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)")
    rows = weights.reshape(-1, weights.shape[-1])
    result = np_view(out).reshape(-1, num_samples)
    if replacement:
        drawn = _noise(out, (rows.shape[0], num_samples), UNIFORM, generator)
        for i, row in enumerate(numpy.cumsum(rows / rows.sum(-1, keepdims=True), -1)):
            last = int(numpy.flatnonzero(rows[i])[-1])
            result[i] = numpy.minimum(numpy.searchsorted(row, drawn[i], side="right"), last)
        return
    # The largest of weight / exponential noise is drawn with probability proportional to the weight.
    noise = _noise(out, rows.shape, EXPONENTIAL, generator)
    result[...] = numpy.argsort(-rows / noise, -1, kind="stable")[:, :num_samples]


def _noise(out: Any, shape: Any, kind: Any, generator: Any) -> Any:
    from ..._dtype import float64

    t = empty_contiguous(tuple(shape), float64, out._device)
    draw(kind, t, generator, 0.0 if kind == UNIFORM else 1.0, 1.0)
    return np_view(t)


_KERNELS: dict[str, Any] = {"randint": _randint, "randint_like": _randint_like, "random": _random,
                            "randperm": _randperm,
                   "exponential": _exponential, "geometric": _geometric, "bernoulli.Tensor": _bernoulli_p}
for _name, _fn in _KERNELS.items():
    cpu(_name, into(_fn, aliasing=True))
cpu("bernoulli", into(_bernoulli))
cpu("normal.Tensor_Tensor", into(_normal_of))
cpu("multinomial", into(_multinomial))
