"""Generators and the public functions that draw random numbers.

Invariant: a generator's state is the bytes PyTorch's has, so states can be exchanged, and on the CPU the same seed
gives PyTorch's numbers. A state lies on the host, also an accelerator's: a seed and an offset.
"""

from __future__ import annotations

import os
import struct
from typing import Any, NoReturn

from . import _native
from ._autograd.inplace import unrecorded
from ._backends.common.kernels import resize
from ._backends.cpu.kernels.random import DEFAULT
from ._creation import (
    _MISSING,
    _device_arg,
    _dtype_arg,
    _factory_device,
    _finish,
    _int,
    _like,
    _sizes,
    empty,
    empty_like,
    grad_arg,
    stray,
)
from ._device import CPU, device
from ._dispatch.binding import TYPES, is_element, is_index, need, plain_ints
from ._dispatch.op import type_name
from ._dispatch.schema import Arg
from ._dispatch.state import current_default_device, is_grad_enabled
from ._dtype import uint8
from ._numbers import is_number
from ._ops import random as _rows
from ._ops.rules.random import check_std
from ._ops.rules.shape import placed
from ._read_only import seal
from ._sizes import is_long
from ._tensor_base import TensorBase, make
from ._tensor_base import requires_grad as requires_grad_of

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]

_STATE_BYTES = 5056
# Seed and offset, eight bytes each.
_ACCELERATOR_BYTES = 16
_DEFAULT_SEED = 67280421310721
# What a state begins with, and where in its words a CPU's is: how many are left, whether it was seeded, the next.
_SEED, _POSITIONS = struct.Struct("<Q"), struct.Struct("<IIQ")


