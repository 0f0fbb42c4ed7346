"""Random numbers. Every row takes a generator and, where it fills a tensor, is the functional form of the in-place one, so
that functionalization works. Public functions are in `_random.py`."""
from __future__ import annotations

from typing import Any

from .._dispatch.op import Op, Spec
from .._dtype import int64
from . import copy
from .rules.base import like, spec
from .rules.pointwise import broadcast, ordered_strides
from .rules.shape import FactoryRule, LikeRule, c_name, check_options, check_sizes, placed, preserved_strides
from .table import op

Ints = tuple[int, ...]
_G = "Generator? generator=None"
_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def _zeros(g: Any) -> Any:
    return copy.ZERO.call((g,))


def _floating(kernel: str, rule: Any) -> Any:
    """A factory's rule that also refuses dtypes nothing continuous can be drawn in."""
    def infer(*args: Any) -> Spec:
        s: Spec = rule.infer(args)
        check_float(kernel, s.dtype)
        return s

    return infer


def check_float(kernel: str, dt: Any) -> None:
    if dt.category < 2 or (dt.category == 2 and dt.itemsize == 1):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dt.scalar_name}'")


def _drawn(schema: str, rule: Any, out: bool = False) -> Op:
    return op(schema, meta=rule, nondifferentiable=True, function=False, method=False, out=out)


# -- factories ----------------------------------------------------------------------------------------------------
class _SizedRule:
    """(size, generator, dtype, layout, device, pin_memory)"""

    def __init__(self, name: str, kernel: str) -> None:
        self.rule = FactoryRule(name, 1)
        self.kernel = kernel

    def __call__(self, size: Ints, generator: Any, *options: Any) -> Spec:
        s: Spec = self.rule.infer((size, *options))
        check_float(self.kernel, s.dtype)
        return s


RAND = _drawn(f"rand(int[] size, *, {_G}, {_OPTIONS}) -> Tensor", _SizedRule("rand", "check_uniform_bounds"))
RANDN = _drawn(f"randn(int[] size, *, {_G}, {_OPTIONS}) -> Tensor", _SizedRule("randn", "normal_kernel_cpu"))
_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None"
RAND_LIKE = _drawn(f"rand_like(Tensor self, *, {_LIKE}) -> Tensor",
                   _floating("check_uniform_bounds", LikeRule("rand_like", 1)))
RANDN_LIKE = _drawn(f"randn_like(Tensor self, *, {_LIKE}) -> Tensor",
                    _floating("normal_kernel_cpu", LikeRule("randn_like", 1)))

_BOUNDS = {
    "uint8": (0, 255, "unsigned char"), "int8": (-128, 127, "signed char"), "int16": (-32768, 32767, "short"),
    "int32": (-2147483648, 2147483647, "int"), "int64": (-9223372036854775808, 9223372036854775807, "long"),
    "bool": (0, 1, "bool"), "uint16": (0, 65535, "unsigned short"), "uint32": (0, 4294967295, "unsigned int"),
    "uint64": (0, 18446744073709551615, "unsigned long"), "float32": (-3.4028234663852886e38, 3.4028234663852886e38, "float"),
    "float64": (-1.7976931348623157e308, 1.7976931348623157e308, "double"), "float16": (-65504, 65504, "c10::Half"),
    "bfloat16": (-3.3895313892515355e38, 3.3895313892515355e38, "c10::BFloat16"),
}


def check_integers(low: int, high: int, dt: Any) -> None:
    """The range of `random_` and `randint` must not be empty and must fit the dtype."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    bounds = _BOUNDS.get(dt.name)
    if bounds is None:
        raise NotImplementedError(f"\"random_from_to\" not implemented for '{dt.scalar_name}'")
    least, most, name = bounds
    if low < least or low > most:
        raise RuntimeError(f"from is out of bounds for {name}")
    if high - 1 < least or high - 1 > most:
        raise RuntimeError(f"to - 1 is out of bounds for {name}")


def _randint(low: int, high: int, size: Ints, generator: Any, dtype: Any, layout: Any, device: Any,
             pin_memory: Any) -> Spec:
    check_options("randint", layout, pin_memory)
    check_sizes("randint", size)
    dt = dtype or int64
    check_integers(low, high, dt)
    return spec(size, dt, placed(device))


RANDINT = _drawn(f"randint(int low, int high, int[] size, *, {_G}, {_OPTIONS}) -> Tensor", _randint)


def _randint_like(self: Any, low: int, high: int, *options: Any) -> Spec:
    s: Spec = _RANDINT_LIKE_RULE.infer((self, *options))
    check_integers(low, high, s.dtype)
    return s


_RANDINT_LIKE_RULE = LikeRule("randint_like", 1)
RANDINT_LIKE = _drawn(f"randint_like(Tensor self, int low, int high, *, {_LIKE}) -> Tensor", _randint_like)


def _randperm(n: int, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Spec:
    check_options("randperm", layout, pin_memory)
    check_sizes("randperm", (n,))
    dt = dtype or int64
    top = {"float16": 2049, "bfloat16": 257, "float32": 16777217, "float64": 9007199254740993}.get(dt.name)
    if top is None:
        bounds = _BOUNDS.get(dt.name)
        if bounds is None or dt.category == 0:
            raise NotImplementedError(f"\"randperm\" not implemented for '{dt.scalar_name}'")
        top = int(bounds[1]) + 1
    if n > top:
        if dt.category == 1:
            raise RuntimeError(f"value cannot be converted to type {c_name(dt)} without overflow")
        raise RuntimeError(f"n cannot be greater than {top} for {dt.scalar_name} type.")
    return spec((n,), dt, placed(device))


RANDPERM = _drawn(f"randperm(int n, *, {_G}, {_OPTIONS}) -> Tensor", _randperm)


# -- filling ------------------------------------------------------------------------------------------------------
def _filling(schema: str, check: Any, node: str | None = None) -> Op:
    """The functional form of an in-place fill: this tensor's shape and dtype, other values."""
    def rule(self: Any, *args: Any) -> Spec:
        check(self._dtype, *args)
        return spec(self._shape, self._dtype, self._device, preserved_strides(self))

    return op(schema, meta=rule, inplace=True, function=False, method=False, node=node,
              grad=dict(self=lambda g: _zeros(g)))


