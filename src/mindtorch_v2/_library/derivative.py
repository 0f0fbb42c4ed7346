"""Autograd of operators from outside: `register_autograd`'s two functions as a node of the graph.

Invariant: the node runs the operator below autograd; its edges are the operator's tensors in schema order, those of
lists one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._autograd.record import run_below
from .._dispatch.op import Op
from .._dispatch.schema import Arg
from .._operators import OpOverload
from .._tensor_base import TensorBase
from ..autograd.function import Function


class Formula:
    """What the user registered; None where nothing was."""

    def __init__(self) -> None:
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None


def make(overload: OpOverload, formula: Formula) -> Callable[[Op, tuple[Any, ...], int], Any]:
    """The autograd kernel `fn(op, args, keys)` of an operator."""
    op = overload._op
    schema = op.schema
    positional = sum(not a.kwonly for a in schema.args)
    keyword_names = [a.name for a in schema.args[positional:]]
    name = f"GeneratedBackwardFor_{overload.namespace}_{overload._opname}_{overload._overloadname}"

    def forward(ctx: Any, call: Call, *flat: Any) -> Any:
        args = call.rebuild(flat)
        result = run_below(op, args, call.keys)
        ctx.call = call
        if formula.setup_context is not None:
            options = {"keyword_only_inputs": dict(zip(keyword_names, args[positional:]))} if keyword_names else {}
            formula.setup_context(ctx=ctx, inputs=tuple(args[:positional]), output=result, **options)
        return call.flatten_results(result)

    def backward(ctx: Any, *grads: Any) -> Any:
        if formula.backward is None:
            raise RuntimeError(
                f"Trying to backward through {overload} but no autograd formula was registered. Please "
                "use register_autograd to add one."
            )
        got = formula.backward(ctx, *ctx.call.regroup(grads))
        values = got if isinstance(got, tuple) else (got,)
        given = ctx.call.given
        if len(values) < given or any(g is not None for g in values[given:]):
            raise RuntimeError(
                f"function {name}Backward returned an incorrect number of gradients (expected "
                f"{given}, got {len(values)})"
            )
        return (None, *ctx.call.spread(values))

    generated: Any = type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    def recorded(op: Op, args: tuple[Any, ...], keys: int) -> Any:
        if op.mutates:
            # A formula cannot be given for an operator that writes; what it writes keeps its history.
            return run_below(op, args, keys)
        call = Call(args, keys)
        call.given = _given(schema.args[:positional], args)
        return call.regroup_results(generated.apply(call, *call.flat))

    return recorded


def _given(parameters: Sequence[Arg], args: tuple[Any, ...]) -> int:
    """How many arguments a call has: those at the end that are as the schema has them count as left out."""
    count = len(parameters)
    while count:
        a, value = parameters[count - 1], args[count - 1]
        if not a.has_default or isinstance(value, TensorBase) or value != a.default:
            break
        count -= 1
    return count


class Call:
    """One call's arguments and results with lists of tensors laid out flat, and the way back."""

    def __init__(self, args: tuple[Any, ...], keys: int) -> None:
        self.keys = keys
        self.given = len(args)
        self.sizes: list[int] = []
        self.flat: list[Any] = []
        for value in args:
            if isinstance(value, (tuple, list)) and any(isinstance(t, TensorBase) for t in value):
                self.sizes.append(len(value))
                self.flat.extend(value)
            else:
                self.sizes.append(-1)
                self.flat.append(value)
        self.results: list[int] | None = None

    def rebuild(self, flat: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(_grouped(flat, self.sizes))

    def spread(self, grads: tuple[Any, ...]) -> list[Any]:
        """One gradient for each flat argument from one for each argument."""
        out: list[Any] = []
        sizes = [*self.sizes]
        for i, n in enumerate(sizes):
            g = grads[i] if i < len(grads) else None
            if n < 0:
                out.append(g)
            else:
                out.extend([None] * n if g is None else g)
        return out

    def flatten_results(self, result: Any) -> Any:
        parts = result if isinstance(result, tuple) else (result,)
        self.single = not isinstance(result, tuple)
        self.results = [len(p) if isinstance(p, list) else -1 for p in parts]
        flat: list[Any] = []
        for p in parts:
            flat.extend(p) if isinstance(p, list) else flat.append(p)
        return flat[0] if self.single and self.results == [-1] else tuple(flat)

    def regroup(self, grads: tuple[Any, ...]) -> list[Any]:
        return _grouped(grads, self.results or [])

    def regroup_results(self, result: Any) -> Any:
        if self.single and self.results == [-1]:
            return result
        parts = _grouped(result, self.results or [])
        return parts[0] if self.single else tuple(parts)


def _grouped(flat: Any, sizes: list[int]) -> list[Any]:
    out: list[Any] = []
    at = 0
    for n in sizes:
        out.append(flat[at] if n < 0 else list(flat[at : at + n]))
        at += 1 if n < 0 else n
    return out
