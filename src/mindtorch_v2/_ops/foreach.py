"""`torch._foreach_*`: one operator over lists of tensors, as optimizers use it.

Invariant: every form is a loop over a row, so that results, derivatives and errors are the row's own; the in-place
operators return nothing, and their public functions the list they were given, as PyTorch's do.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Op
from .._tensor_base import numel
from .table import composite

Call = Callable[..., Any]


def _same_length(first: Sequence[Any], *lists: Sequence[Any], what: str = "Tensor lists") -> None:
    if not first:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for other in lists:
        if len(other) != len(first):
            if what == "Tensor lists":
                raise RuntimeError(f"Tensor lists must have the same number of tensors, got {len(first)} and "
                                   f"{len(other)}")
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def _forms(name: str, overload: str, arguments: str, call: Call, inplace: Call | None) -> None:
    """`_foreach_name` and `_foreach_name_`, whose arguments after the list are given in schema language."""
    dot = f".{overload}" if overload else ""
    tail = f", {arguments}" if arguments else ""
    composite(f"_foreach_{name}{dot}(Tensor[] self{tail}) -> Tensor[]", call, method=False)
    if inplace is not None:
        composite(f"_foreach_{name}_{dot}(Tensor(a!)[] self{tail}) -> ()", inplace, method=False)


def _row(name: str) -> tuple[Op, Any]:
    row = registry.get(name)
    return row, row.row.inplace_op


# -- one operand --------------------------------------------------------------------------------------------------
def _unary(name: str) -> None:
    plain, written = _row(name)

    def call(self: Any) -> Any:
        _same_length(self)
        return tuple(plain.call((t,)) for t in self)

    def inplace(self: Any) -> None:
        _same_length(self)
        for t in self:
            written.call((t,))

    _forms(name, "", "", call, inplace)


for _name in ("abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg "
              "reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc").split():
    _unary(_name)


def _zero(self: Any) -> None:
    _same_length(self)
    for t in self:
        t.zero_()


composite("_foreach_zero_(Tensor(a!)[] self) -> ()", _zero, method=False)


# -- two operands: a list, a number, a number for each, or one tensor -----------------------------------------------
def _binary(name: str, with_list: str, with_number: str, rest: tuple[Any, ...] = (), alpha: bool = False,
            tensor: bool = False) -> None:
    """with_list, with_number: the rows that serve lists and numbers; rest: what their calls end with."""
    both, both_ = _row(with_list)
    one, one_ = _row(with_number)

    def ends(a: Any) -> tuple[Any, ...]:
        return (a,) if alpha else rest

    last = ends(1)

    def kind(other: Any) -> str:
        """Nothing in a list says of what it is: PyTorch takes it for numbers."""
        return "Tensor lists" if other else "scalars"

    def of_lists(self: Any, other: Any, a: Any = 1) -> Any:
        _same_length(self, other, what=kind(other))
        end = ends(a)
        return tuple([both.call((x, y, *end)) for x, y in zip(self, other)])

    def of_lists_(self: Any, other: Any, a: Any = 1) -> None:
        _same_length(self, other, what=kind(other))
        end = ends(a)
        for x, y in zip(self, other):
            if both_ is None:
                x.copy_(both.call((x, y, *end)))
            else:
                both_.call((x, y, *end))

    def of_number(self: Any, scalar: Any) -> Any:
        _same_length(self)
        end = (scalar, *last)
        return tuple([one.call((x, *end)) for x in self])

    def of_number_(self: Any, scalar: Any) -> None:
        _same_length(self)
        call, end = one_.call, (scalar, *last)
        for x in self:
            call((x, *end))

    def of_numbers(self: Any, scalars: Any) -> Any:
        _same_length(self, scalars, what="scalars")
        return tuple([one.call((x, s, *last)) for x, s in zip(self, scalars)])

    def of_numbers_(self: Any, scalars: Any) -> None:
        _same_length(self, scalars, what="scalars")
        for x, s in zip(self, scalars):
            one_.call((x, s, *last))

    def of_tensor(self: Any, other: Any, a: Any = 1) -> Any:
        _checked_scalar(name, other)
        end = (other, *ends(a))
        return tuple([both.call((x, *end)) for x in self])

    def of_tensor_(self: Any, other: Any, a: Any = 1) -> None:
        _checked_scalar(name, other)
        end = (other, *ends(a))
        for x in self:
            both_.call((x, *end))

    second = "exponent" if name == "pow" else "other"
    numbers = "exponent" if name == "pow" else "scalars"
    if tensor and not alpha:
        # A tensor of one number stays one; beside alpha PyTorch reads it.
        _forms(name, "Tensor", "Tensor other", of_tensor, of_tensor_)
    _forms(name, "Scalar", f"Scalar {'exponent' if name == 'pow' else 'scalar'}", of_number, of_number_)
    _forms(name, "List", f"Tensor[] {second}{', *, Scalar alpha=1' if alpha else ''}", of_lists, of_lists_)
    _forms(name, "ScalarList", f"Scalar[] {numbers}", of_numbers, of_numbers_)
    if tensor and alpha:
        _forms(name, "Tensor", "Tensor other, *, Scalar alpha=1", of_tensor, of_tensor_)


def _checked_scalar(name: str, other: Any) -> None:
    if other.dim() != 0 or numel(other) != 1:
        raise RuntimeError("scalar tensor expected to be 0 dim but it has "
                           f"{other.dim()} dimensions and {numel(other)} elements.")


_binary("add", "add", "add", alpha=True, tensor=True)
_binary("sub", "sub", "sub", alpha=True)
_binary("mul", "mul", "mul", tensor=True)
_binary("div", "div", "div", tensor=True)
_binary("pow", "pow", "pow")
for _name, _one in (("maximum", "clamp_min"), ("clamp_min", "clamp_min"), ("minimum", "clamp_max"),
                    ("clamp_max", "clamp_max")):
    _binary(_name, _name, _one)
composite("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]",
          lambda self, exponent: tuple(registry.get("pow").call((self, t)) for t in exponent), method=False)


# -- three operands -------------------------------------------------------------------------------------------------
def _pointwise(name: str) -> None:
    plain, written = _row(name)

    def of_number(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
        _same_length(self, tensor1, tensor2)
        return tuple(plain.call((x, a, b, value)) for x, a, b in zip(self, tensor1, tensor2))

    def of_number_(self: Any, tensor1: Any, tensor2: Any, value: Any) -> None:
        _same_length(self, tensor1, tensor2)
        for x, a, b in zip(self, tensor1, tensor2):
            written.call((x, a, b, value))

    def of_numbers(self: Any, tensor1: Any, tensor2: Any, scalars: Any) -> Any:
        _same_length(self, tensor1, tensor2)
        _same_length(self, scalars, what="scalars")
        return tuple(plain.call((x, a, b, s)) for x, a, b, s in zip(self, tensor1, tensor2, scalars))

    def of_numbers_(self: Any, tensor1: Any, tensor2: Any, scalars: Any) -> None:
        _same_length(self, tensor1, tensor2)
        _same_length(self, scalars, what="scalars")
        for x, a, b, s in zip(self, tensor1, tensor2, scalars):
            written.call((x, a, b, s))

    def listed(scalars: Any, count: int) -> Any:
        if scalars.dim() != 1 or scalars._device.type != "cpu":
            raise RuntimeError("Expected packed scalar Tensor to be of dimension 1 on the CPU. Got "
                               f"{scalars.dim()} dimensions on {scalars._device} instead.")
        if numel(scalars) != count:
            raise RuntimeError(f"Expected length of scalars to match input of length {count} but got "
                               f"{numel(scalars)} instead.")
        return scalars.tolist()

    operands = "Tensor[] tensor1, Tensor[] tensor2"
    _forms(name, "Scalar", f"{operands}, Scalar value=1", of_number, of_number_)
    _forms(name, "ScalarList", f"{operands}, Scalar[] scalars", of_numbers, of_numbers_)
    # By the rows for numbers, which a device may serve at once.
    many, many_ = (registry.get(f"_foreach_{name}{form}.ScalarList") for form in ("", "_"))
    _forms(name, "Tensor", f"{operands}, Tensor scalars",
           lambda self, tensor1, tensor2, scalars: many.call((self, tensor1, tensor2, listed(scalars, len(self)))),
           lambda self, tensor1, tensor2, scalars: many_.call((self, tensor1, tensor2, listed(scalars, len(self)))))


_pointwise("addcmul")
_pointwise("addcdiv")


def _lerp(kind: str, weight: str) -> None:
    plain, written = _row("lerp")
    each = kind != "Scalar"

    def weights(self: Any, given: Any) -> Any:
        if each:
            _same_length(self, given, what="Tensor lists" if kind == "List" else "scalars")
        return given if each else [given] * len(self)

    def call(self: Any, tensors1: Any, given: Any) -> Any:
        _same_length(self, tensors1)
        return tuple(plain.call((x, y, w)) for x, y, w in zip(self, tensors1, weights(self, given)))

    def inplace(self: Any, tensors1: Any, given: Any) -> None:
        _same_length(self, tensors1)
        for x, y, w in zip(self, tensors1, weights(self, given)):
            written.call((x, y, w))

    _forms("lerp", kind, f"Tensor[] tensors1, {weight}", call, inplace)


_lerp("List", "Tensor[] weights")
_lerp("Scalar", "Scalar weight")
_lerp("ScalarList", "Scalar[] weight")


# -- norms, copies ----------------------------------------------------------------------------------------------------
def _norm(self: Any, ord: Any, dtype: Any) -> Any:
    _same_length(self)
    row = registry.get("linalg_vector_norm")
    for t in self:
        if not t._dtype.is_inexact:
            raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                               f"{t._dtype.scalar_name}")
    return tuple(row.call((t, ord, None, False, dtype)) for t in self)


composite("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", _norm, method=False)
composite("_foreach_max(Tensor[] self) -> Tensor[]", lambda self: tuple(t.max() for t in self), method=False)


def _copy(self: Any, src: Any, non_blocking: bool) -> None:
    _same_length(self, src)
    for x, y in zip(self, src):
        x.copy_(y, non_blocking)


composite("_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()", _copy, method=False)


def _clone(self: Any, memory_format: Any) -> Any:
    _same_length(self)
    row = registry.get("clone")
    return tuple(row.call((t, memory_format)) for t in self)


def _mm(self: Any, mat2: Any) -> Any:
    if len(self) != len(mat2):
        raise RuntimeError("_foreach_mm: self and mat2 must have the same number of tensors")
    row = registry.get("mm")
    return tuple(row.call((x, y)) for x, y in zip(self, mat2))


composite("_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]", _clone, method=False)
composite("_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]", _mm, method=False)
