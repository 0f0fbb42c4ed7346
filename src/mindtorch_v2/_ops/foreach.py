"""`torch._foreach_*`: one operator over lists of tensors, as optimizers use it.

Invariant: every form is a loop over a row (`composites/foreach`), so that results, derivatives and errors are the row's
own; the in-place operators return nothing, and their public functions the list they were given, as PyTorch's do.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch import registry
from .._dispatch.op import Kernel, Op
from .._tensor_base import numel
from .composites.foreach import Each, Norms, WithOne
from .table import composite

Call = Callable[..., Any] | Kernel


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
for _name in ("abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg "
              "reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc").split():
    _plain, _written = _row(_name)
    _forms(_name, "", "", Each(_plain, 0, (), False), Each(_written, 0, (), True))
composite("_foreach_zero_(Tensor(a!)[] self) -> ()", Each(registry.get("zero_"), 0, (), True), method=False)


# -- two operands: a list, a number, a number for each, or one tensor -----------------------------------------------
def _binary(name: str, with_list: str, with_number: str, alpha: bool = False, tensor: bool = False) -> None:
    """with_list, with_number: the rows that serve lists and numbers."""
    both, both_ = _row(with_list)
    one, one_ = _row(with_number)
    last = (1,) if alpha else ()

    def copied(self: Any, other: Any) -> None:
        """In place by a row that has no such form."""
        for x, y in zip(self, Each(both, 1, (), False, None).run(both, (self, other), 0)):
            x.copy_(y)

    second = "exponent" if name == "pow" else "other"
    numbers = "exponent" if name == "pow" else "scalars"
    lists = (Each(both, 1, (), False, None), Each(both_, 1, (), True, None) if both_ is not None else copied)
    if tensor and not alpha:
        # A tensor of one number stays one; beside alpha PyTorch reads it.
        _forms(name, "Tensor", "Tensor other", WithOne(both, (), False), WithOne(both_, (), True))
    _forms(name, "Scalar", f"Scalar {'exponent' if name == 'pow' else 'scalar'}", Each(one, 0, last, False),
           Each(one_, 0, last, True))
    _forms(name, "List", f"Tensor[] {second}{', *, Scalar alpha=1' if alpha else ''}", *lists)
    _forms(name, "ScalarList", f"Scalar[] {numbers}", Each(one, 1, last, False, (1,)), Each(one_, 1, last, True, (1,)))
    if tensor and alpha:
        _forms(name, "Tensor", "Tensor other, *, Scalar alpha=1", WithOne(both, (), False), WithOne(both_, (), True))


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

    def listed(scalars: Any, count: int) -> Any:
        if scalars._device.type != "cpu":
            raise RuntimeError(f"Expected scalars to be on CPU, got {scalars._device} instead.")
        if scalars.dim() != 1:
            raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {scalars.dim()} instead.")
        if numel(scalars) != count:
            raise RuntimeError(f"Expected length of scalars to match input of length {count} but got "
                               f"{numel(scalars)} instead.")
        return scalars.tolist()

    operands = "Tensor[] tensor1, Tensor[] tensor2"
    _forms(name, "Scalar", f"{operands}, Scalar value=1", Each(plain, 2, (), False), Each(written, 2, (), True))
    _forms(name, "ScalarList", f"{operands}, Scalar[] scalars", Each(plain, 3, (), False, (3,)),
           Each(written, 3, (), True, (3,)))
    # By the rows for numbers, which a device may serve at once.
    many, many_ = (registry.get(f"_foreach_{name}{form}.ScalarList") for form in ("", "_"))
    _forms(name, "Tensor", f"{operands}, Tensor scalars",
           lambda self, tensor1, tensor2, scalars: many.call((self, tensor1, tensor2, listed(scalars, len(self)))),
           lambda self, tensor1, tensor2, scalars: many_.call((self, tensor1, tensor2, listed(scalars, len(self)))))


_pointwise("addcmul")
_pointwise("addcdiv")


def _lerp(kind: str, weight: str) -> None:
    plain, written = _row("lerp")
    lists, numbers = (1 if kind == "Scalar" else 2), ((2,) if kind == "ScalarList" else ())
    _forms("lerp", kind, f"Tensor[] tensors1, {weight}", Each(plain, lists, (), False, numbers),
           Each(written, lists, (), True, numbers))


_lerp("List", "Tensor[] weights")
_lerp("Scalar", "Scalar weight")
_lerp("ScalarList", "Scalar[] weight")


# -- norms, copies ----------------------------------------------------------------------------------------------------
composite("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
          Norms(registry.get("linalg_vector_norm")), method=False)
composite("_foreach_max(Tensor[] self) -> Tensor[]", lambda self: tuple(t.max() for t in self), method=False)


composite("_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()",
          Each(registry.get("copy_"), 1, (), True), method=False)
composite("_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]",
          Each(registry.get("clone"), 0, (), False), method=False)


def _mm(self: Any, mat2: Any) -> Any:
    if len(self) != len(mat2):
        raise RuntimeError("_foreach_mm: self and mat2 must have the same number of tensors")
    row = registry.get("mm")
    return tuple(row.call((x, y)) for x, y in zip(self, mat2))


composite("_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]", _mm, method=False)
