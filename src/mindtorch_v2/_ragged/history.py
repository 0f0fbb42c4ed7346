"""The way into a nested tensor and out of it, for autograd: each is the other's derivative.

Invariant: kernels see values with the history of the nested tensor; a nested tensor made of values that have one goes
on with it. The structure has no derivative.
"""

from __future__ import annotations

from typing import Any

from .._autograd.forward import put_dual, tangent_of
from .._batching.level import is_mapped_nested
from .._core_operators import HOOKS
from .._dispatch.state import is_grad_enabled
from .._tensor_base import bump, grad_fn_of, requires_grad, set_history
from ..autograd import Function
from .parts import is_nested, made, parts


class NestedGetValues(Function):
    @staticmethod
    def forward(nested: Any) -> Any:
        return parts(nested).values.detach()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.structure = parts(inputs[0]).structure

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return wrap(grad, ctx.structure)


class NestedViewFromValues(Function):
    @staticmethod
    def forward(values: Any, structure: Any) -> Any:
        return made(values.detach(), structure)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return values_of(grad) if is_nested(grad) else grad, None


def recorded(t: Any) -> bool:
    return is_grad_enabled() and requires_grad(t)


def values_of(nested: Any) -> Any:
    """The values, with the history of the nested tensor."""
    return NestedGetValues.apply(nested) if recorded(nested) else parts(nested).values


def wrap(values: Any, structure: Any) -> Any:
    """A nested tensor of these values, with their history."""
    if recorded(values):
        return NestedViewFromValues.apply(values, structure)
    return made(values.detach() if values.requires_grad else values, structure)


def as_view(t: Any, source: Any) -> Any:
    """Say of a nested tensor that it shows the memory of another tensor."""
    base = source._viewed if is_nested(source) else source._base
    t._viewed = source if base is None else base
    return t


def tangent_of_nested(nested: Any, level: int) -> Any:
    """The tangent is that of the values, in the same structure."""
    found = None if is_mapped_nested(nested) else tangent_of(parts(nested).values, level)
    return None if found is None else made(found, parts(nested).structure)


def dual(nested: Any, tangent: Any, level: int) -> Any:
    """A nested tensor over the same memory that carries a tangent."""
    own, other = parts(nested), parts(tangent)
    if nested._shape != tangent._shape or own.values._shape != other.values._shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(nested._shape)} while the given forward gradient is of size "
            f"{list(tangent._shape)}."
        )
    return made(put_dual(own.values.view_as(own.values), other.values, level), own.structure)


HOOKS.nested_tangent = tangent_of_nested
HOOKS.nested_dual = dual


def components(nested: Any) -> list[Any]:
    """The many, as views of the values."""
    found: list[Any] = parts(nested).structure.components(values_of(nested))
    return found


def accumulated(old: Any, grad: Any) -> Any:
    """What becomes `.grad` when a nested gradient arrives."""
    if old is not None:
        return old + grad
    own = wrap(values_of(grad).clone(), parts(grad).structure)
    return own if is_grad_enabled() else own.detach()


def adopt(target: Any, result: Any) -> Any:
    """Let a tensor that was written to go on with the history of what was written."""
    bump(target)
    node = grad_fn_of(result)
    if node is not None:
        set_history(target, node, result._output_nr)
    return target
