"""Operators that do next to nothing, with which PyTorch's tests probe schemas, autograd and transforms.

Invariant: each does what its schema and its derivative in PyTorch say, and is called by nothing else.
"""

from __future__ import annotations

from typing import Any

from .._dtype import int64
from .._warn import warn
from .made_of import call, inner
from .rules.base import like
from .table import op

inner(
    "_test_serialization_subcmul(Tensor self, Tensor other, Scalar alpha=1) -> Tensor",
    lambda self, other, alpha: self - other * alpha,
)
inner("_test_functorch_fallback(Tensor self, Tensor other) -> Tensor", lambda self, other: self.clone())
inner(
    "_test_parallel_materialize(Tensor self, int num_parallel, bool skip_first=False) -> Tensor",
    lambda self, num_parallel, skip_first: self,
)


def _checked(self: Any) -> Any:
    if not bool(call("_is_all_true", self)):
        raise RuntimeError("Test message for TORCH_CHECK_TENSOR_ALL")
    return self.clone()


inner("_test_check_tensor(Tensor self) -> Tensor", _checked)


# -- arguments ----------------------------------------------------------------------------------------------------
def _added(values: Any, addends: Any) -> Any:
    if addends is None:
        return values
    if values.dim() != 1:
        raise RuntimeError(
            "Expected values.dim() == 1 to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)"
        )
    return values + values.new_tensor(list(addends))


for _name, _kind in (("filled_intlist", "int[2]?"), ("intlist", "int[]?"), ("floatlist", "float[]?")):
    inner(f"_test_optional_{_name}(Tensor values, {_kind} addends) -> Tensor", _added, function=False)


def _ambiguous(value: int) -> Any:
    return lambda dummy, a, b: dummy.new_tensor(value, dtype=int64, device="cpu")


inner("_test_ambiguous_defaults.a(Tensor dummy, int a=1, int b=1) -> Tensor", _ambiguous(1), function=False)
inner('_test_ambiguous_defaults.b(Tensor dummy, int a=2, str b="2") -> Tensor', _ambiguous(2), function=False)
_QUOTES = "\"'\\"


def _strings(dummy: Any, a: str, b: str) -> Any:
    for name, got in (("A", a), ("B", b)):
        if got != _QUOTES:
            raise RuntimeError(f"Default {name} failed")
    return dummy


inner(r"""_test_string_default(Tensor dummy, str a="\"\'\\", str b="\"\'\\") -> Tensor""", _strings, function=False)


# -- derivatives --------------------------------------------------------------------------------------------------
def _warned(g: Any) -> Any:
    warn("Warn from backward")
    return g.clone()


def _like(self: Any, *rest: Any) -> Any:
    return like(self)


# Handlers are shown it whole: which arguments it was given is what is probed.
op(
    "_foobar(Tensor self, bool arg1=True, bool arg2=True, *, bool arg3=True) -> Tensor",
    meta=_like,
    kernel=lambda self, arg1, arg2, arg3: self,
    method=False,
    nondifferentiable=True,
)
op(
    "_test_warn_in_autograd(Tensor self) -> Tensor",
    meta=_like,
    kernel=lambda self: self.clone(),
    function=False,
    method=False,
    grad=dict(self=_warned),
)
# The derivative is wrong on purpose: it tells which formula was taken.
op(
    "_test_autograd_multiple_dispatch.fullcoverage(Tensor self) -> Tensor",
    meta=_like,
    kernel=lambda self: self.clone(),
    method=False,
    grad=dict(self=lambda g: g + 1),
)
inner("_test_autograd_multiple_dispatch.ntonly(Tensor self, bool b) -> Tensor", lambda self, b: self.clone())
inner("_test_autograd_multiple_dispatch_view(Tensor(a) self) -> Tensor(a)", lambda self: self.view((-1,)))
inner("_test_autograd_multiple_dispatch_view_copy(Tensor self) -> Tensor", lambda self: self.reshape((-1,)).clone())
