"""Random numbers. Every row takes a generator and, where it fills a tensor, is the functional form of the in-place one,
so that functionalization works. Public functions are in `_random.py`."""
from __future__ import annotations

from typing import Any

from .._dispatch.op import Op, Spec
from .._dtype import int64
from .._dtype_names import c_name
from . import copy
from .rules import random as rules
from .rules.base import like, spec
from .rules.layout import preserved_strides
from .rules.pointwise import broadcast
from .rules.random import (
    INTS,
    UNSIGNED,
    FillingRule,
    FloatLikeRule,
    RandintRule,
    SizedRule,
    check_bernoulli,
    check_drawn_here,
    check_float,
    check_integers,
    check_std,
)
from .rules.shape import LikeRule, check_options, check_sizes, placed
from .table import op

Ints = tuple[int, ...]
_G = "Generator? generator=None"
_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def _zeros(g: Any) -> Any:
    return copy.ZERO.call((g,))


def _drawn(schema: str, rule: Any, out: bool = False) -> Op:
    return op(schema, meta=rule, nondifferentiable=True, function=False, method=False, out=out)


# -- factories ----------------------------------------------------------------------------------------------------
RAND: Op = _drawn(f"rand(SymInt[] size, *, {_G}, {_OPTIONS}) -> Tensor", SizedRule("rand", "check_uniform_bounds"))
RANDN: Op = _drawn(f"randn(SymInt[] size, *, {_G}, {_OPTIONS}) -> Tensor", SizedRule("randn", "normal_kernel_cpu"))
_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None"
RAND_LIKE: Op = _drawn(f"rand_like(Tensor self, *, {_LIKE}) -> Tensor",
                   FloatLikeRule("rand_like", "check_uniform_bounds"))
RANDN_LIKE: Op = _drawn(f"randn_like(Tensor self, *, {_LIKE}) -> Tensor",
                    FloatLikeRule("randn_like", "normal_kernel_cpu"))

RANDINT: Op = _drawn(f"randint(SymInt low, SymInt high, SymInt[] size, *, {_G}, {_OPTIONS}) -> Tensor", RandintRule())


def _randint_like(self: Any, low: int, high: int, *options: Any) -> Spec:
    s: Spec = _RANDINT_LIKE_RULE.infer((self, *options))
    check_drawn_here("randint_like", self, s)
    check_integers(low, high, s.dtype)
    return s


_RANDINT_LIKE_RULE = LikeRule("randint_like", 1)
RANDINT_LIKE: Op = _drawn(f"randint_like(Tensor self, SymInt low, SymInt high, *, {_LIKE}) -> Tensor", _randint_like)


