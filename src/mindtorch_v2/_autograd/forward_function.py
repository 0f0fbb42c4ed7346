"""Tangents through a user's Function: what its `jvp` is given, and what it must give.

Invariant: `jvp` runs with its level hidden, once for each level at which an argument has a tangent, lowest first.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.keys import VIEW
from .._dispatch.state import transformed
from .._tensor_base import TensorBase, differentiable, version
from .forward import LEVELS, bar, check_tangent, hidden_levels, hide, laid_like, put, share_with, show_again, tangent_of
from .function_node import FunctionNode, member
from .record import zeros_at

_NOT_WRITTEN = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
    "input inplace, then the jvp function must modify the corresponding gradient inplace."
)
_NO_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
_OTHER_VIEW = "A custom Function is returning a view but the jvp is not returning a view of the given grad input."


def push_through(
    node: FunctionNode, args: tuple[Any, ...], outs: list[Any], result: list[Any], dirty: list[Any]
) -> None:
    """Give the results of a Function their tangents. `outs` is what `forward` returned, `result` what the user gets."""
    nondiff = node.non_differentiable or ()
    outputs = [
        _Output(made, given, args, member(given, dirty), _can_have(given) and not member(given, nondiff))
        for given, made in zip(outs, result)
    ]
    for level in sorted(LEVELS.open):
        if level in hidden_levels():
            continue
        given = [tangent_of(a, level) for a in args]
        if all(t is None for t in given):
            continue
        before = hide(level)
        try:
            _push(node, args, given, outputs, level)
        finally:
            show_again(before)


def share_saved(node: FunctionNode, results: list[Any]) -> None:
    """Results that `forward` saved keep their tangents there too."""
    for r in results:
        if isinstance(r, TensorBase) and r._tangents is not None:
            for level in r._tangents:
                if level in LEVELS.open:
                    share_with(node, r, level)


def _root(t: TensorBase) -> TensorBase:
    """The tensor whose memory a view shows."""
    base = t._base_field
    return t if base is None else base


def _can_have(t: Any) -> bool:
    return isinstance(t, TensorBase) and differentiable(t._dtype)


class _Output:
    """One result: where it came from, and whether it can have a tangent."""

    def __init__(self, made: Any, given: Any, args: tuple[Any, ...], dirty: bool, diff: bool) -> None:
        self.made = made
        self.dirty = dirty
        self.diff = diff
        self.viewed: Any = None
        if isinstance(given, TensorBase) and not dirty:
            base = given._base_field if given._keys & VIEW else None
            for a in args:
                if isinstance(a, TensorBase) and (a is given or (base is not None and base is _root(a))):
                    self.viewed = a
                    break
        if isinstance(made, TensorBase) and made._keys & VIEW and not dirty:
            bar(made)


def _has(t: Any, level: int) -> bool:
    return tangent_of(t, level) is not None


def _push(node: FunctionNode, args: tuple[Any, ...], given: list[Any], outputs: list[_Output], level: int) -> None:
    ctx: Any = node
    shown = list(given)
    if node.materialize_grads:
        for i, a in enumerate(args):
            if isinstance(a, TensorBase) and shown[i] is None:
                shown[i] = zeros_at(a._shape, a._dtype, a._device)
    node._pushing = True
    try:
        versions = [version(tangent_of(o.made, level)) if _has(o.made, level) else 0 for o in outputs]
        got = ctx._forward_cls.jvp(node, *shown)
    finally:
        node._pushing = False
    tangents = list(got) if isinstance(got, tuple) else [got]
    for i, t in enumerate(tangents):
        if t is not None and not isinstance(t, TensorBase):
            raise RuntimeError(f"expected Variable or None (got {type(t).__name__}) for grad output {i}.")
    if len(tangents) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got "
            f"{len(tangents)})"
        )
    for i, (out, t) in enumerate(zip(outputs, tangents)):
        if isinstance(out.made, TensorBase):
            _give(i, out, t, args, given, level, int(versions[i]))


def _give(i: int, out: _Output, tangent: Any, args: tuple[Any, ...], given: list[Any], level: int, before: int) -> None:
    made = out.made
    if not out.diff:
        if tangent is not None:
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a "
                "differentiable Tensor.You should return None at that position instead."
            )
        return
    if out.dirty:
        had = tangent_of(made, level)
        if had is not None:
            if tangent is not had or version(had) == before:
                raise RuntimeError(_NOT_WRITTEN)
            return
    if tangent is None:
        raise RuntimeError("Expected both tensor and its forward grad to be floating point or complex")
    if out.viewed is not None:
        source = given[next(k for k, a in enumerate(args) if a is out.viewed)]
        if transformed():
            # Inside `torch.func` the tangent is a value like any other.
            check_tangent(made, tangent, level)
            put(made, level, laid_like(tangent, made))
            return
        if not tangent._keys & VIEW:
            raise RuntimeError(_NO_VIEW)
        if source is not None and tangent._base_field is not _root(source):
            raise RuntimeError(_OTHER_VIEW)
        check_tangent(made, tangent, level)
        put(made, level, tangent)
        return
    check_tangent(made, tangent, level)
    put(made, level, laid_like(tangent, made))
