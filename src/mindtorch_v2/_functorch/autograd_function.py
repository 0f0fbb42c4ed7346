"""`torch._functorch.autograd_function`: what backward needs of a Function whose context or inputs stand for many.

Invariant: a context in place of another has its own saved tensors, and nothing else of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["CtxWithSavedTensors", "WrappedCtx", "reductify", "reductify_leaf"]


class WrappedCtx:
    """A context that stands for another: what it does not reserve is read from and written to that one."""

    _pt_reserved_attrs: tuple[str, ...] = ("_pt_reserved_attrs", "_pt_inner_ctx")

    def __init__(self, ctx: Any) -> None:
        if not isinstance(ctx, WrappedCtx):
            for name in type(self)._pt_reserved_attrs:
                if hasattr(ctx, name):
                    raise RuntimeError(
                        f"PyTorch reserves the {type(self)._pt_reserved_attrs} field on ctx objects; the field {name} "
                        "of this one is a name collision"
                    )
        self._pt_inner_ctx = ctx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pt_inner_ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in type(self)._pt_reserved_attrs:
            self.__dict__[name] = value
        else:
            setattr(self._pt_inner_ctx, name, value)


class CtxWithSavedTensors(WrappedCtx):
    """The context with other saved tensors."""

    _pt_reserved_attrs = ("_pt_new_saved_tensors", *WrappedCtx._pt_reserved_attrs)

    def __init__(self, ctx: Any, new_saved_tensors: Any) -> None:
        super().__init__(ctx)
        self._pt_new_saved_tensors = new_saved_tensors

    @property
    def saved_tensors(self) -> Any:
        return self._pt_new_saved_tensors


def reductify(
    grad_input: Any,
    grad_input_bdim: Any,
    input_bdim: Any,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Any = None,
) -> Any:
    """Gradients by inputs of many: with the many where the input has them, summed where it has none."""
    if not isinstance(grad_input, tuple):
        grad_input, grad_input_bdim, input_bdim = (grad_input,), (grad_input_bdim,), (input_bdim,)
    shapes = target_shape_without_bdim_to_reduce_to
    if shapes is None:
        shapes = len(grad_input) * (None,)
    return tuple(
        reductify_leaf(g, at, to, batch_size, shape)
        for g, at, to, shape in zip(grad_input, grad_input_bdim, input_bdim, shapes)
    )


def reductify_leaf(
    grad_input: Any,
    grad_input_bdim: int | None,
    input_bdim: int | None,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Sequence[int] | None = None,
) -> Any:
    """One gradient, whose many lie at `grad_input_bdim` (None: it is the same for all), for an input whose many lie at
    `input_bdim`; of the given shape without them."""
    shape = target_shape_without_bdim_to_reduce_to
    if grad_input is None or grad_input_bdim is None and input_bdim is None:
        return grad_input
    if input_bdim is None:
        return grad_input.sum(grad_input_bdim)
    if grad_input_bdim is None:
        # The backward gave what has nothing to do with the inputs: each of the many gets it.
        grad_input = grad_input.unsqueeze(input_bdim)
        sizes = list(grad_input.shape)
        sizes[input_bdim] = batch_size
        grad_input, grad_input_bdim = grad_input.expand(sizes), input_bdim
    if shape is not None:
        from ..func import vmap

        def fitted(g: Any) -> Any:
            return g.sum_to_size(shape)

        return vmap(fitted, in_dims=(grad_input_bdim,), out_dims=input_bdim)(grad_input)
    return grad_input.movedim(grad_input_bdim, input_bdim)