def _randperm(n: int, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Spec:
    check_options("randperm", layout, pin_memory)
    check_sizes("randperm", (n,))
    dt = dtype or int64
    top = {"float16": 2049, "bfloat16": n, "float32": 16777217, "float64": 9007199254740993}.get(dt.name)
    if top is None:
        bounds = INTS.get(dt.name)
        if bounds is None or dt.is_bool or dt.name in UNSIGNED:
            raise NotImplementedError(f"\"randperm\" not implemented for '{dt.scalar_name}'")
        top = bounds.most + 1
    if n > top:
        if dt.is_integer:
            raise RuntimeError(f"value cannot be converted to type {c_name(dt)} without overflow")
        raise RuntimeError(f"n cannot be greater than {top} for {dt.scalar_name} type.")
    return spec((n,), dt, placed(device))


RANDPERM: Op = _drawn(f"randperm(SymInt n, *, {_G}, {_OPTIONS}) -> Tensor", _randperm)


# -- filling ------------------------------------------------------------------------------------------------------
def _filling(schema: str, kind: Any, node: str | None = None) -> Op:
    """The functional form of an in-place fill."""
    return op(schema, meta=FillingRule(kind), inplace=True, function=False, method=False, node=node,
              grad=dict(self=lambda g: _zeros(g)))


UNIFORM: Op = _filling(f"uniform(Tensor self, float low=0, float high=1, *, {_G}) -> Tensor", rules.UNIFORM)
NORMAL: Op = _filling(f"normal(Tensor self, float mean=0, float std=1, *, {_G}) -> Tensor", rules.NORMAL)
RANDOM: Op = _filling(f"random(Tensor self, int? low=None, int? high=None, *, {_G}) -> Tensor", rules.RANDOM,
                      "RandomBackward2")
EXPONENTIAL: Op = _filling(f"exponential(Tensor self, float lambd=1, *, {_G}) -> Tensor", rules.EXPONENTIAL)
CAUCHY: Op = _filling(f"cauchy(Tensor self, float median=0, float sigma=1, *, {_G}) -> Tensor", rules.CAUCHY)
LOG_NORMAL: Op = _filling(f"log_normal(Tensor self, float mean=1, float std=2, *, {_G}) -> Tensor", rules.LOG_NORMAL)
GEOMETRIC: Op = _filling(f"geometric(Tensor self, float p, *, {_G}) -> Tensor", rules.GEOMETRIC)


# -- Bernoulli, normal with tensors, multinomial --------------------------------------------------------------------
def _bernoulli(self: Any, generator: Any) -> Spec:
    if self.numel() > 0:
        check_bernoulli("bernoulli_tensor_cpu_self_", self._dtype)
        check_float("bernoulli_tensor_cpu_p_", self._dtype)
    return like(self)


def _bernoulli_p(self: Any, p: Any, generator: Any) -> Spec:
    if hasattr(p, "_shape"):
        if self.numel() > 0:
            check_bernoulli("bernoulli_tensor_cpu_self_", self._dtype)
            check_float("bernoulli_tensor_cpu_p_", p._dtype)
        shape = broadcast([self, p])
        if shape != self._shape:
            raise RuntimeError(
                f"output with shape {list(self._shape)} doesn't match the broadcast shape {list(shape)}")
    elif not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    elif self.numel() > 0:
        check_bernoulli("bernoulli_scalar_cpu_", self._dtype)
    return spec(self._shape, self._dtype, self._device, preserved_strides(self))


BERNOULLI: Op = op(f"bernoulli(Tensor self, *, {_G}) -> Tensor", meta=_bernoulli, function=False, method=False,
                   out=True, grad=dict(self=lambda g: _zeros(g)))
BERNOULLI_P: Op = op(f"bernoulli.Tensor(Tensor self, Tensor p, *, {_G}) -> Tensor", meta=_bernoulli_p, inplace=True,
                 function=False, method=False, numbers=("p",),
                 node=lambda self, p, generator: f"BernoulliBackward{1 if hasattr(p, '_shape') else 2}",
                 grad=dict(self=lambda g: _zeros(g), p=lambda g: _zeros(g)))


def _normal_of(mean: Any, std: Any, generator: Any) -> Spec:
    tensors = [t for t in (mean, std) if hasattr(t, "_shape")]
    shape = broadcast(tensors)
    if not hasattr(std, "_shape"):
        check_std(std)
    elif std._dtype.is_complex:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    for t in tensors:
        if 0 not in shape:
            check_float("normal_kernel_cpu", t._dtype)
        elif t._dtype.itemsize == 1 and t._dtype.is_floating_point or t._dtype.name in UNSIGNED:
            raise NotImplementedError(f"\"add_stub\" not implemented for '{t._dtype.scalar_name}'")
    return spec(shape, tensors[0]._dtype, tensors[0]._device)


def _normal_node(mean: Any, std: Any) -> str:
    if not hasattr(mean, "_shape"):
        return "NormalBackward2"
    return "NormalBackward3" if hasattr(std, "_shape") else "NormalBackward1"


NORMAL_OF: Op = op(f"normal.Tensor_Tensor(Tensor mean, Tensor std, *, {_G}) -> Tensor", meta=_normal_of, out=True,
               function=False, method=False, numbers=("mean", "std"),
               node=lambda mean, std, generator: _normal_node(mean, std),
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
    if self._shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    return like(self, (*self._shape[:-1], num_samples), int64)


MULTINOMIAL: Op = op(f"multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, {_G}) -> Tensor",
                 meta=_multinomial, nondifferentiable=True, out=True)