class Generator:
    """A source of random numbers with its own state."""

    __module__ = __name__.partition(".")[0] + "._C"  # as messages name it
    __slots__ = ("_state", "_device", "__weakref__")

    def __init__(self, device: Any = None) -> None:
        where = CPU if device is None else _device_arg("Generator", device)
        if where.type not in ("cpu", "npu"):
            raise RuntimeError(f"{where.type.upper()} device type not an accelerator.")
        self._device = where if where.type == "cpu" else placed(where)
        self._state = _native.Storage(_STATE_BYTES if where.type == "cpu" else _ACCELERATOR_BYTES)
        Generator.manual_seed(self, _DEFAULT_SEED)

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {hex(id(self))}>"

    @property
    def device(self) -> device:
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Start the sequence that belongs to `seed`."""
        if type(seed) is not int:
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -0x8000_0000_0000_0000 <= seed <= 0xFFFF_FFFF_FFFF_FFFF:
            raise ValueError("Overflow when unpacking long long")
        if self._device.type == "cpu":
            _native.random_seed(self._state, seed % (1 << 64))
        else:
            memoryview(self._state)[:] = (seed % (1 << 64)).to_bytes(8, "little") + bytes(8)
        return self

    def seed(self) -> int:
        """Start a sequence nobody can foresee; returns its seed."""
        fresh = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(fresh)
        return fresh

    def initial_seed(self) -> int:
        found: int = _SEED.unpack_from(self._state)[0]
        return found

    def get_state(self) -> Any:
        """The state as a tensor of bytes."""
        size = self._state.nbytes
        copy = _native.Storage(size)
        memoryview(copy)[:] = memoryview(self._state)
        return make(copy, 0, (size,), (1,), uint8, CPU, 1)

    def set_state(self, new_state: Any) -> Generator:
        if not isinstance(new_state, TensorBase):
            raise TypeError(f"expected a torch.ByteTensor, but got {type_name(new_state)}")
        if new_state._dtype is not uint8 or new_state._device.type != "cpu":
            raise TypeError("RNG state must be a torch.ByteTensor")
        source: Any = new_state
        size = self._state.nbytes
        if new_state._shape != (size,) or new_state._stride != (1,):
            source = self._line_of(new_state)
        start = source._offset
        given = memoryview(source._storage)[start : start + size]
        if self._device.type == "cpu":
            _check_twister(given)
        memoryview(self._state)[:] = given
        return self

    def _line_of(self, t: Any) -> Any:
        """A state of another shape, with its bytes side by side."""
        if not t.is_contiguous():
            raise RuntimeError("RNG state must be contiguous")
        size = self._state.nbytes
        if t.numel() != size:
            if self._device.type != "cpu":
                raise RuntimeError("RNG state is wrong size")
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {size} but found the input RNG state size to be {t.numel()}"
            )
        return t.contiguous()

    def graphsafe_get_state(self) -> NoReturn:
        """For generators that graphs of a device record, which none here is."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Any) -> NoReturn:
        """As `graphsafe_get_state`."""
        if not isinstance(state, Generator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def clone_state(self) -> Generator:
        """A new generator in the same state."""
        return Generator(self._device).set_state(self.get_state())

    def get_offset(self) -> int:
        """How many numbers were drawn since seeding; an accelerator's generator counts them."""
        return int.from_bytes(bytes(memoryview(self._counting())[8:16]), "little")

    def set_offset(self, offset: int) -> Generator:
        memoryview(self._counting())[8:16] = offset.to_bytes(8, "little")
        return self

    def _counting(self) -> Any:
        if self._device.type == "cpu":
            raise RuntimeError("CPU Generator does not use offset")
        return self._state

    def __reduce__(self) -> Any:
        offset = None if self._device.type == "cpu" else self.get_offset()
        return Generator, (self._device,), (self.initial_seed(), offset, self.get_state())

    def __setstate__(self, state: Any) -> None:
        from ._serialization.state import SURROUNDINGS

        if SURROUNDINGS.deferred is not None:
            # The tensor has no values yet.
            SURROUNDINGS.deferred.append(lambda: self.set_state(state[2]))
            return
        self.set_state(state[2])


seal(Generator, "torch._C.Generator")


def _check_twister(state: memoryview) -> None:
    """Positions in the 624 words of the state must lie inside."""
    left, seeded, following = _POSITIONS.unpack_from(state, 8)
    if seeded != 1 or not 0 < left <= 624 or following > 624:
        raise RuntimeError("Invalid mt19937 state")


class AcceleratorGenerators:
    """The default generators of accelerators, made when first asked for, with the seed last given to all."""

    made: dict[device, Generator] = {}
    seed = 0


def accelerator_generator(where: device) -> Generator:
    """The default generator of a device other than the CPU."""
    found = AcceleratorGenerators.made.get(where)
    if found is None:
        found = AcceleratorGenerators.made.setdefault(where, Generator(where).manual_seed(AcceleratorGenerators.seed))
    return found


# The generators of devices begin with a number that nobody can foresee; only those that a program makes do not.
default_generator = Generator()
AcceleratorGenerators.seed = default_generator.seed()
DEFAULT.state = default_generator._state
TYPES.generator = Generator


def manual_seed(seed: Any) -> Generator:
    """Seed the default generator of every device."""
    result = default_generator.manual_seed(int(seed))
    AcceleratorGenerators.seed = int(seed)
    for generator in list(AcceleratorGenerators.made.values()):
        generator.manual_seed(int(seed))
    return result


def seed() -> int:
    """Seed the default generators with a number nobody can foresee."""
    fresh = default_generator.seed()
    manual_seed(fresh)
    return fresh


def initial_seed() -> int:
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    default_generator.set_state(new_state)


# -- arguments ----------------------------------------------------------------------------------------------------
def _generator(fname: str, g: Any) -> Any:
    if g is None or isinstance(g, Generator):
        return g
    raise TypeError(f"{fname}(): argument 'generator' must be torch.Generator, not {type(g).__name__}")


def _check_unrecorded(name: str, out: Any) -> None:
    """Numbers are not drawn into a tensor that requires a gradient; `randn` says it as `empty` does."""
    if isinstance(out, TensorBase) and name != "randn" and requires_grad_of(out) and is_grad_enabled():
        raise unrecorded(f"aten::{name}")


def _made(o: Any, args: tuple[Any, ...], out: Any, requires_grad: bool) -> Any:
    """Run a factory, into `out` if given."""
    if requires_grad is not False and requires_grad is not True:
        raise stray(o.title(), args[:1], {"requires_grad": requires_grad})
    t = o.call(args)
    if out is not None:
        _check_unrecorded(o.title(), out)
        if t._shape != out._shape:
            resize(out, t._shape, t._stride)
        t = out.copy_(t)
    return _finish(t, requires_grad) if requires_grad else t


def _filled(
    name: str,
    size: Any,
    options: tuple[Any, Any, Any, Any],
    out: Any,
    requires_grad: Any,
    fill: Any,
    given: tuple[Any, ...],
) -> Any:
    """`out` resized and filled in the order of its own memory."""
    dtype, layout, device, pin_memory = options
    _check_unrecorded(name, out)
    t = empty(size, out=out, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    counter = t._vc
    if counter is not None:
        counter.value -= 1  # resizing and filling are one write
    return _finish(fill((t, *given)), grad_arg(name, requires_grad))


_rand, _randn = _rows.RAND.call, _rows.RANDN.call


# -- factories ----------------------------------------------------------------------------------------------------
def rand(
    *given: Any,
    size: Any = None,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: bool = False,
    **unknown: Any,
) -> Any:
    """rand(*size, *, generator=None, out=None, dtype=None, ...): uniform in [0, 1)."""
    if unknown or (not given and size is None):
        raise stray("rand", given, unknown)
    if (
        generator is dtype is device is layout is out is None
        and not requires_grad
        and not pin_memory
        and plain_ints(given)
    ):
        return _rand((given, None, None, None, current_default_device(), False))
    sizes, g = _sizes("rand", given if size is None else (size,)), _generator("rand", generator)
    if out is not None:
        return _filled("rand", sizes, (dtype, layout, device, pin_memory), out, requires_grad, _uniform_, (0.0, 1.0, g))
    args = (sizes, g, _dtype_arg("rand", dtype), layout, _factory_device("rand", device), pin_memory)
    return _made(_rows.RAND, args, None, requires_grad)


def randn(
    *given: Any,
    size: Any = None,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: bool = False,
    **unknown: Any,
) -> Any:
    """randn(*size, *, generator=None, out=None, dtype=None, ...): normal with mean 0 and deviation 1."""
    if unknown or (not given and size is None):
        raise stray("randn", given, unknown)
    if (
        generator is dtype is device is layout is out is None
        and not requires_grad
        and not pin_memory
        and plain_ints(given)
    ):
        return _randn((given, None, None, None, current_default_device(), False))
    sizes, g = _sizes("randn", given if size is None else (size,)), _generator("randn", generator)
    if out is not None:
        return _filled("randn", sizes, (dtype, layout, device, pin_memory), out, requires_grad, _normal_, (0.0, 1.0, g))
    args = (sizes, g, _dtype_arg("randn", dtype), layout, _factory_device("randn", device), pin_memory)
    return _made(_rows.RANDN, args, None, requires_grad)


def _randint_complaint(given: tuple[Any, ...], low: Any, high: Any, size: Any, named: dict[str, Any]) -> TypeError:
    """PyTorch's words for bounds and sizes that fit none of its signatures."""
    from ._dispatch.complaint import complaint

    for name, value in (("size", size), ("high", high), ("low", low)):
        if value is not None and all(value is not x for x in given):
            named = {name: value, **named}
    return complaint("randint", [], False, given, named)


def _plain_randint(given: tuple[Any, ...]) -> bool:
    """Whether these are one or two plain ints and a tuple of them."""
    if not 2 <= len(given) <= 3 or type(given[-1]) is not tuple:
        return False
    return plain_ints(given[:-1]) and plain_ints(given[-1])


def randint(
    *given: Any,
    low: Any = None,
    high: Any = None,
    size: Any = None,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: bool = False,
    **unknown: Any,
) -> Any:
    """randint(low=0, high, size, *, generator=None, out=None, dtype=None, ...): integers in [low, high)."""
    if unknown:
        raise stray("randint", given, unknown)
    if out is None and low is None and high is None and size is None and _plain_randint(given):
        # The usual call: its arguments need no closer look.
        bounds = (0, given[0]) if len(given) == 2 else given[:2]
        g = _generator("randint", generator)
        placed = (_dtype_arg("randint", dtype), layout, _factory_device("randint", device), pin_memory)
        return _made(_rows.RANDINT, (*bounds, given[-1], g, *placed), None, requires_grad)
    values = list(given)
    absent = any(v is None for v in given)
    if size is None and values and not isinstance(values[-1], int):
        size = values.pop()
    if high is None and values:
        high = values.pop()
    if low is None and values:
        low = values.pop()
    sequence = isinstance(size, (list, tuple)) and (not size or is_element(size[0]))
    if values or absent or not is_index(high) or not (low is None or is_index(low)) or not sequence:
        options = dict(
            generator=generator,
            out=out,
            dtype=dtype,
            layout=layout,
            device=device,
            pin_memory=pin_memory or None,
            requires_grad=requires_grad or None,
        )
        named = {k: v for k, v in options.items() if v is not None}
        raise _randint_complaint(given, low, high, size, named)
    first = 1 if low is None else 2
    bounds = (0 if low is None else _int("randint", "low", 1, low), _int("randint", "high", first, high))
    sizes, g = _sizes("randint", (size,)), _generator("randint", generator)
    if out is not None:
        fill = _rows.RANDOM.row.inplace_op.call
        requires_grad = grad_arg("randint_like", requires_grad)
        return _filled("randint", sizes, (dtype, layout, device, pin_memory), out, requires_grad, fill, (*bounds, g))
    args = (*bounds, sizes, g, _dtype_arg("randint", dtype), layout, _factory_device("randint", device), pin_memory)
    return _made(_rows.RANDINT, args, None, requires_grad)


def randperm(
    n: int,
    *,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: bool = False,
    **unknown: Any,
) -> Any:
    """randperm(n, *, generator=None, out=None, dtype=torch.int64, ...): 0 .. n-1 in random order."""
    if unknown:
        raise stray("randperm", (n,), unknown)
    if out is not None and not isinstance(out, TensorBase):
        raise TypeError(f"randperm(): argument 'out' must be Tensor, not {type_name(out)}")
    args = (
        _int("randperm", "n", 1, n),
        _generator("randperm", generator),
        _dtype_arg("randperm", dtype if out is None else out._dtype),
        layout,
        _factory_device("randperm", device),
        pin_memory,
    )
    return _made(_rows.RANDPERM, args, out, requires_grad)


def _drawn(draw: Any, t: Any, fname: str, generator: Any, requires_grad: Any) -> Any:
    """The rows of the `_like` functions have no generator; the in-place ones do."""
    requires_grad = grad_arg(fname, requires_grad)
    return _finish(draw((t, 0.0, 1.0, _generator(fname, generator))), requires_grad)


def _there(fname: str, input: Any, device: Any) -> Any:
    """A tensor like `input` where the result is to be: the rows draw where their argument is."""
    if device is None or not isinstance(input, TensorBase):
        return input
    wanted = _device_arg(fname, device)
    return input if wanted.type == input._device.type else empty_like(input, device=wanted)


def rand_like(
    input: Any,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: bool = False,
    memory_format: Any = None,
    **unknown: Any,
) -> Any:
    """`rand` with the shape and layout of `input`."""
    if unknown:
        raise stray("rand_like", (input,), unknown)
    if generator is not None:
        t = empty_like(
            input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, memory_format=memory_format
        )
        return _drawn(_uniform_, t, "rand_like", generator, requires_grad)
    input = _there("rand_like", input, device)
    return _like(_rows.RAND_LIKE, (input,), dtype, layout, device, pin_memory, memory_format, requires_grad)


def randn_like(
    input: Any,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: bool = False,
    memory_format: Any = None,
    **unknown: Any,
) -> Any:
    """`randn` with the shape and layout of `input`."""
    if unknown:
        raise stray("randn_like", (input,), unknown)
    if generator is not None:
        t = empty_like(
            input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, memory_format=memory_format
        )
        return _drawn(_normal_, t, "randn_like", generator, requires_grad)
    input = _there("randn_like", input, device)
    return _like(_rows.RANDN_LIKE, (input,), dtype, layout, device, pin_memory, memory_format, requires_grad)


def _bound(name: str, position: int, x: Any) -> int:
    """A limit of `randint_like`, which may be a tensor of one element."""
    if not isinstance(x, TensorBase):
        return int(_int("randint_like", name, position, x))
    if len(x._shape) > 0 or x._device.type != "cpu":
        raise RuntimeError(f"{name} must be a scalar tensor and on CPU")
    value: Any = x
    return int(value.item())


def randint_like(
    input: Any,
    *given: Any,
    low: Any = None,
    high: Any = None,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: bool = False,
    memory_format: Any = None,
    **unknown: Any,
) -> Any:
    """randint_like(input, low=0, high, *, ...): `randint` with the shape and layout of `input`."""
    if unknown:
        raise stray("randint_like", (input, *given), unknown)
    values = list(given)
    if high is None and values:
        high = values.pop()
    if low is None and values:
        low = values.pop()
    if values or high is None:
        raise TypeError(f"randint_like() takes from 2 to 3 positional arguments but {1 + len(given)} were given")
    head = (input, 0 if low is None else _bound("low", 2, low), _bound("high", 2 if low is None else 3, high))
    if generator is not None:
        t = empty_like(
            input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, memory_format=memory_format
        )
        fill = _rows.RANDOM.row.inplace_op.call
        return _finish(fill((t, *head[1:], _generator("randint_like", generator))), requires_grad)
    head = (_there("randint_like", input, device), *head[1:])
    return _like(_rows.RANDINT_LIKE, head, dtype, layout, device, pin_memory, memory_format, requires_grad)


def bernoulli(input: Any, p: Any = None, *, generator: Any = None, out: Any = None, **unknown: Any) -> Any:
    """bernoulli(input, *, generator=None, out=None): 1 with the probability given by each element."""
    if unknown:
        raise stray("bernoulli", (input, p), unknown)
    g = _generator("bernoulli", generator)
    if p is not None:
        if not isinstance(p, TensorBase) and not is_number(p):
            raise stray("bernoulli", (input, p), unknown)
        return _rows.BERNOULLI_P.call((input, p if isinstance(p, TensorBase) else float(p), g))
    if out is not None:
        return _rows.BERNOULLI.row.out_op.call((input, g, out))
    return _rows.BERNOULLI.call((input, g))


def normal(
    mean: Any = _MISSING,
    std: Any = _MISSING,
    size: Any = None,
    *,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = False,
    requires_grad: bool = False,
    **unknown: Any,
) -> Any:
    """normal(mean, std, size=None, *, generator=None, out=None, ...): means and deviations are tensors or numbers."""
    if unknown:
        raise stray("normal", (mean, std, size), unknown)
    if type(mean) is float and type(std) is float and type(size) is tuple and out is None and generator is None:
        check_std(std)
        made = empty(size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
        return _finish(_rows.NORMAL.call((made, mean, std, None)), requires_grad)
    if mean is _MISSING and size is not None:
        raise TypeError('normal() missing 1 required positional arguments: "mean"')
    if mean is _MISSING or (size is not None and std is _MISSING):
        raise stray("normal", (mean, std), {} if size is None else {"size": size})
    std = 1.0 if std is _MISSING else std
    g = _generator("normal", generator)
    if isinstance(mean, TensorBase) or isinstance(std, TensorBase):
        if size is not None or not all(isinstance(x, TensorBase) or is_number(x) for x in (mean, std)):
            raise stray("normal", (mean, std, size), unknown)
        values = (
            mean if isinstance(mean, TensorBase) else float(mean),
            std if isinstance(std, TensorBase) else float(std),
        )
        if out is not None:
            return _rows.NORMAL_OF.row.out_op.call((*values, g, out))
        return _rows.NORMAL_OF.call((*values, g))
    if size is None and not is_number(mean):
        raise TypeError(f"normal(): argument 'mean' (position 1) must be Tensor, not {type_name(mean)}")
    if size is None:
        raise stray("normal", (mean, std), unknown)
    for x in (mean, std):
        if not is_number(x) or isinstance(x, complex):
            raise stray("normal", (mean, std, size), unknown)
    if not isinstance(size, (list, tuple)):
        raise stray("normal", (mean, std, size), unknown)
    a, b = float(mean), float(std)
    check_std(b)
    _check_unrecorded("normal", out)
    t = empty(size, out=out, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    form = _rows.NORMAL if out is None else _rows.NORMAL.row.inplace_op
    return _finish(form.call((t, a, b, g)), requires_grad)


_normal_, _uniform_ = _rows.NORMAL.row.inplace_op.call, _rows.UNIFORM.row.inplace_op.call
_bernoulli_ = _rows.BERNOULLI_P.row.inplace_op.call


# -- filling ------------------------------------------------------------------------------------------------------
def _from(fname: str, given: Any, others: dict[str, Any], default: Any) -> Any:
    """The argument PyTorch calls `from`, which Python cannot name."""
    if "from" in others:
        given = others.pop("from")
    if others:
        raise TypeError(f"{fname}() got an unexpected keyword argument '{next(iter(others))}'")
    return default if given is None else given


# Ints below are floats as they stand.
_EXACT = 1 << 53


def _float(fname: str, name: str, position: int, x: Any) -> Any:
    if type(x) is float:
        return x
    if type(x) is int and abs(x) < _EXACT:
        return float(x)
    return need(fname, Arg(name, "float", False, False, 0, "", False, False, False, None), position, x)


def uniform_(self: Any, from_: Any = None, to: Any = 1.0, *, generator: Any = None, **others: Any) -> Any:
    """uniform_(from=0, to=1, *, generator=None): fill with numbers from [from, to)."""
    if from_ is None and not others and generator is None and type(to) is float:
        return _uniform_((self, 0.0, to, None))
    low = _float("uniform_", "from", 1, _from("uniform_", from_, others, 0.0))
    return _uniform_((self, low, _float("uniform_", "to", 2, to), _generator("uniform_", generator)))


def normal_(self: Any, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Any:
    """normal_(mean=0, std=1, *, generator=None)"""
    if type(mean) is float and type(std) is float and generator is None:
        return _normal_((self, mean, std, None))
    return _normal_(
        (self, _float("normal_", "mean", 1, mean), _float("normal_", "std", 2, std), _generator("normal_", generator))
    )


def random_(self: Any, *given: Any, to: Any = None, generator: Any = None, **others: Any) -> Any:
    """random_(from=0, to=None, *, generator=None): integers from [from, to), or any that the dtype holds exactly."""
    g = _generator("random_", generator)
    if to is None and not others and len(given) <= 2 and all([type(x) is int and is_long(x) for x in given]):
        span = given if len(given) == 2 else (0, *given) if given else (None, None)
        return _rows.RANDOM.row.inplace_op.call((self, *span, g))
    low = _from("random_", None, others, None)
    values = list(given)
    if to is None and values:
        to = values.pop()
        if values or low is not None:
            low = values.pop() if values else low
    elif values:
        low = values.pop()
    if values:
        raise TypeError(f"random_() takes from 0 to 2 positional arguments but {len(given)} were given")
    if len(given) == 2 and to is None:
        low = given[0]
    if low is not None:
        low = _int("random_", "from", 1, low)
    if to is not None:
        to, low = _int("random_", "to", 2, to), 0 if low is None else low
    return _rows.RANDOM.row.inplace_op.call((self, low, to, g))


def exponential_(self: Any, lambd: Any = 1.0, *, generator: Any = None) -> Any:
    """exponential_(lambd=1, *, generator=None)"""
    return _rows.EXPONENTIAL.row.inplace_op.call(
        (self, _float("exponential_", "lambd", 1, lambd), _generator("exponential_", generator))
    )


def cauchy_(self: Any, median: Any = 0.0, sigma: Any = 1.0, *, generator: Any = None) -> Any:
    """cauchy_(median=0, sigma=1, *, generator=None)"""
    return _rows.CAUCHY.row.inplace_op.call(
        (
            self,
            _float("cauchy_", "median", 1, median),
            _float("cauchy_", "sigma", 2, sigma),
            _generator("cauchy_", generator),
        )
    )


def log_normal_(self: Any, mean: Any = 1.0, std: Any = 2.0, *, generator: Any = None) -> Any:
    """log_normal_(mean=1, std=2, *, generator=None)"""
    return _rows.LOG_NORMAL.row.inplace_op.call(
        (
            self,
            _float("log_normal_", "mean", 1, mean),
            _float("log_normal_", "std", 2, std),
            _generator("log_normal_", generator),
        )
    )


def geometric_(self: Any, p: Any, *, generator: Any = None) -> Any:
    """geometric_(p, *, generator=None)"""
    return _rows.GEOMETRIC.row.inplace_op.call(
        (self, _float("geometric_", "p", 1, p), _generator("geometric_", generator))
    )


def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """bernoulli_(p=0.5, *, generator=None): p is a number or a tensor of probabilities."""
    value = p if isinstance(p, TensorBase) else _float("bernoulli_", "p", 1, p)
    return _bernoulli_((self, value, _generator("bernoulli_", generator)))


METHODS: dict[str, Any] = {
    "uniform_": uniform_,
    "normal_": normal_,
    "random_": random_,
    "exponential_": exponential_,
    "cauchy_": cauchy_,
    "log_normal_": log_normal_,
    "geometric_": geometric_,
    "bernoulli_": bernoulli_,
    "bernoulli": bernoulli,
}
