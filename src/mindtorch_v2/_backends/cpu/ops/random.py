"""CPU lines of random numbers."""
from __future__ import annotations

from typing import Any

from .... import _native
from ...._dtype import bool as bool_
from ...._dtype import float64
from ...._ops.rules.layout import expand_strides
from ...._ops.rules.random import LEAST_INT64, integer_range
from ...._strides import contiguous_strides
from ...._tensor_base import TensorBase, is_contiguous, numel
from ...common.runtime import copy_same_device, empty_contiguous
from ..kernels.dense import deliver, dense_as, target, wide_dtype
from ..kernels.random import (
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
from ..lines import cpu, into
from ..numpy_view import np_view

cpu("rand", Draw(UNIFORM, -1, 1, 0.0, 1.0))
cpu("randn", Draw(NORMAL, -1, 1, 0.0, 1.0))
cpu("rand_like", Draw(UNIFORM, -1, -1, 0.0, 1.0))
cpu("randn_like", Draw(NORMAL, -1, -1, 0.0, 1.0))
cpu("uniform", Draw(UNIFORM, 1, 3, 0.0, 1.0))
cpu("normal", Draw(NORMAL, 1, 3, 0.0, 1.0))
cpu("cauchy", Draw(CAUCHY, 1, 3, 0.0, 1.0))
cpu("log_normal", Draw(LOG_NORMAL, 1, 3, 0.0, 1.0))


def _between(out: Any, low: int, high: int | None, generator: Any) -> None:
    first, last = integer_range(low, high, out._dtype)
    draw(INTEGERS, out, generator, first, last - first + 1)


def _randint(out: Any, low: int, high: int, size: Any, generator: Any, *options: Any) -> None:
    _between(out, low, high, generator)


def _randint_like(out: Any, self: Any, low: int, high: int, *options: Any) -> None:
    _between(out, low, high, None)


def _random(out: Any, self: Any, low: int | None, high: int | None, generator: Any) -> None:
    if low is None and high is None:
        draw(FULL_RANGE, out, generator, 0, 0)
    elif high is None and low == LEAST_INT64:
        # A range of 2 ** 64 wraps to 0, which the native module knows.
        draw(INTEGERS, out, generator, 0, 2 ** 64)
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
    if isinstance(std, TensorBase) and _any_negative(std):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    draw(NORMAL, out, generator, 0.0, 1.0)
    if out._dtype.is_complex:
        values = np_view(out)
        values *= np_view(std) if isinstance(std, TensorBase) else std
        values += np_view(mean) if isinstance(mean, TensorBase) else mean
        return
    for code, by in ((_native.MUL, std), (_native.ADD, mean)):
        place = out._storage, int(out._offset), out._stride, out._dtype.code
        given: tuple[Any, int, Any, Any] = (by, 0, (), 0)
        if isinstance(by, TensorBase):
            given = by._storage, int(by._offset), expand_strides(by, out._shape), by._dtype.code
        _native.binary(code, *place, *given, *place, out._shape, out._dtype.code, 1)


def _any_negative(t: TensorBase) -> bool:
    """A NaN counts as such."""
    shape, stride, code = t._shape, contiguous_strides(t._shape), bool_.code
    right = _native.binary(_native.GE, t._storage, int(t._offset), t._stride, t._dtype.code, 0, 0, (), 0,
                           None, 0, stride, code, shape, t._dtype.code, 1)
    found = _native.reduce(_native.ALL, right, 0, stride, code, None, 0, (0,) * len(shape), code, shape, code, 1)
    return not _native.item(found, 0, code)


def _multinomial(out: Any, self: Any, num_samples: int, replacement: bool, generator: Any) -> None:
    if numel(out) == 0:
        return
    if replacement and num_samples > 1:
        _with_replacement(out, self, num_samples, generator)
    else:
        _without_replacement(out, self, num_samples, generator)


def _with_replacement(out: Any, self: Any, num_samples: int, generator: Any) -> None:
    """Where a uniform number falls among the cumulated weights."""
    n = self._shape[-1]
    weights = dense_as(self, wide_dtype(self._dtype))
    drawn = _noise(out, (*self._shape[:-1], num_samples), float64, UNIFORM, generator)
    found = target(out, out._dtype)
    rows = int(numel(out)) // num_samples
    fault = _native.random_places(weights._storage, int(weights._offset), weights._dtype.code, rows, n,
                                  drawn._storage, 0, num_samples, found._storage, int(found._offset))
    if fault:
        raise RuntimeError(f"invalid multinomial distribution ({_FAULTS[fault - 1]})")
    deliver(out, found)


# As in random_given.cpp; what is no number counts as negative.
_FAULTS = ("encountering probability entry < 0", "encountering probability entry = infinity or NaN",
           "sum of probabilities <= 0")


def _without_replacement(out: Any, self: Any, num_samples: int, generator: Any) -> None:
    """The largest of weight / exponential noise is drawn with probability proportional to the weight."""
    if not (self.isfinite() & (self >= 0)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (self.sum(-1) == 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    # Rounded to the weights' dtype before they are compared; a half may overflow to infinity, as it does in PyTorch.
    scores = self / _noise(out, self._shape, self._dtype, EXPONENTIAL, generator)
    drawn = scores.argmax(-1, True) if num_samples == 1 else scores.topk(num_samples, -1)[1]
    copy_same_device(out, drawn)


def _noise(out: Any, shape: Any, dt: Any, kind: Any, generator: Any) -> Any:
    t = empty_contiguous(tuple(shape), dt, out._device)
    draw(kind, t, generator, 0.0 if kind == UNIFORM else 1.0, 1.0)
    return t


_KERNELS: dict[str, Any] = {"randint": _randint, "randint_like": _randint_like, "random": _random,
                            "randperm": _randperm,
                   "exponential": _exponential, "geometric": _geometric, "bernoulli.Tensor": _bernoulli_p,
                   "bernoulli": _bernoulli, "normal.Tensor_Tensor": _normal_of}
for _name, _fn in _KERNELS.items():
    cpu(_name, into(_fn, aliasing=True))
cpu("multinomial", into(_multinomial, calls_ops=True))
