"""In-place writes and history: what may be written, and whose history the write becomes.

Invariant: every refusal happens before any data changes. After a recorded write through a view, the base's history ends
in a CopySlices node, and the view gets its own history from the base when it is next asked for.
"""

from __future__ import annotations

from typing import Any, Final, final

from .. import _native
from .._core_operators import CORE, HOOKS
from .._dispatch.keys import AUTOGRAD, BATCHED, FORWARD, LAZY, VIEW
from .._dispatch.op import Derivative, Kernel, Op
from .._dispatch.state import modes, set_modes
from .._mypyc import i64
from .._tensor_base import (
    DEFAULT_VIEW,
    INFERENCE_VIEW,
    MULTI_OUTPUT_NODE,
    NO_GRAD_VIEW,
    TensorBase,
    differentiable,
    grad_fn_of,
    is_dual,
    requires_grad,
    set_history,
    version,
)
from .node import COPY_SLICES, WATCH, Node, add_meta, hooks_of, next_sequence, short_name
from .record import NAMES, RESULT, Formulas, edge, run_below
from .saved import save_written

_alloc: Final[Any] = _native.alloc_instance

_AMBIGUOUS: Final = (
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {0} block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked)."
)
_SEVERAL_VIEWS: Final = (
    " This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)
_CUSTOM_VIEW: Final = (
    " This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic "
    "to handle view+inplace would override the custom backward associated with the custom Function, leading to "
    "incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)


def check_inplace(t: TensorBase) -> None:
    """Refuse a write that autograd cannot follow; asked when some input requires grad and grad mode is on."""
    if t._keys & VIEW:
        if t._cmeta != DEFAULT_VIEW:
            raise refused_view(t, False)
        base = t._base_field
        if base is not None and requires_grad(t) and base._grad_fn is None:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if t._keys & AUTOGRAD and grad_fn_of(t) is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def refused_view(t: TensorBase, indirect: bool) -> RuntimeError:
    """Why a write through this view, or (indirect) under it, cannot be recorded."""
    made = t._cmeta
    fn = t._grad_fn
    what = "its base or another view of its base has been" if indirect else "is being"
    if made == INFERENCE_VIEW or made == NO_GRAD_VIEW or fn is None:
        start = "A view was created in"
        if fn is not None:
            start = f"Output {t._output_nr} of {short_name(fn)} is a view of a view which was created in"
        if made == INFERENCE_VIEW:
            text = f"{start} inference mode and {what} modified inplace in normal mode."
        else:
            text = f"{start} no_grad mode and {what} modified inplace with grad mode enabled."
    else:
        text = f"Output {t._output_nr} of {short_name(fn)} is a view and {what} modified inplace."
    if made == MULTI_OUTPUT_NODE:
        return RuntimeError(text + _SEVERAL_VIEWS)
    if made == NO_GRAD_VIEW:
        return RuntimeError(text + _AMBIGUOUS.format("no_grad"))
    if made == INFERENCE_VIEW:
        return RuntimeError(text + _AMBIGUOUS.format("inference_mode"))
    return RuntimeError(text + _CUSTOM_VIEW)


def rebase_history(t: TensorBase, node: Node, nr: i64, target: i64) -> None:
    """Make result `nr` of `node` the history of a tensor that was written in place. `target` is the node's edge for the
    written tensor, -1 if it has none."""
    if t._keys & VIEW:
        base = t._base_field
        if base is not None:
            copy = copy_slices(base, t, node, target)
            move_retained(base, copy, 0)
            set_history(base, copy, 0)
            refresh_grad_fn(t)
            return
    move_retained(t, node, nr)
    set_history(t, node, nr)


def move_retained(t: TensorBase, node: Node, nr: i64) -> None:
    """`retain_grad` follows the tensor, not the node it had; its other hooks stay with the value they were put on."""
    old = t._grad_fn
    if old is not None and old._hooks is not None and old._hooks.retain is not None:
        kept = old._hooks.retain.pop(int(t._output_nr), None)
        if kept is not None:
            hooks = hooks_of(node)
            if hooks.retain is None:
                hooks.retain = {}
            hooks.retain[int(nr)] = kept


def copy_slices(base: TensorBase, view: TensorBase, inner: Node, target: i64) -> Node:
    node: Node = _alloc(Node, NAMES.get("CopySlices"))
    node._kind = COPY_SLICES
    node._seq = next_sequence()
    nodes: list[Node | None] = []
    nrs: list[int] = []
    edge(base, nodes, nrs)
    for i, n in enumerate(inner._next):
        if i != target:
            nodes.append(n)
            nrs.append(inner._nrs[i])
    node._next = tuple(nodes)
    node._nrs = nrs
    add_meta(node, base._shape, base._dtype, base._device)
    node._payload = Slice(inner, base, view, target)
    return node


@final
class Slice:
    """Geometry of a write through a view, and the node of the write."""

    def __init__(self, inner: Node, base: TensorBase, view: TensorBase, target: i64) -> None:
        self.inner: Final = inner
        self.target: Final = target
        self.base_shape: Final = base._shape
        self.base_stride: Final = base._stride
        self.base_offset: Final = base._offset
        self.shape: Final = view._shape
        self.stride: Final = view._stride
        self.offset: Final = view._offset
        self.replay: list[Any] | None = None if strided_in(base, view) else view_chain(view)


def strided_in(base: TensorBase, view: TensorBase) -> bool:
    """Whether strides express a view: not one of another dtype, nor a conjugate, nor one at another level of `vmap`;
    those are made again by their operators."""
    differ = base._keys ^ view._keys
    return (
        view._dtype is base._dtype and differ & LAZY == 0 and (differ & BATCHED == 0 or base._storage is view._storage)
    )


def view_chain(view: TensorBase) -> list[Any]:
    """The view operators from the base to `view`, each with its arguments after the tensor. None of them returns
    several views: writing through one of those is refused."""
    chain: list[Any] = []
    t = view
    while t._base_field is not None:
        args = t._view_args
        if args is None:
            raise RuntimeError("a view without its operator cannot be replayed")
        chain.append((t._view_op, args[1:]))
        src = args[0]
        if not isinstance(src, TensorBase):
            break
        t = src
    chain.reverse()
    return chain


def replayed(base: Any, chain: list[Any]) -> Any:
    for op, rest in chain:
        base = op.call((base,) + rest)
    return base


def slice_of(grad: Any, s: Slice) -> Any:
    """The part of a base-shaped gradient that a view covers, as a view of it."""
    if s.replay is not None:
        return replayed(grad, s.replay)
    return CORE.as_strided.call((grad, s.shape, s.stride, int(s.offset - s.base_offset + grad._offset)))


def refresh_grad_fn(t: TensorBase) -> None:
    """Give a view whose base was written the history that leads to the base."""
    base = t._base_field
    if base is None:
        return
    # A history that the base lost since (detach_) is lost to the view as well.
    if (base._keys & AUTOGRAD or t._grad_fn is not None) and differentiable(t._dtype):
        if t._cmeta != DEFAULT_VIEW:
            raise refused_view(t, True)
        fresh = view_node(base, t)
        move_retained(t, fresh, 0)
        set_history(t, fresh, 0)
        t._attr_version = version(t)


def view_node(base: TensorBase, t: TensorBase) -> Node:
    """A node that takes the view `t` out of `base`."""
    if not strided_in(base, t):
        made: TensorBase = recorded_replay(base, view_chain(t))
        fn = made._grad_fn
        assert fn is not None
        return fn
    args: tuple[Any, ...] = (base, t._shape, t._stride, int(t._offset))
    op: Any = CORE.as_strided
    formulas: Formulas = op.derivative
    node = formulas.start(args, 1)
    formulas.keep(node, args, 1)
    add_meta(node, t._shape, t._dtype, t._device)
    return node


def recorded_replay(base: TensorBase, chain: list[Any]) -> Any:
    """Replay with recording on, whatever the mode of the caller."""
    from .._dispatch.state import is_grad_enabled, set_grad_enabled

    on = is_grad_enabled()
    set_grad_enabled(True)
    try:
        return replayed(base, chain)
    finally:
        set_grad_enabled(on)


HOOKS.refresh_grad_fn = refresh_grad_fn


@final
class InplaceDerivative(Derivative):
    """Derivative of the in-place form of a row: the functional formulas, with the target's old value kept if named.
    `casts`: a target that cannot require grad takes any source, and is not asked whether autograd can follow."""

    def __init__(self, formulas: Formulas | None, casts: bool = False) -> None:
        self.formulas: Final = formulas
        self._kernel: Kernel = InplaceAutograd(formulas, casts)

    def kernel(self) -> Kernel:
        return self._kernel


@final
class InplaceAutograd(Kernel):
    def __init__(self, formulas: Formulas | None, casts: bool) -> None:
        self.formulas: Final = formulas
        self.casts: Final = casts

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        target = args[0]
        assert isinstance(target, TensorBase)
        f = self.formulas
        if not self.casts or differentiable(target._dtype):
            check_inplace(target)
        need: i64 = 0 if f is None else f.need(args)
        if f is None or need == 0 or not differentiable(target._dtype):
            return run_below(op, args, keys)
        kept = args
        if f.self_slot >= 0 and f.slots[f.self_slot].mask & need:
            # The formulas want the value from before the write, and its history for their own derivative.
            kept = (copy_before(target),) + args[1:]
        node = f.start(args, need)
        f.keep(node, kept, node._need)
        if WATCH.on:
            # What is saved of the inputs is packed before one of them is written to.
            from .observe import started

            started(node)
        result = run_below(op, args, keys)
        add_meta(node, target._shape, target._dtype, target._device)
        rebase_history(target, node, 0, 0 if f.positions[0] == 0 else -1)
        saved = node._saved
        if saved is not None:
            i: i64 = 0
            for s in f.slots:
                if s.kind == RESULT and s.mask & need:
                    saved[i] = save_written(target, node)
                i += 1
        if WATCH.on:
            from .observe import wrote

            wrote(node, target)
        return result


def copy_before(target: TensorBase) -> Any:
    """The value from before the write, with its history and its tangents: those are hidden from what runs here."""
    if not is_dual(target):
        return CORE.clone.call((target, None))
    old = modes()
    set_modes(old & ~(FORWARD << 32))
    try:
        return CORE.clone.call((target, None))
    finally:
        set_modes(old)


@final
class OutDerivative(Derivative):
    """`out=` forms do not record."""

    def __init__(self) -> None:
        self._kernel: Kernel = OutAutograd()

    def kernel(self) -> Kernel:
        return self._kernel


@final
class OutAutograd(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        raise unrecorded(op.title())


def unrecorded(name: str) -> RuntimeError:
    """What an operator says that would write to a tensor which requires a gradient."""
    return RuntimeError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad."
    )


OUT_DERIVATIVE: Final = OutDerivative()


@final
class FactoryOutDerivative(Derivative):
    """`out=` of what is made of numbers alone."""

    def __init__(self) -> None:
        self._kernel: Kernel = FactoryOutAutograd()

    def kernel(self) -> Kernel:
        return self._kernel


@final
class FactoryOutAutograd(Kernel):
    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        if op.title() == "empty":
            raise RuntimeError("cannot resize variables that require grad")
        raise unrecorded(f"aten::{op.title()}")


FACTORY_OUT_DERIVATIVE: Final = FactoryOutDerivative()
