"""NPU lines of the operators over lists of tensors: one launch for a list, two where the list is written.

Invariant: the vendor gets row-major tensors of one dtype and pairwise equal shapes, and writes into fresh ones: none of
its list functions is documented to write what it reads, so an in-place form copies the results back, in one more
launch. Whatever else there is goes to the row's loop.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._dispatch import registry
from ...._strides import contiguous_strides
from ...._tensor_base import TensorBase, bump, is_contiguous, numel
from ...common.runtime import empty
from .. import table
from ..kernels import EXPRESSION, LITERAL, MOST_DIMS, RESULT, exact_number
from ..lines import Reader, call, fused, npu

COPY = "aclnnForeachCopy"


def on_device(numbers: Any, like: TensorBase) -> Any:
    """Numbers in memory of the device, through page-locked memory: the host waits for nothing."""
    from .... import tensor

    return tensor(numbers, dtype=like._dtype, pin_memory=True).to(like._device, non_blocking=True)


class Over:
    """One vendor call over lists, in the words of a row: which lists fit it, and the call."""

    def __init__(
        self, name: str, text: str, floats: bool, also: Callable[..., bool] | None, single: Over | None = None
    ) -> None:
        self.name = name
        # The call for one number in place of equal ones.
        self.single = single
        reader = Reader(text, registry.get(f"_foreach_{name}"))
        self.function, self.items = reader.call()
        self.sig = table.signature(self.function)
        if len(self.items) != len(self.sig.params):
            raise reader.error(f"{self.function} takes {', '.join(p.name for p in self.sig.params)}")
        kinds = [p.kind for p in self.sig.params]
        given = [(source, p) for (source, _), p in zip(self.items, self.sig.params) if source >= 0]
        self.lists = [source for source, p in given if p.kind == table.TENSORS]
        self.numbers = [source for source, p in given if p.kind in (table.SCALAR, table.SCALARS)]
        # One number, or one for each tensor, in memory of the device.
        self.packed = [(source, p.mask) for source, p in given if p.kind == table.TENSOR]
        self.mask = self.sig.params[kinds.index(table.TENSORS)].mask
        # Whether integers become floats, or are not what the vendor makes of them.
        self.floats, self.also = floats, also

    def fits(self, *args: Any) -> bool:
        first = args[self.lists[0]]
        return (len(first) > 0 and self.lists_fit(first, args) and all(self.numbers_fit(first, args[i])
                for i in self.numbers) and all(self.packed_fits(first, args[i], mask) for i, mask in self.packed)
                and (self.also is None or self.also(*args)))

    def lists_fit(self, first: Any, args: tuple[Any, ...]) -> bool:
        dt, dev = first[0]._dtype, first[0]._device
        if not self.mask >> int(dt.code) & 1 or (self.floats and not dt.is_floating_point):
            return False
        for i in self.lists:
            if len(args[i]) != len(first):
                return False
            for t, like in zip(args[i], first):
                if (t._dtype is not dt or t._device != dev or t._shape != like._shape or not is_contiguous(t)
                        or numel(t) == 0 or len(t._shape) > MOST_DIMS):
                    return False
        return True

    def numbers_fit(self, first: Any, given: Any) -> bool:
        """Whether numbers leave the dtype as it is, and come through whole."""
        numbers = given if isinstance(given, (list, tuple)) else (given,)
        whole = not first[0]._dtype.is_floating_point
        if len(numbers) not in (1, len(first)):
            return False
        return all(type(x) is int and exact_number(x) or (type(x) is float and not whole) for x in numbers)

    def packed_fits(self, first: Any, given: Any, mask: int) -> bool:
        """A number in a tensor beside the list; several numbers that the vendor wants in one tensor."""
        dt = first[0]._dtype
        if not mask >> int(dt.code) & 1:
            return False
        if isinstance(given, TensorBase):
            return given._dtype is dt and given._device == first[0]._device and not given._shape
        # Numbers beside halves stay wider than they are.
        return dt.itemsize == 4 and len(given) == len(first) and self.numbers_fit(first, given)

    def launch(self, args: tuple[Any, ...], outs: list[Any]) -> None:
        if self.single is not None:
            at = self.packed[0][0]
            numbers = args[at]
            if not isinstance(numbers, TensorBase) and all(x == numbers[0] for x in numbers):
                self.single.launch((*args[:at], numbers[0], *args[at + 1 :]), outs)
                return
        values: list[Any] = []
        for (source, literal), p in zip(self.items, self.sig.params):
            if source >= 0:
                v = args[source]
                if p.kind == table.TENSOR and not isinstance(v, TensorBase):
                    v = on_device(v, outs[0])
                values.append(v)
            elif source == LITERAL:
                values.append(literal)
            else:
                assert source == RESULT and source != EXPRESSION
                values.append(outs)
        call(self.function, f"_foreach_{self.name.partition('.')[0]}", *values)

    def made(self, *args: Any) -> Any:
        outs = [empty(t._shape, contiguous_strides(t._shape), t._dtype, t._device) for t in args[self.lists[0]]]
        self.launch(args, outs)
        return tuple(outs)

    def reduced(self, *args: Any) -> Any:
        """One number of each tensor."""
        outs = [empty((), (), t._dtype, t._device) for t in args[self.lists[0]]]
        self.launch(args, outs)
        return tuple(outs)

    def apart(self, *args: Any) -> bool:
        """Whether the loop, which sees what it wrote before, would see nothing of it."""
        if not self.fits(*args):
            return False
        places = {id(t._storage): i for i, t in enumerate(args[0])}
        if len(places) != len(args[0]):
            return False
        return all(places.get(id(t._storage), i) == i for k in self.lists for i, t in enumerate(args[k]))

    def written(self, *args: Any) -> None:
        fresh = list(self.made(*args))
        call(COPY, f"_foreach_{self.name.partition('.')[0]}_", fresh, list(args[0]))
        for t in args[0]:
            bump(t)


def each(
    name: str, text: str, floats: bool = False, also: Callable[..., bool] | None = None, single: Over | None = None
) -> Over:
    """Serve `_foreach_name` and its in-place form with one vendor function; what it is served with."""
    over = Over(name, text, floats, also, single)
    npu(f"_foreach_{name}", fused((over.function,), over.fits, over.made))
    base, dot, overload = name.partition(".")
    npu(f"_foreach_{base}_{dot}{overload}", fused((over.function, COPY), over.apart, over.written))
    return over


# -- one list -------------------------------------------------------------------------------------------------------
# lgamma and rsqrt have no function over lists.
for _name in ("acos asin atan cos cosh erf erfc exp expm1 log log10 log1p log2 reciprocal sigmoid sin sinh sqrt tan "
              "tanh").split():
    each(_name, f"aclnnForeach{_name.capitalize()}(self, out)", floats=True)
for _name in ("abs", "neg", "sign"):
    each(_name, f"aclnnForeach{_name.capitalize()}(self, out)")
for _name, _mode in (("round", 1), ("floor", 2), ("ceil", 3), ("trunc", 5), ("frac", 7)):
    each(_name, f"aclnnForeachRoundOffNumberV2(self, {_mode}, out)", floats=True)

# -- two lists, or a list and numbers ---------------------------------------------------------------------------------
for _name, _end in (("add", ", alpha"), ("sub", ", alpha"), ("mul", ""), ("div", ""), ("pow", ""), ("maximum", ""),
                    ("minimum", ""), ("clamp_min", ""), ("clamp_max", "")):
    _vendor = "aclnnForeach" + {"clamp_min": "maximum", "clamp_max": "minimum"}.get(_name, _name).capitalize()
    _one, _many, _second = ("exponent",) * 3 if _name == "pow" else ("scalar", "scalars", "other")
    # Integers to the power of integers are not always integers.
    _floats = _name in ("div", "pow")
    each(f"{_name}.List", f"{_vendor}List{'V2' if _end else ''}(self, {_second}{_end}, out)", _floats)
    each(f"{_name}.Scalar", f"{_vendor}ScalarV2(self, {_one}, out)", _floats)
    each(f"{_name}.ScalarList", f"{_vendor}ScalarList(self, {_many}, out)", _floats)
each("add.Tensor", "aclnnForeachAddScalar(self, other, out)", also=lambda self, other, alpha: alpha == 1)
each("mul.Tensor", "aclnnForeachMulScalar(self, other, out)")
each("div.Tensor", "aclnnForeachDivScalar(self, other, out)")
_power = Over("pow.ScalarAndTensor", "aclnnForeachPowScalarAndTensor(self, exponent, out)", True, None)
npu("_foreach_pow.ScalarAndTensor", fused((_power.function,), _power.fits, _power.made))

# -- three lists ------------------------------------------------------------------------------------------------------
for _name in ("addcmul", "addcdiv"):
    _vendor = f"aclnnForeach{_name.capitalize()}"
    _single = each(f"{_name}.Scalar", f"{_vendor}ScalarV2(self, tensor1, tensor2, value, out)")
    each(f"{_name}.ScalarList", f"{_vendor}ScalarList(self, tensor1, tensor2, scalars, out)", single=_single)
# A weight for each tensor has no function: ScalarList is a loop.
each("lerp.List", "aclnnForeachLerpList(self, tensors1, weights, out)")
each("lerp.Scalar", "aclnnForeachLerpScalar(self, tensors1, weight, out)")


# -- norms, copies, zeros ---------------------------------------------------------------------------------------------
def _usual(self: Any, ord: Any, dtype: Any) -> bool:
    """The orders that the vendor's documents name."""
    return ord in (1, 2, float("inf")) and (dtype is None or dtype is self[0]._dtype)


