"""Copies, casts, filling, and moves between devices."""
from __future__ import annotations

from typing import Any

from .._autograd.inplace import InplaceDerivative
from .._autograd.record import CastDerivative, Formulas
from .._backends.common import overlap, transfer
from .._dispatch.op import Op
from .._tensor_base import TensorBase
from .rules.shape import CloneRule, CopyRule, FillRule, LazyCloneRule, ToCopyRule
from .table import op


def _zeros(g: Any) -> Any:
    """Zeros that no longer depend on the gradient."""
    return ZERO.call((g.detach(),))


def _back_to(g: Any, device: Any) -> Any:
    """A gradient on the device its input lives on."""
    return g if g._device == device else TO_COPY.call((g, None, device, None, False))


COPY: Op = op("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", meta=CopyRule(), inplace=True,
          overlap=overlap.COPIES, node="CopyBackwards", numbers=("src",), function=False, method=False,
          grad=dict(self=lambda g: _zeros(g), src=lambda g, src_device: _back_to(g, src_device)))
transfer.everywhere(COPY, transfer.COPY)
transfer.across(COPY, transfer.COPY)


def _fill_node(first: int) -> Any:
    def name(self: Any, value: Any) -> str:
        return f"FillBackward{first + isinstance(value, TensorBase)}"

    return name


_FILL_GRAD: dict[Any, Any] = dict(self=lambda g: _zeros(g), value=lambda g: g.sum())
FILL: Op = op("fill(Tensor self, Tensor value) -> Tensor", meta=FillRule(), numbers=("value",), inplace="function",
              overlap=overlap.FILLS, method=False, node=_fill_node(0), grad=_FILL_GRAD)
transfer.everywhere(FILL, transfer.FILL)
transfer.across(FILL, transfer.FILL)

ZERO: Op = op("zero(Tensor self) -> Tensor", meta=FillRule(), inplace="function", overlap=overlap.FILLS,
          function=False, method=False, grad=dict(self=lambda g: _zeros(g)))
transfer.everywhere(ZERO, transfer.FILL)


def _inplace_form(o: Op) -> Op:
    """PyTorch offers the in-place form of these as a method although it hides the functional one."""
    form: Op = o.row.inplace_op
    form.row.method = True
    return form


_COPY_INTO: Op = _inplace_form(COPY)
_COPY_FORMULAS: Any = COPY.derivative
_COPY_INTO.derivative = InplaceDerivative(_COPY_FORMULAS, True)
transfer.across(_COPY_INTO, transfer.COPY_INPLACE)
transfer.across(_inplace_form(FILL), transfer.FILL_INPLACE)
transfer.everywhere(COPY.row.inplace_op, transfer.COPY_INPLACE)
transfer.everywhere(FILL.row.inplace_op, transfer.FILL_INPLACE)
transfer.everywhere(_inplace_form(ZERO), transfer.FILL_INPLACE)
# PyTorch numbers the nodes of the in-place fills after those of the functional ones.
FILL.row.inplace_op.derivative = InplaceDerivative(Formulas("fill_", FILL.schema, _FILL_GRAD, _fill_node(2), ()))

CLONE: Op = op("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", meta=CloneRule(),
           grad=dict(self=lambda g: g))
transfer.everywhere(CLONE, transfer.CLONE)
# The copy is made by whoever writes first; a result with other strides than the argument's only where it is made now.
_LAZY_CLONE: Op = op("_lazy_clone(Tensor self) -> Tensor", meta=LazyCloneRule(), grad=dict(self=lambda g: g))
transfer.everywhere(_LAZY_CLONE, transfer.LAZY_CLONE)
# These know what conjugate and negative views are: all other operators are given what they make of those.
CLONE.reads_lazily = _COPY_INTO.reads_lazily = True

TO_COPY: Op = op("to_copy(Tensor self, *, ScalarType? dtype=None, Device? device=None, "
                 "MemoryFormat? memory_format=None, bool non_blocking=False) -> Tensor", meta=ToCopyRule(),
             function=False, method=False,
             grad=dict(self=lambda g, self_device: _back_to(g, self_device)))
_TO_COPY_FORMULAS: Any = TO_COPY.derivative
TO_COPY.derivative = CastDerivative(_TO_COPY_FORMULAS, 1)
transfer.everywhere(TO_COPY, transfer.TO_COPY)
