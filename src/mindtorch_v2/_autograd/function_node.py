"""Nodes of user-written Functions: running `forward` without recording, giving its results history, running `backward`.

Invariant: the node is the `ctx` that the user's functions get. It has one edge for each tensor among the arguments, in
order, and `_is_tensor` says which arguments those are; its metadata describes every tensor that `forward`
returned.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

from .. import _native
from .._core_operators import CORE
from .._dispatch.keys import AUTOGRAD, FORWARD, VIEW
from .._dispatch.state import modes, set_modes
from .._mypyc import i64, mypyc_attr
from .._tensor_base import (
    IN_CUSTOM_FUNCTION,
    MULTI_OUTPUT_NODE,
    TensorBase,
    alias,
    bump,
    differentiable,
    is_dual,
    requires_grad,
    set_history,
    version,
)
from .inplace import check_inplace, rebase_history
from .node import FREED, FUNCTION, WATCH, Node, add_meta, meta, next_sequence
from .record import edge, zeros_at
from .saved import Saved, SavedOutput, SavedTensor

_alloc: Final[Any] = _native.alloc_instance
_AUTOGRAD_OFF: Final[i64] = AUTOGRAD << 32
_FORWARD_OFF: Final[i64] = FORWARD << 32

_DIRTY_VIEW: Final = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
    "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
    "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
    "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
    "operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)
_SAVED_AS_IS: Final = (
    "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
    "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup "
    "ctx inside the forward function itself."
)
MATERIALIZE: Final = "set_materialize_grads received an invalid combination of arguments - got (), but expected (bool)"
_DIRTY_MISSING: Final = (
    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
    "inplace must all be outputs of the Function."
)


@mypyc_attr(allow_interpreted_subclasses=True)
class FunctionNode(Node):
    """The compiled half of a Function's ctx; public names are PyTorch's."""

    # A user may put anything into the first six.
    needs_input_grad: Any = ()
    materialize_grads: Any = True
    to_save: Any = None
    dirty_tensors: Any = None
    non_differentiable: Any = None
    saved_for_forward: Any = None
    _is_tensor: list[bool]
    # While the user's `jvp` runs: `saved_tensors` is what was saved for it.
    _pushing: bool = False


def run_function(cls: Any, forward: Any, setup: Any, args: tuple[Any, ...]) -> Any:
    """`Function.apply`."""
    node: FunctionNode = _alloc(FunctionNode, cls)
    needs: list[bool] = []
    tensors: list[bool] = []
    some = False
    dual = False
    for a in args:
        if isinstance(a, TensorBase):
            tensors.append(True)
            r = requires_grad(a)
            needs.append(r)
            if r:
                some = True
            if is_dual(a):
                dual = True
        else:
            tensors.append(False)
            needs.append(False)
    old = modes()
    executable = some and (old & _AUTOGRAD_OFF) == 0
    nodes: list[Node | None] = []
    nrs: list[int] = []
    if executable:
        for a in args:
            if isinstance(a, TensorBase):
                edge(a, nodes, nrs)
    node._kind = FUNCTION
    node._seq = next_sequence()
    node._is_tensor = tensors
    node._next = tuple(nodes)
    node._nrs = nrs
    node.needs_input_grad = tuple(needs)
    set_modes(old | _AUTOGRAD_OFF | _FORWARD_OFF)
    try:
        if setup is None:
            out = forward(node, *args)
        else:
            out = forward(*args)
            setup(node, args, out)
    finally:
        set_modes(old)
    check_marks(node)
    dirty = dirty_list(node)
    outs = list(out) if isinstance(out, tuple) else [out]
    wrapped = wrap_outputs(node, args, outs, dirty, executable, setup is not None)
    if dual and (old & _FORWARD_OFF) == 0:
        from .forward_function import push_through

        push_through(node, args, outs, wrapped, dirty)
    result: Any = tuple(wrapped) if isinstance(out, tuple) else wrapped[0]
    if executable:
        if node.to_save is not None:
            node._saved = save(node, node.to_save)
            if dual:
                from .forward_function import share_saved

                share_saved(node, wrapped)
        if WATCH.on:
            from .observe import applied

            applied(node, node.to_save)
    node.to_save = None
    node.saved_for_forward = None
    node.dirty_tensors = None
    node.non_differentiable = None
    return result


def check_marks(node: FunctionNode) -> None:
    """What `forward` has put into the fields of its ctx by hand instead of calling the functions for it."""
    marks = (
        ("dirty_tensors", node.dirty_tensors),
        ("non_differentiable", node.non_differentiable),
        ("to_save", node.to_save),
    )
    for name, value in marks:
        if value is not None and not isinstance(value, tuple):
            raise RuntimeError(
                f"autograd internal error: {name} attribute is expected to be a tuple but is {type(value).__name__}"
            )
    if not isinstance(node.materialize_grads, bool):
        raise TypeError(MATERIALIZE)


def dirty_list(node: FunctionNode) -> list[Any]:
    """The tensors that `forward` said it changed; saying so counts as a write."""
    marked = node.dirty_tensors
    if marked is None:
        return []
    out: list[Any] = []
    for i, t in enumerate(marked):
        if not isinstance(t, TensorBase):
            raise RuntimeError(f"mark_dirty can only accept variables, but argument {i} is of type {type(t).__name__}")
        bump(t)
        out.append(t)
    return out


def member(t: Any, items: Any) -> bool:
    for x in items:
        if x is t:
            return True
    return False


def position(t: Any, args: tuple[Any, ...]) -> i64:
    """The edge of an argument."""
    n: i64 = 0
    for a in args:
        if a is t:
            return n
        if isinstance(a, TensorBase):
            n += 1
    return -1


def wrap_outputs(
    node: FunctionNode, args: tuple[Any, ...], outs: list[Any], dirty: list[Any], executable: bool, by_setup: bool
) -> list[Any]:
    nondiff = node.non_differentiable
    if nondiff is not None:
        for t in nondiff:
            if not isinstance(t, TensorBase):
                raise RuntimeError(
                    f"mark_non_differentiable only accepts variable arguments, but got {type(t).__name__}"
                )
    for t in dirty:
        if not member(t, outs):
            raise RuntimeError(_DIRTY_MISSING)
    result: list[Any] = []
    count: i64 = 0
    nr: i64 = 0
    for var in outs:
        if isinstance(var, TensorBase):
            is_input = member(var, args)
            is_dirty = member(var, dirty)
            diff = executable and differentiable(var._dtype) and (nondiff is None or not member(var, nondiff))
            add_meta(node, var._shape, var._dtype, var._device)
            if not diff:
                var = plain(var, is_input, is_dirty)
            elif is_dirty:
                written(node, var, nr, args, is_input, len(outs))
            else:
                if is_input:
                    if by_setup and node.to_save is not None and member(var, node.to_save):
                        raise RuntimeError(_SAVED_AS_IS)
                    var = same_again(var)
                set_history(var, node, nr)
                var._attr_version = version(var)
            if var._keys & VIEW and not (is_input and is_dirty):
                var._cmeta = IN_CUSTOM_FUNCTION
            if diff:
                count += 1
        else:
            add_meta(node, None, None, None)
        result.append(var)
        nr += 1
    if count > 1:
        for r in result:
            if isinstance(r, TensorBase) and r._keys & VIEW:
                r._cmeta = MULTI_OUTPUT_NODE
    return result


def plain(var: TensorBase, is_input: bool, is_dirty: bool) -> TensorBase:
    """A result without gradient. Inputs are not changed: they are returned as another tensor over the same memory."""
    if not requires_grad(var):
        return same_again(var) if is_input and not is_dirty else var
    if is_input:
        return alias(var, var._shape, var._stride, var._offset)
    if (var._keys & VIEW) == 0:
        var._grad_fn = None
        var._output_nr = 0
        var._keys &= ~AUTOGRAD
    return var


def same_again(var: TensorBase) -> TensorBase:
    """A view of the whole tensor, made without recording."""
    old = modes()
    set_modes(old | _AUTOGRAD_OFF)
    try:
        t: TensorBase = CORE.alias.call((var,))
        return t
    finally:
        set_modes(old)


def written(node: FunctionNode, var: TensorBase, nr: i64, args: tuple[Any, ...], is_input: bool, outputs: int) -> None:
    if requires_grad(var) and var._grad_fn is None:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if var._keys & VIEW:
        check_inplace(var)
    if not is_input:
        warnings.warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
            "should be passed to ctx.mark_dirty().",
            UserWarning,
            stacklevel=3,
        )
    if var._keys & VIEW and outputs > 1:
        raise RuntimeError(_DIRTY_VIEW)
    rebase_history(var, node, nr, position(var, args))


def save(node: FunctionNode, tensors: Any) -> list[Any]:
    out: list[Any] = []
    for i, t in enumerate(tensors):
        if t is None:
            out.append(None)
        elif isinstance(t, TensorBase):
            if t._grad_fn is node:
                out.append(SavedOutput(t, t._output_nr, None))
            else:
                out.append(SavedTensor(t))
        else:
            raise TypeError(
                f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}"
            )
    return out


def saved_tensors(node: FunctionNode) -> tuple[Any, ...]:
    """`ctx.saved_tensors`."""
    if node._pushing:
        kept = node.saved_for_forward
        return () if kept is None else tuple(kept)
    if node._freed:
        raise RuntimeError(FREED)
    saved = node._saved
    if saved is None:
        return ()
    return tuple([v.unpack(node) if isinstance(v, Saved) else v for v in saved])


def release_function(node: Node) -> None:
    node._saved = None
    node._freed = True


def apply_function(node: FunctionNode, grads: list[Any]) -> list[Any]:
    """Run the user's `backward` and check what it returns."""
    given: list[Any] = grads
    if node.materialize_grads:
        i = 0
        for g in grads:
            if g is None:
                shape, dt, dev = meta(node, i)
                if shape is not None:
                    if given is grads:
                        given = list(grads)
                    given[i] = zeros_at(shape, dt, dev)
            i += 1
    ctx: Any = node
    got = ctx.apply(given[0]) if len(given) == 1 else ctx.apply(*given)
    if len(node._is_tensor) == 1 and isinstance(got, TensorBase):
        return [got]
    return gradients(node, list(got) if isinstance(got, tuple) else [got])


def gradients(node: FunctionNode, got: list[Any]) -> list[Any]:
    n = len(node._is_tensor)
    if len(got) > n:
        # Too many are accepted as long as the rest is None.
        extra = [g for g in got[n:] if g is not None]
        if not extra:
            got = got[:n]
    if len(got) != n:
        raise RuntimeError(
            f"function {node.name()} returned an incorrect number of gradients (expected {n}, got {len(got)})"
        )
    out: list[Any] = []
    for i, g in enumerate(got):
        if not node._is_tensor[i]:
            if g is not None:
                raise RuntimeError(
                    f"function {node.name()} returned a gradient different than None at position {i + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
        elif g is None or isinstance(g, TensorBase):
            out.append(g)
        else:
            raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
    return out
