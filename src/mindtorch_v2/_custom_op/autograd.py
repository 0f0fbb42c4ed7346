"""Derivatives of operators made by `torch._custom_op`: one function says what to save, one gives gradients by name.

Invariant: the node's edges are the leaves of the operator's arguments, in their order.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NoReturn

from .._autograd.record import run_below
from .._dispatch.op import Op
from .._tensor_base import TensorBase
from ..autograd.function import Function
from ..utils import _pytree as pytree


def below_autograd(custom_op: Any) -> Callable[[Op, tuple[Any, ...], int], Any]:
    """The autograd kernel of an operator: its formula, if it has one."""

    def run(op: Op, args: tuple[Any, ...], keys: int) -> Any:
        if custom_op._has_impl("backward") and custom_op._has_impl("save_for_backward"):
            return _recorded(custom_op, op, args, keys)
        for found, missing in (("backward", "save_for_backward"), ("save_for_backward", "backward")):
            if custom_op._has_impl(found):
                raise RuntimeError(
                    f"We found a '{found}' registration for {custom_op} at {custom_op._get_impl(found).location} but "
                    f"were unable to find a '{missing}' registration. To use the CustomOp API to register a backward "
                    "formula, please provide us both a backward function and a 'save for backward' function via "
                    "`impl_backward` and `impl_save_for_backward` respectively."
                )
        raise RuntimeError("Autograd has not been implemented for operator")

    return run


def _recorded(custom_op: Any, op: Op, args: tuple[Any, ...], keys: int) -> Any:
    names = [a.name for a in op.schema.args]
    made: Any = namedtuple
    named = made(f"{custom_op._opname}_args", names)
    given = [list(v) if a.is_list and isinstance(v, tuple) else v for a, v in zip(op.schema.args, args)]
    leaves, spec = pytree.tree_flatten(given)
    kept: dict[str, Any] = {}

    def forward(ctx: Any, *flat: Any) -> Any:
        inputs = pytree.tree_unflatten(list(flat), spec)
        output = run_below(op, tuple(inputs), keys)
        saved = custom_op._get_impl("save_for_backward").func(named(*inputs), output)
        values, kept["saved"] = pytree.tree_flatten(saved)
        ctx.save_for_backward(*[v for v in values if isinstance(v, TensorBase)])
        ctx.others = [None if isinstance(v, TensorBase) else (v,) for v in values]
        _mark(ctx, output, custom_op._output_differentiability)
        results, kept["results"] = pytree.tree_flatten(output)
        return tuple(results)

    def backward(ctx: Any, *grads: Any) -> Any:
        tensors = iter(ctx.saved_tensors)
        saved = pytree.tree_unflatten([next(tensors) if v is None else v[0] for v in ctx.others], kept["saved"])
        outer = pytree.tree_unflatten(list(grads), kept["results"])
        found = custom_op._get_impl("backward").func(
            object(), saved, *(outer if isinstance(outer, tuple) else (outer,))
        )
        kinds = pytree.tree_map(type, given)
        _check_gradients(found, custom_op, op, dict(zip(names, kinds)))
        return tuple(
            pytree.tree_leaves(
                [found[n] if n in found else pytree.tree_map(lambda _: None, k) for n, k in zip(names, kinds)],
                is_leaf=lambda x: x is None,
            )
        )

    bodies = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    node: Any = type(f"{custom_op._opname}_customop", (Function,), bodies)
    return pytree.tree_unflatten(list(node.apply(*leaves)), kept["results"])


def _mark(ctx: Any, output: Any, differentiable: list[bool] | None) -> None:
    """Say which results have no gradient."""
    if differentiable is None:
        return
    without: list[Any] = []
    for i, (has, out) in enumerate(zip(differentiable, output if isinstance(output, tuple) else (output,))):
        if isinstance(out, (TensorBase, list)):
            without += [] if has else out if isinstance(out, list) else [out]
        elif has:
            raise RuntimeError(
                f"With output_differentiability={differentiable}. At idx {i}, we received an object of type "
                f"{type(out)} that is not a Tensor, so it cannot have be marked as differentiable in "
                "output_differentiability."
            )
    if without:
        ctx.mark_non_differentiable(*without)


def _check_gradients(found: Any, custom_op: Any, op: Op, kinds: dict[str, Any]) -> None:
    """Complain of gradients that do not belong to the arguments."""

    def fail(what: str) -> NoReturn:
        raise RuntimeError(
            f"In the backward function defined for {custom_op} at {custom_op._get_impl('backward').location} using the "
            f"CustomOp API, {what}"
        )

    if not isinstance(found, dict):
        fail(f"expected the output of the backward function to be a dict but got {type(found)}")
    expected = {a.name for a in op.schema.args if a.is_tensor or a.is_tensor_list}
    if expected != found.keys():
        fail(
            f"expected the returned grad_input dict to have keys {expected} but got {found.keys()}. The backward "
            "function must return a gradient (can be None) for each arg to the CustomOp that may be a Tensor or "
            "Sequence[Tensor]. Args declared to be non-Tensor-like types should not appear in the grad_input dict"
        )
    for name, grad in found.items():
        if isinstance(kinds[name], list):
            _check_list(name, grad, kinds[name], fail)
        elif grad is not None and not isinstance(grad, TensorBase):
            fail(
                f"got object of type {type(grad)} as the gradient for input '{name}', but expected the gradient to be "
                "either None or a Tensor"
            )
        elif grad is not None and not issubclass(kinds[name], TensorBase):
            fail(
                f"got a Tensor as the gradient for input '{name}' but expected None as the gradient because input "
                f"'{name}' was not a Tensor (it was type {kinds[name]})."
            )


def _check_list(name: str, grads: Any, kinds: list[type], fail: Callable[[str], NoReturn]) -> None:
    hold = f"for input '{name}' expected the grad_input dict to hold a list of"
    if not isinstance(grads, (tuple, list)):
        fail(f"{hold} gradients but got object of type {type(grads)}.")
    if len(grads) != len(kinds):
        fail(f"{hold} {len(kinds)} gradients but got {len(grads)}")
    for i, (grad, kind) in enumerate(zip(grads, kinds)):
        if grad is None:
            continue
        if not isinstance(grad, TensorBase):
            fail(f"{hold} None or Tensor gradients but got object of {type(grad)} at index {i}")
        if not issubclass(kind, TensorBase):
            fail(
                f"for input '{name}', got a Tensor as the gradient for the {i}-th value but expected None because the "
                f"{i}-th value was not a Tensor (it was type {kinds}"
            )