def _uniform(dt: Any, low: float, high: float, generator: Any) -> None:
    check_float("check_uniform_bounds", dt)
    if not dt.is_complex:
        most = _BOUNDS[dt.name][1]
        for name, x in (("from", low), ("to", high)):
            if not -most <= x <= most:
                raise RuntimeError(f"{name} is out of bounds for {_BOUNDS[dt.name][2]}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if not dt.is_complex and high - low > most:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{dt.scalar_name}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit")


def check_std(std: float) -> None:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def _normal(dt: Any, mean: float, std: float, generator: Any) -> None:
    check_std(std)
    check_float("normal_kernel_cpu", dt)


def _random(dt: Any, low: int | None, high: int | None, generator: Any) -> None:
    if low is not None and high is not None:
        check_integers(low, high, dt)
    elif dt.name not in _BOUNDS:
        raise NotImplementedError(f"\"random_from_to\" not implemented for '{dt.scalar_name}'")


def _exponential(dt: Any, lambd: float, generator: Any) -> None:
    if not dt.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {dt.scalar_name}")
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")


def _cauchy(dt: Any, median: float, sigma: float, generator: Any) -> None:
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if not dt.is_floating_point:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {dt.scalar_name}")


def _log_normal(dt: Any, mean: float, std: float, generator: Any) -> None:
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    check_float("log_normal_cpu", dt)


def _geometric(dt: Any, p: float, generator: Any) -> None:
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")


UNIFORM = _filling(f"uniform(Tensor self, float low=0, float high=1, *, {_G}) -> Tensor", _uniform)
NORMAL = _filling(f"normal(Tensor self, float mean=0, float std=1, *, {_G}) -> Tensor", _normal)
RANDOM = _filling(f"random(Tensor self, int? low=None, int? high=None, *, {_G}) -> Tensor", _random, "RandomBackward2")
EXPONENTIAL = _filling(f"exponential(Tensor self, float lambd=1, *, {_G}) -> Tensor", _exponential)
CAUCHY = _filling(f"cauchy(Tensor self, float median=0, float sigma=1, *, {_G}) -> Tensor", _cauchy)
LOG_NORMAL = _filling(f"log_normal(Tensor self, float mean=1, float std=2, *, {_G}) -> Tensor", _log_normal)
GEOMETRIC = _filling(f"geometric(Tensor self, float p, *, {_G}) -> Tensor", _geometric)


# -- Bernoulli, normal with tensors, multinomial --------------------------------------------------------------------
def _bernoulli(self: Any, generator: Any) -> Spec:
    check_float("bernoulli_tensor_cpu_p_", self._dtype)
    return like(self)


def _bernoulli_p(self: Any, p: Any, generator: Any) -> Spec:
    if hasattr(p, "_shape"):
        check_float("bernoulli_tensor_cpu_p_", p._dtype)
        shape = broadcast([self, p])
        if shape != self._shape:
            raise RuntimeError(
                f"output with shape {list(self._shape)} doesn't match the broadcast shape {list(shape)}")
    elif not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return spec(self._shape, self._dtype, self._device, preserved_strides(self))


BERNOULLI = op(f"bernoulli(Tensor self, *, {_G}) -> Tensor", meta=_bernoulli, function=False, method=False, out=True,
               grad=dict(self=lambda g: _zeros(g)))
BERNOULLI_P = op(f"bernoulli.Tensor(Tensor self, Tensor p, *, {_G}) -> Tensor", meta=_bernoulli_p, inplace=True,
                 function=False, method=False, numbers=("p",),
                 node=lambda self, p, generator: f"BernoulliBackward{1 if hasattr(p, '_shape') else 2}",
                 grad=dict(self=lambda g: _zeros(g), p=lambda g: _zeros(g)))


def _normal_of(mean: Any, std: Any, generator: Any) -> Spec:
    tensors = [t for t in (mean, std) if hasattr(t, "_shape")]
    for t in tensors:
        check_float("normal_kernel_cpu", t._dtype)
    if not hasattr(std, "_shape"):
        check_std(std)
    shape = broadcast(tensors)
    return spec(shape, tensors[0]._dtype, tensors[0]._device, ordered_strides(shape, tensors))


NORMAL_OF = op(f"normal.Tensor_Tensor(Tensor mean, Tensor std, *, {_G}) -> Tensor", meta=_normal_of, out=True,
               function=False, method=False, numbers=("mean", "std"),
               node=lambda mean, std, generator:
               f"NormalBackward{3 if hasattr(mean, '_shape') and hasattr(std, '_shape') else 1 if hasattr(mean, '_shape') else 2}",
               grad=dict(mean=lambda g: _zeros(g), std=lambda g: _zeros(g)))


def _multinomial(self: Any, num_samples: int, replacement: bool, generator: Any) -> Spec:
    if self.dim() not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not self._dtype.is_floating_point:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {self._dtype.scalar_name}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > self._shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    return like(self, (*self._shape[:-1], num_samples), int64)


MULTINOMIAL = op(f"multinomial(Tensor self, int num_samples, bool replacement=False, *, {_G}) -> Tensor",
                 meta=_multinomial, nondifferentiable=True, out=True)
