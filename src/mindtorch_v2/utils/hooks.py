"""`torch.utils.hooks`: handles of registered hooks, and hooks around the backward of a module.

Invariant: a module's hooks see one gradient for each argument and each result of its call, None for what is no tensor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._autograd.hooks import RemovableHandle
from .._autograd.tensor_hooks import check_replaced
from .._tensor_base import TensorBase
from ..autograd.function import Function

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

_NO_INPUTS = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
    "gradients. See "
    "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for "
    "more details."
)


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook that saving its tensor leaves out without a word."""
    setattr(f, "__torch_unserializable__", True)
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of each hook of a leaf that is not saved with it."""
    for fn in list((tensor._backward_hooks or {}).values()):
        if not hasattr(fn, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {fn!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


class BackwardHookFunction(Function):
    """Passes tensors through one node, whose hooks see all their gradients together."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*[a for a in args if not a.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        return args


class BackwardHook:
    """The hooks of one call of a module: `setup_input_hook` and `setup_output_hook` pass arguments and results through
    nodes, the pre-hooks run at the latter, the hooks at the former, or at the latter if no input requires grad."""

    def __init__(self, module: Any, user_hooks: list[Any], user_pre_hooks: list[Any]) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        # What arrived at the results and still has to be shown with the gradients of the inputs.
        self.grad_outputs: tuple[Any, ...] | None = None
        self.n_inputs = -1
        self.n_outputs = -1
        self.inputs: list[int] | None = None
        self.outputs: list[int] | None = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> Any:
        made, self.inputs = _through_node(args, self._at_inputs)
        self.n_inputs = len(args)
        return made

    def setup_output_hook(self, result: Any) -> Any:
        results = result if isinstance(result, tuple) else (result,)
        made, self.outputs = _through_node(results, self._at_outputs)
        self.n_outputs = len(results)
        return made if isinstance(result, tuple) else made[0]

    def _at_inputs(self, grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> Any:
        if self.grad_outputs is None or self.inputs is None:
            # Gradients came to the inputs without passing the results, as they do in a second derivative.
            return None
        grads = _spread(grad_inputs, self.inputs, self.n_inputs)
        for hook in self.user_hooks:
            got = hook(self.module, grads, self.grad_outputs)
            if got is not None:
                if len(got) != len(grads):
                    raise RuntimeError(
                        "Backward hook returned an invalid number of grad_input, "
                        f"got {len(got)}, but expected {len(grads)}"
                    )
                check_replaced(grads, got)
                grads = got
        self.grad_outputs = None
        return tuple(grads[i] for i in self.inputs)

    def _at_outputs(self, grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> Any:
        assert self.outputs is not None
        grads = _spread(grad_outputs, self.outputs, self.n_outputs)
        for hook in self.user_pre_hooks:
            got = hook(self.module, grads)
            if got is not None:
                if len(got) != len(grads):
                    raise RuntimeError(
                        "Backward pre hook returned an invalid number of grad_output, "
                        f"got {len(got)}, but expected {len(grads)}"
                    )
                check_replaced(grads, got)
                grads = got
        if self.inputs is None:
            self._without_inputs(grads)
        else:
            self.grad_outputs = grads
        return tuple(grads[i] for i in self.outputs)

    def _without_inputs(self, grads: tuple[Any, ...]) -> None:
        warnings.warn(_NO_INPUTS, stacklevel=6)
        for hook in self.user_hooks:
            got = hook(self.module, (None,) * self.n_inputs, grads)
            if got is not None and not (isinstance(got, tuple) and all(g is None for g in got)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )


def _spread(grads: tuple[Any, ...], places: list[int], size: int) -> tuple[Any, ...]:
    """Gradients of tensors at the places of those tensors, None at the others."""
    out: list[Any] = [None] * size
    for i, g in zip(places, grads):
        out[i] = g
    return tuple(out)


def _through_node(values: Any, hook: Callable[..., Any]) -> tuple[Any, list[int] | None]:
    """The values with their tensors passed through one node that has the hook, and the places of those tensors; None
    where no gradient can arrive."""
    places = [i for i, v in enumerate(values) if isinstance(v, TensorBase)]
    if not (torch.is_grad_enabled() and any(values[i].requires_grad for i in places)):
        return values, None
    made = BackwardHookFunction.apply(*[values[i] for i in places])
    node = next(t.grad_fn for t in made if t.grad_fn is not None)
    node.register_hook(hook)
    out = list(values)
    for i, t in zip(places, made):
        out[i] = t
    return tuple(out) if type(values) is tuple else type(values)(*out), places
