"""NPU lines of the operators over lists of tensors: one launch for a list, two where the list is written.

Invariant: as in `lists`: the vendor gets row-major tensors of one dtype and pairwise equal shapes, and writes into
fresh ones.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._dispatch import registry
from ...._tensor_base import bump, is_contiguous, numel
from .. import table
from ..kernels import MOST_DIMS
from ..lines import Reader, call, fused, listed, npu
from ..lists import COPY, MADE, REDUCED, WRITTEN, ListCall


def over(
    name: str, text: str, floats: bool = False, also: Callable[..., bool] | None = None, single: ListCall | None = None
) -> ListCall:
    """A vendor call over lists in the words of `_foreach_name`."""
    reader = Reader(text, registry.get(f"_foreach_{name}"))
    function, items = reader.call()
    params = table.signature(function).params
    if len(items) != len(params):
        raise reader.error(f"{function} takes {', '.join(p.name for p in params)}")
    return ListCall(name, function, items, floats, also, single)


def each(
    name: str, text: str, floats: bool = False, also: Callable[..., bool] | None = None, single: ListCall | None = None
) -> ListCall:
    """Serve `_foreach_name` and its in-place form with one vendor function; what it is served with."""
    found = over(name, text, floats, also, single)
    npu(f"_foreach_{name}", listed(found, MADE))
    base, dot, overload = name.partition(".")
    npu(f"_foreach_{base}_{dot}{overload}", listed(found, WRITTEN))
    return found


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
    _single = each(f"{_name}.Scalar", f"{_vendor}ScalarV2(self, {_one}, out)", _floats)
    each(f"{_name}.ScalarList", f"{_vendor}ScalarList(self, {_many}, out)", _floats, single=_single)
each("add.Tensor", "aclnnForeachAddScalar(self, other, out)", also=lambda self, other, alpha: alpha == 1)
each("mul.Tensor", "aclnnForeachMulScalar(self, other, out)")
each("div.Tensor", "aclnnForeachDivScalar(self, other, out)")
_power = over("pow.ScalarAndTensor", "aclnnForeachPowScalarAndTensor(self, exponent, out)", True)
npu("_foreach_pow.ScalarAndTensor", listed(_power, MADE))

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


npu("_foreach_norm.Scalar", listed(over("norm.Scalar", "aclnnForeachNorm(self, ord, out)", True, _usual), REDUCED))
npu("_foreach_copy_", fused((COPY,), _distinct, _copied))
npu("_foreach_zero_", fused((ZERO,), _plain, _zeroed))
