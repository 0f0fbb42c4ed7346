"""Random numbers on NPUs: the lines that draw them, from a generator's seed and offset.

Invariant: every draw takes a range of offsets from its generator that no other draw gets, so that results depend on
seeds and on the order of the calls only. Nothing random comes from the host.
"""
from __future__ import annotations

import math
from typing import Any

from ...._dtype import bool as bool_
from ...._dtype import dtype, float32, float64
from ...._ops.rules.layout import expand_strides
from ...._random import Generator, accelerator_generator
from ...._strides import contiguous_strides
from ...._tensor_base import TensorBase, alias, numel
from ...common.runtime import empty
from .. import creation, table
from ..kernels import nearest
from ..lines import call, into, npu
from ..memory import captured_in, stream_of
from ..runtime import device_at

# What a random_() without bounds draws from: [0, 2**digits] of a float, [0, largest] of an integer.
_FLOAT_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def default_generator(index: int) -> Generator:
    """The default generator of a device."""
    return accelerator_generator(device_at(index))


def draw(generator: Any, t: TensorBase) -> tuple[int, int]:
    """Seed and offset for as many numbers as `t` has elements, both as signed integers; the generator moves on."""
    if generator is None:
        generator = accelerator_generator(t._device)
    elif generator.device != t._device:
        raise RuntimeError(f"Expected a '{t._device}' generator, but found one of device '{generator.device}'")
    storage: Any = t._storage
    index = storage.allocator.index
    if captured_in(index, stream_of(index)) is not None:
        raise RuntimeError(
            "random numbers cannot be drawn while an NPU graph is captured: seed and offset are given to the device as "
            "numbers, so every replay would draw the same"
        )
    state = memoryview(generator._state)
    seed = int.from_bytes(state[:8], "little", signed=True)
    offset = int.from_bytes(state[8:], "little")
    # The vendor asks for multiples of four.
    state[8:] = ((offset + (int(numel(t)) + 3) // 4 * 4) % (1 << 62)).to_bytes(8, "little")
    return seed, offset


def _filled(out: TensorBase, function: str, name: str, fill: Any) -> None:
    """Let a vendor function draw into `out`, through a dtype it knows."""
    want = nearest(out._dtype, table.signature(function).params[0].mask)
    if want is None:
        raise RuntimeError(f"{name}: {out._dtype.name} is not available on NPU: {function} does not draw it")
    target = out if want is out._dtype else empty(out._shape, contiguous_strides(out._shape), want, out._device)
    if numel(out) > 0:
        fill(target)
        if target is not out:
            creation.copy(out, target)


def uniform(out: TensorBase, low: float, high: float, generator: Any, name: str = "uniform_") -> None:
    if out._dtype.is_complex:
        out = creation.as_pairs(out)

    def fill(t: TensorBase) -> None:
        seed, offset = draw(generator, t)
        call("aclnnInplaceUniform", name, t, float(low), float(high), seed % (1 << 64), offset)

    _filled(out, "aclnnInplaceUniform", name, fill)


def normal(out: TensorBase, mean: float, std: float, generator: Any, name: str = "normal_") -> None:
    if out._dtype.is_complex:
        # The variance is that of the complex number.
        out, std = creation.as_pairs(out), std / math.sqrt(2)

    def fill(t: TensorBase) -> None:
        seed, offset = draw(generator, t)
        call("aclnnInplaceNormal", name, t, float(mean), float(std), seed, offset)

    _filled(out, "aclnnInplaceNormal", name, fill)


def integers(out: TensorBase, low: int, high: int, generator: Any, name: str = "random_") -> None:
    """From low to high - 1."""

    def fill(t: TensorBase) -> None:
        seed, offset = draw(generator, t)
        call("aclnnInplaceRandom", name, t, low, min(high, 2 ** 63 - 1), seed, offset)

    _filled(out, "aclnnInplaceRandom", name, fill)


def _top(dt: dtype) -> int:
    """One more than the largest integer a random_() without bounds draws."""
    if dt is bool_:
        return 2
    if dt.name in _FLOAT_DIGITS:
        return int(2 ** _FLOAT_DIGITS[dt.name]) + 1
    return int(2 ** (8 * dt.itemsize - dt.is_signed))


def _random(out: Any, self: Any, low: int | None, high: int | None, generator: Any) -> None:
    integers(out, low or 0, _top(out._dtype) if high is None else high, generator)


def _randperm(out: Any, n: int, generator: Any, *options: Any) -> None:
    seed, offset = draw(generator, out)
    if n:
        want = nearest(out._dtype, table.signature("aclnnRandperm").params[3].mask)
        target = out if want is out._dtype else empty(out._shape, (1,), want or out._dtype, out._device)
        call("aclnnRandperm", "randperm", n, seed, offset, target)
        if target is not out:
            creation.copy(out, target)


def _noise(out: Any, generator: Any, name: str) -> Any:
    """Uniform numbers in [0, 1) of a float that is wide enough for functions of them."""
    t = empty(out._shape, contiguous_strides(out._shape), float64 if out._dtype is float64 else float32, out._device)
    uniform(t, 0.0, 1.0, generator, name)
    return t


def _exponential(out: Any, self: Any, lambd: float, generator: Any) -> None:
    creation.copy(out, (-_noise(out, generator, "exponential_")).log1p() / -lambd)


def _cauchy(out: Any, self: Any, median: float, sigma: float, generator: Any) -> None:
    creation.copy(out, ((_noise(out, generator, "cauchy_") - 0.5) * math.pi).tan() * sigma + median)


def _log_normal(out: Any, self: Any, mean: float, std: float, generator: Any) -> None:
    t: Any = empty(out._shape, contiguous_strides(out._shape), float64 if out._dtype is float64 else float32,
                   out._device)
    normal(t, mean, std, generator, "log_normal_")
    creation.copy(out, t.exp())


def _geometric(out: Any, self: Any, p: float, generator: Any) -> None:
    trials = ((-_noise(out, generator, "geometric_")).log1p() / math.log1p(-p)).ceil() if p < 1 else None
    creation.fill(out, 1) if trials is None else creation.copy(out, trials.clamp_min(1))


def bernoulli(out: Any, self: Any, p: Any, generator: Any) -> None:
    if not isinstance(p, TensorBase):

        def fill(t: TensorBase) -> None:
            seed, offset = draw(generator, t)
            call("aclnnInplaceBernoulli", "bernoulli_", t, float(p), seed, offset)

        _filled(out, "aclnnInplaceBernoulli", "bernoulli_", fill)
        return
    accepted = nearest(p._dtype, table.signature("aclnnInplaceBernoulliTensor").params[1].mask)
    chance = p
    if accepted is not p._dtype:
        chance = empty(p._shape, contiguous_strides(p._shape), accepted or p._dtype, p._device)
        creation.cast_into(chance, p, "bernoulli_")
    if chance._shape != out._shape:
        chance = alias(chance, out._shape, expand_strides(chance, out._shape), chance._offset)

    def drawn(t: TensorBase) -> None:
        seed, offset = draw(generator, t)
        call("aclnnInplaceBernoulliTensor", "bernoulli_", t, chance, seed, offset)

    _filled(out, "aclnnInplaceBernoulliTensor", "bernoulli_", drawn)


def _normal_of(out: Any, mean: Any, std: Any, generator: Any) -> None:
    # Whether every std is at least 0 cannot be asked without waiting for the device.
    normal(out, 0.0, 1.0, generator, "normal")
    out.mul_(std).add_(mean)


def _multinomial(out: Any, self: Any, num_samples: int, replacement: bool, generator: Any) -> None:
    if numel(out) == 0:
        draw(generator, self)
        return
    # As PyTorch does on any device, the host asks what the weights are. A NaN is neither.
    good = (self.amin() >= 0).logical_and(self.amax() < math.inf)
    if not bool(good.item()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if bool((self.sum(-1) == 0).any().item()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    seed, offset = draw(generator, self)
    call("aclnnMultinomial", "multinomial", self, num_samples, replacement, seed, offset, out)


npu("rand", into(lambda out, size, generator, *o: uniform(out, 0.0, 1.0, generator, "rand")))
npu("randn", into(lambda out, size, generator, *o: normal(out, 0.0, 1.0, generator, "randn")))
npu("rand_like", into(lambda out, self, *o: uniform(out, 0.0, 1.0, None, "rand_like")))
npu("randn_like", into(lambda out, self, *o: normal(out, 0.0, 1.0, None, "randn_like")))
npu("randint", into(lambda out, low, high, size, generator, *o: integers(out, low, high, generator, "randint")))
npu("randint_like", into(lambda out, self, low, high, *o: integers(out, low, high, None, "randint_like")))
npu("randperm", into(_randperm))
npu("uniform", into(lambda out, self, low, high, generator: uniform(out, low, high, generator), aliasing=True))
npu("normal", into(lambda out, self, mean, std, generator: normal(out, mean, std, generator), aliasing=True))
npu("random", into(_random, aliasing=True))
npu("exponential", into(_exponential, aliasing=True))
npu("cauchy", into(_cauchy, aliasing=True))
npu("log_normal", into(_log_normal, aliasing=True))
npu("geometric", into(_geometric, aliasing=True))
npu("bernoulli", into(lambda out, self, generator: bernoulli(out, self, self, generator)))
npu("bernoulli.Tensor", into(bernoulli, aliasing=True))
npu("normal.Tensor_Tensor", into(_normal_of))
npu("multinomial", into(_multinomial))
