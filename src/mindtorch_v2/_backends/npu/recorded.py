"""Autograd of composites that vendor functions serve whole: one node, whose backward is a vendor function too.

Invariant: where a gradient is itself to be differentiated the composition is run again and differentiated, so that
derivatives of every order are those of the parts. Nothing is saved that the gradient does not read: writing to it
afterwards is no mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._dispatch.keys import AUTOGRAD, NPU
from ..._dispatch.state import is_grad_enabled
from ..._strides import contiguous_strides
from ..._tensor_base import TensorBase
from ..common.runtime import empty

if TYPE_CHECKING:
    from .lines import Fused


def recorder(served: Fused) -> Callable[..., Any]:
    """What a composite does with arguments that require gradients."""
    from ...autograd import Function

    def forward(ctx: Any, *args: Any) -> Any:
        result, kept = served.fn(*args)
        ctx.at = [i for i in served.saved if isinstance(args[i], TensorBase)]
        # Of the others only what they look like.
        ctx.given = [
            None if i in ctx.at else (a._shape, a._dtype, a._device) if isinstance(a, TensorBase) else a
            for i, a in enumerate(args)
        ]
        ctx.bare = [i for i, a in enumerate(args) if isinstance(a, TensorBase) and i not in ctx.at]
        ctx.save_for_backward(*(args[i] for i in ctx.at), *kept)
        return result

    def backward(ctx: Any, grad: Any) -> Any:
        saved, args = ctx.saved_tensors, list(ctx.given)
        count = len(ctx.at)
        for i, t in zip(ctx.at, saved[:count]):
            args[i] = t
        needs = tuple(ctx.needs_input_grad)
        for i in ctx.bare:
            shape, dt, dev = args[i]
            args[i] = empty(shape, contiguous_strides(shape), dt, dev)
        if is_grad_enabled():
            for i in ctx.bare:
                args[i].zero_().requires_grad_(needs[i])
            return _through_parts(served, args, needs, grad)
        assert served.back is not None
        return served.back(grad, needs, args, saved[count:])

    name = "".join(word.capitalize() for word in served.op.title().split("_"))
    kind: Any = type(Function)
    node = kind(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    def record(*args: Any) -> Any:
        if served.serves(args):
            return node.apply(*args)
        return served.parts.run(served.op, args, NPU | AUTOGRAD)

    return record


def _through_parts(served: Fused, args: list[Any], needs: tuple[bool, ...], grad: Any) -> tuple[Any, ...]:
    from ...autograd import grad as gradients

    out = served.parts.run(served.op, tuple(args), NPU | AUTOGRAD)
    wanted = [i for i, need in enumerate(needs) if need]
    found = gradients(out, [args[i] for i in wanted], grad, create_graph=True, allow_unused=True)
    by_place = dict(zip(wanted, found))
    return tuple(by_place.get(i) for i in range(len(args)))
