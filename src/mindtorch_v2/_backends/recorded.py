"""Composites that a device serves whole, and their autograd: one node, whose backward the device serves too.

Invariant: where a gradient is itself to be differentiated the composition is run again and differentiated, so that
derivatives of every order are those of the parts. Nothing is saved that the gradient does not read: writing to it
afterwards is no mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._dispatch.keys import AUTOGRAD, BATCHED
from .._dispatch.op import Kernel, Op
from .._dispatch.state import differentiated, swap_grad
from .._strides import contiguous_strides
from .._tensor_base import TensorBase
from .common.runtime import empty


class Whole:
    """A composite in a device's own calls, where they fit; where they do not, its parts serve.

    `fn` gives the result and what `back(grad, needs, args, kept)` wants of it; without `back`, the result alone.
    """

    def __init__(
        self,
        op: Op,
        key: int,
        fits: Callable[..., bool],
        fn: Callable[..., Any],
        back: Callable[..., Any] | None,
        saves: Sequence[str] | None = None,
    ) -> None:
        if op.composite is None:
            raise ValueError(f"line of '{op.name}': only composites are served whole")
        self.op, self.key, self.fits, self.fn, self.back = op, key, fits, fn, back
        self.parts: Kernel = op.composite
        # Places of the arguments whose values the gradient needs.
        self.saved = [i for i, a in enumerate(op.schema.args) if saves is None or a.name in saves]

    def serves(self, args: tuple[Any, ...]) -> bool:
        return self.fits(*args)

    def __call__(self, *args: Any) -> Any:
        if not self.serves(args):
            return self.parts.run(self.op, args, self.key)
        return self.fn(*args) if self.back is None else self.fn(*args)[0]


def recorder(served: Whole) -> Callable[..., Any]:
    """What a composite does with arguments that require gradients."""

    def forward(ctx: Any, *args: Any) -> Any:
        result, kept = served.fn(*args)
        given = list(args)
        at: list[int] = []
        bare: list[int] = []
        saved: list[Any] = []
        for i, a in enumerate(args):
            if not isinstance(a, TensorBase):
                continue
            if i in served.saved:
                at.append(i)
                saved.append(a)
                given[i] = None
            else:
                # Only what it looks like.
                bare.append(i)
                given[i] = (a._shape, a._dtype, a._device)
        ctx.at, ctx.given, ctx.bare = at, given, bare
        ctx.save_for_backward(*saved, *kept)
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
        again = differentiated()
        if again or grad._keys & BATCHED:
            # Gradients of many at once have no memory that a device's own call could read.
            for i in ctx.bare:
                args[i].zero_().requires_grad_(needs[i])
            return _through_parts(served, args, needs, grad, again)
        assert served.back is not None
        return served.back(grad, needs, args, saved[count:])

    name = "".join(word.capitalize() for word in served.op.title().split("_"))
    node = node_of(name, forward, backward)

    def record(*args: Any) -> Any:
        if served.serves(args):
            return node.apply(*args)
        return served.parts.run(served.op, args, served.key | AUTOGRAD)

    return record


def node_of(name: str, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    """A Function of these two. The transforms of `torch.func` take it as they take operators: it asks for no rule."""
    from ..autograd import Function

    kind: Any = type(Function)
    parts = {"forward": staticmethod(forward), "backward": staticmethod(backward), "_is_operator": True}
    return kind(name, (Function,), parts)


def differentiate(
    outs: Sequence[Any], wanted: Sequence[Any], grads: Sequence[Any], again: bool = True
) -> Sequence[Any]:
    """Gradients that can be differentiated again, unless nobody will."""
    from ..autograd import grad

    found: Sequence[Any] = grad(outs, wanted, grads, retain_graph=True, create_graph=again, allow_unused=True)
    return found


def _through_parts(served: Whole, args: list[Any], needs: tuple[bool, ...], grad: Any, again: bool) -> tuple[Any, ...]:
    was = swap_grad(True)
    try:
        out = served.parts.run(served.op, tuple(args), served.key | AUTOGRAD)
    finally:
        swap_grad(was)
    wanted = [i for i, need in enumerate(needs) if need]
    found = differentiate((out,), [args[i] for i in wanted], (grad,), again)
    by_place = dict(zip(wanted, found))
    return tuple(by_place.get(i) for i in range(len(args)))