def _distinct(self: Any, src: Any, non_blocking: bool) -> bool:
    """Whether tensors of one device, dtype and shape are copied, and none is read that was written."""
    if not self or len(src) != len(self):
        return False
    mask, dt, dev = table.signature(COPY).params[0].mask, self[0]._dtype, self[0]._device
    stores = {id(t._storage) for t in self}
    return (len(stores) == len(self) and bool(mask >> int(dt.code) & 1)
            and all(t._dtype is dt and t._device == dev for t in (*self, *src))
            and all(id(y._storage) not in stores and y._shape == x._shape and 0 < numel(x)
                    and len(x._shape) <= MOST_DIMS and is_contiguous(x) for x, y in zip(self, src)))


def _copied(self: Any, src: Any, non_blocking: bool) -> None:
    call(COPY, "_foreach_copy_", list(src), list(self))
    for t in self:
        bump(t)


ZERO = "aclnnForeachZeroInplace"


def _plain(self: Any) -> bool:
    mask = table.signature(ZERO).params[0].mask
    return len(self) > 0 and all(bool(mask >> int(t._dtype.code) & 1) and t._dtype is self[0]._dtype
                                 and t._device == self[0]._device and is_contiguous(t) and numel(t) > 0
                                 and len(t._shape) <= MOST_DIMS for t in self)


def _zeroed(self: Any) -> None:
    call(ZERO, "_foreach_zero_", list(self))
    for t in self:
        bump(t)


_norm = Over("norm.Scalar", "aclnnForeachNorm(self, ord, out)", True, _usual)
npu("_foreach_norm.Scalar", fused((_norm.function,), _norm.fits, _norm.reduced))
npu("_foreach_copy_", fused((COPY,), _distinct, _copied))
npu("_foreach_zero_", fused((ZERO,), _plain, _zeroed))
