"""Conjugate and negative views: tensors that are read as the conjugate, or with the other sign, of what their memory
holds.

Invariant: a kernel never sees such a tensor unless its operator says that it reads lazily. All others are given what it
stands for, and what they write there is copied back; so a new operator needs to know nothing of it.
"""

from __future__ import annotations

from typing import Any, Final, final

from ..._core_operators import CORE
from ..._dispatch.keys import BACKENDS, CONJUGATE, CPU, LAZY, NEGATIVE
from ..._dispatch.op import Kernel, Op, Spec
from ..._mypyc import i64
from ..._tensor_base import TensorBase, alias, make_view
from .kernels import resize


@final
class Physical:
    """The operators that compute what the bits say; filled by their table."""

    conjugate: Op
    conjugate_: Op
    negate: Op
    negate_: Op


PHYSICAL: Final = Physical()


@final
class LazyViewKernel(Kernel):
    """The same memory, read the other way."""

    def __init__(self, bit: i64) -> None:
        self.bit: Final = bit

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        src = args[0]
        assert isinstance(src, TensorBase)
        if self.bit == CONJUGATE and not src._dtype.is_complex:
            raise RuntimeError(f"_conj is only supported for complex tensors, got a tensor of type {src._dtype.name}")
        out = make_view(src, src._shape, src._stride, src._offset, op, args)
        out._keys ^= self.bit
        return out


CONJUGATE_VIEW: Final = LazyViewKernel(CONJUGATE)
NEGATIVE_VIEW: Final = LazyViewKernel(NEGATIVE)


def bare(t: TensorBase) -> TensorBase:
    """What the memory holds, whatever it is read as. Writing to it does not count as a write to `t`."""
    found = alias(t, t._shape, t._stride, t._offset)
    found._keys &= ~LAZY
    found._vc = None
    return found


def stands_for(t: Any) -> Any:
    """What a tensor is read as, in memory of its own."""
    return CORE.clone.call((t, None))


def apply(t: TensorBase, lazy: i64) -> None:
    """Do to the values in memory what the bits say."""
    bits = t._keys & BACKENDS
    args: tuple[Any, ...] = (t,)
    if lazy & CONJUGATE and t._dtype.is_complex:
        PHYSICAL.conjugate_.below(bits, args).run(PHYSICAL.conjugate_, args, bits)
    if lazy & NEGATIVE:
        PHYSICAL.negate_.below(bits, args).run(PHYSICAL.negate_, args, bits)


def fill_from(out: TensorBase, src: TensorBase, spec: Spec) -> bool:
    """Write what `src` is read as into new memory in one pass; False where that takes two."""
    lazy = src._keys & LAZY
    if lazy & NEGATIVE and src._dtype.is_bool:
        raise NotImplementedError("\"neg_cpu\" not implemented for 'Bool'")
    if lazy == LAZY:
        return False
    op = PHYSICAL.conjugate if lazy == CONJUGATE else PHYSICAL.negate
    bits = src._keys & BACKENDS
    args: tuple[Any, ...] = (bare(src),)
    return op.below(bits, args).into(op, args, spec, out)


def differing(target: TensorBase, src: Any) -> tuple[Any, i64]:
    """A source whose memory can be copied as it is, and what must be done to the target's memory then."""
    lazy = target._keys & LAZY
    if isinstance(src, TensorBase) and src._keys & LAZY:
        if src._dtype is target._dtype:
            return bare(src), lazy ^ (src._keys & LAZY)
        return stands_for(src), lazy
    return src, lazy


@final
class ResolveKernel(Kernel):
    """Gives the operator below what lazy arguments stand for."""

    def __init__(self) -> None:
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        given = list(args)
        written: list[Any] = []
        i: i64 = 0
        for a in op.schema.args:
            if i == len(given):
                break
            v = given[i]
            if isinstance(v, TensorBase):
                if v._keys & LAZY:
                    made = stands_for(v)
                    given[i] = made
                    if a.mutates:
                        if written:
                            raise several_written(v)
                        written.append((v, made))
            elif a.is_tensor_list and v is not None:
                given[i] = resolved_list(op, v, a.mutates)
            i += 1
        plain = tuple(given)
        rest = keys & ~LAZY
        result = op.below(rest, plain).run(op, plain, rest)
        for target, made in written:
            if made._shape != target._shape:
                resize(target, made._shape, made._stride)
            CORE.copy_.call((target, made, False))
        if written:
            return originals(result, written)
        return result


def several_written(t: TensorBase) -> RuntimeError:
    what = "negation" if t._keys & NEGATIVE else "conjugate"
    return RuntimeError(
        f"{what} fallback does not support operators with more than one mutable tensors with {what}bit set to true."
    )


def originals(result: Any, written: list[Any]) -> Any:
    """An operator returns what it wrote to."""
    if isinstance(result, tuple):
        return tuple([originals(r, written) for r in result])
    for target, made in written:
        if result is made:
            return target
    return result


def resolved_list(op: Op, items: Any, mutates: bool) -> Any:
    """The same for a list of tensors; the list itself where none is lazy."""
    found: i64 = 0
    for t in items:
        if isinstance(t, TensorBase):
            found |= t._keys & LAZY
    if found == 0:
        return items
    if mutates:
        what = "negation" if found & NEGATIVE else "conjugate"
        raise RuntimeError(
            f" fallback doesn't currently support mutable TensorLists with {what} inputs. Please materialize all the "
            f"{what} input tensor(s) in the mutable TensorList inputs before calling {op.qualified()}"
        )
    return tuple([stands_for(t) if isinstance(t, TensorBase) and t._keys & LAZY else t for t in items])


RESOLVE: Final = ResolveKernel()


@final
class Shorter(Kernel):
    """Other operators serve calls with conjugates for tensor arguments; those with a sign to turn are resolved."""

    def __init__(self, fn: Any) -> None:
        self.fn: Final[Any] = fn
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        if keys & NEGATIVE:
            return RESOLVE.run(op, args, keys)
        result: Any = self.fn(*args)
        # A view of what was made on the way is a tensor of its own.
        return alias(result, result._shape, result._stride, result._offset)


@final
class Factors(Kernel):
    """Products whose factors the CPU's kernels read as conjugates themselves; anything else is resolved."""

    def __init__(self, first: int) -> None:
        self.first: Final = first

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        if keys != CPU | CONJUGATE:
            return RESOLVE.run(op, args, keys)
        i: i64 = 0
        for a in args:
            if isinstance(a, TensorBase) and a._keys & CONJUGATE:
                if i != self.first and i != self.first + 1:
                    return RESOLVE.run(op, args, keys)
                if a._dtype.itemsize < 8:
                    # Complex numbers of halves have no products.
                    return RESOLVE.run(op, args, keys)
            i += 1
        return op.below(CPU, args).run(op, args, CPU)
