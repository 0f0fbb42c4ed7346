"""In-place writes and history: what may be written, and whose history the write becomes.

Invariant: every refusal happens before any data changes. After a recorded write through a view, the base's history ends
in a CopySlices node, and the view gets its own history from the base when it is next asked for.
"""
from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from .. import _native
from .._dispatch.keys import AUTOGRAD, VIEW
from .._dispatch.op import Derivative, Kernel, Op
from .._tensor_base import (
    DEFAULT_VIEW,
    HOT,
    IN_CUSTOM_FUNCTION,
    INFERENCE_VIEW,
    MULTI_OUTPUT_NODE,
    NO_GRAD_VIEW,
    TensorBase,
    differentiable,
    grad_fn_of,
    requires_grad,
    set_history,
    version,
)
from .node import COPY_SLICES, Node, next_sequence
from .record import NAMES, Formulas, add_meta, edge, run_below

_alloc: Final[Any] = _native.alloc_instance

_REASONS: Final[dict[int, str]] = {
    IN_CUSTOM_FUNCTION: "was created inside a custom Function (or because an input was returned as-is)",
    MULTI_OUTPUT_NODE: "is the output of a function that returns multiple views",
    NO_GRAD_VIEW: "was created in no_grad mode",
    INFERENCE_VIEW: "was created in inference mode",
}


def check_inplace(t: TensorBase, recorded: bool) -> None:
    """Refuse a write that autograd cannot follow. `recorded`: some input requires grad and grad mode is on."""
    if not recorded:
        return
    if t._keys & VIEW:
        check_view(t)
        base = t._base_field
        if base is not None and requires_grad(t) and base._grad_fn is None:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation.")
    if t._keys & AUTOGRAD and grad_fn_of(t) is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def check_view(t: TensorBase) -> None:
    """Refuse to record a write through a view whose making does not allow it."""
    made = t._cmeta
    if made == DEFAULT_VIEW:
        return
    fn = grad_fn_of(t)
    if fn is not None:
        text = f"Output {t._output_nr} of {fn.name()} is a view and is being modified inplace."
    elif made == INFERENCE_VIEW:
        text = "A view was created in inference mode and is being modified inplace in normal mode."
    else:
        text = f"A view {_REASONS[made].removeprefix('was ')} and is being modified inplace".replace(
            "A view created", "A view was created") + " with grad mode enabled."
    if made == MULTI_OUTPUT_NODE:
        text += (
            " This view is the output of a function that returns multiple views. Such functions do not allow the output "
            "views to be modified inplace. You should replace the inplace operation by an out-of-place one.")
    elif made == NO_GRAD_VIEW:
        text += (
            " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
            "both the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
            "tracked) or both outside (if you want the inplace to be tracked).")
    elif made == INFERENCE_VIEW:
        text += (
            " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
            "both the view and the inplace either both inside the inference_mode block (if you don't want the inplace to "
            "be tracked) or both outside (if you want the inplace to be tracked).")
    elif made == IN_CUSTOM_FUNCTION:
        text += (
            " This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
            "logic to handle view+inplace would override the custom backward associated with the custom Function, leading "
            "to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
            "Function.")
    raise RuntimeError(text)


def rebase_history(t: TensorBase, node: Node) -> None:
    """Make `node` the history of a tensor that was written in place."""
    if t._keys & VIEW:
        base = t._base_field
        if base is not None:
            copy = _copy_slices(base, t, node)
            move_retained(base, copy)
            set_history(base, copy, 0)
            refresh_grad_fn(t)
            return
    move_retained(t, node)
    set_history(t, node, 0)


def move_retained(t: TensorBase, node: Node) -> None:
    """`retain_grad` follows the tensor, not the node it had."""
    old = t._grad_fn
    if old is not None and old.retain_hooks is not None:
        kept = old.retain_hooks.pop(int(t._output_nr), None)
        if kept is not None:
            node.retain_hooks = {0: kept}


def _copy_slices(base: TensorBase, view: TensorBase, inner: Node) -> Node:
    node: Node = _alloc(Node, NAMES.get("CopySlices"))
    node.kind = COPY_SLICES
    node.seq = next_sequence()
    nodes: list[Node | None] = []
    nrs: list[int] = []
    edge(base, nodes, nrs)
    for i, n in enumerate(inner.next_nodes):
        if i > 0:
            nodes.append(n)
            nrs.append(inner.next_nrs[i])
    node.next_nodes = nodes
    node.next_nrs = nrs
    node.metas = []
    add_meta(node, base)
    node.payload = Slice(inner, base, view)
    return node


@final
class Slice:
    """Geometry of a write through a view."""

    def __init__(self, inner: Node, base: TensorBase, view: TensorBase) -> None:
        self.inner: Final = inner
        self.base_shape: Final = base._shape
        self.base_stride: Final = base._stride
        self.base_offset: Final = base._offset
        self.shape: Final = view._shape
        self.stride: Final = view._stride
        self.offset: Final = view._offset
        # A view of another dtype cannot be expressed by strides; it is made again by its operators.
        self.replay: list[Any] | None = view_chain(view) if view._dtype is not base._dtype else None


def view_chain(view: TensorBase) -> list[Any]:
    """The view operators from the base to `view`, each with its arguments after the tensor."""
    chain: list[Any] = []
    t = view
    while t._base_field is not None:
        args = t._view_args
        if args is None:
            raise RuntimeError("a view without its operator cannot be replayed")
        chain.append((t._view_op, args[1:], t._output_nr))
        src = args[0]
        if not isinstance(src, TensorBase):
            break
        t = src
    chain.reverse()
    return chain


def slice_of(grad: Any, s: Slice) -> Any:
    """The part of a base-shaped gradient that a view covers, as a view of it."""
    if s.replay is not None:
        for op, rest, nr in s.replay:
            grad = op.call((grad,) + rest)
            if isinstance(grad, (list, tuple)):
                grad = grad[nr]
        return grad
    return HOT.as_strided.call((grad, s.shape, s.stride, s.offset - s.base_offset + grad._offset))


def refresh_grad_fn(t: TensorBase) -> None:
    """Give a view whose base was written the history that leads to the base."""
    base = t._base_field
    if base is None:
        return
    if base._keys & AUTOGRAD and differentiable(t._dtype):
        if t._cmeta != DEFAULT_VIEW and t._grad_fn is not None and base._grad_fn is not t._grad_fn:
            check_stale(t)
        op: Any = HOT.as_strided
        args: tuple[Any, ...] = (base, t._shape, t._stride, int(t._offset))
        if t._dtype is not base._dtype:
            op = t._view_op
            args = t._view_args if t._view_args is not None else args
        formulas: Formulas = op.derivative
        node = formulas.start(args, 1)
        add_meta(node, t)
        move_retained(t, node)
        set_history(t, node, 0)
    t._attr_version = version(t)


def check_stale(t: TensorBase) -> None:
    """A view of several made by one call cannot get a new history."""
    if t._cmeta == MULTI_OUTPUT_NODE or t._cmeta == IN_CUSTOM_FUNCTION:
        fn = t._grad_fn
        name = fn.name() if fn is not None else ""
        raise RuntimeError(
            f"Output {t._output_nr} of {name} is a view and its base or another view of its base has been modified "
            "inplace. " + (
                "This view is the output of a function that returns multiple views. Such functions do not allow the "
                "output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
                if t._cmeta == MULTI_OUTPUT_NODE else
                "This view was created inside a custom Function (or because an input was returned as-is) and the "
                "autograd logic to handle view+inplace would override the custom backward associated with the custom "
                "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the "
                "output of the custom Function."))


@final
class InplaceDerivative(Derivative):
    """Derivative of the in-place form of a row: the functional formulas, with the target's old value kept if named."""

    def __init__(self, formulas: Formulas | None) -> None:
        self.formulas: Final = formulas
        self._kernel: Kernel = InplaceAutograd(formulas)

    def kernel(self) -> Kernel:
        return self._kernel


@final
class InplaceAutograd(Kernel):
    def __init__(self, formulas: Formulas | None) -> None:
        self.formulas: Final = formulas

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        target = args[0]
        assert isinstance(target, TensorBase)
        f = self.formulas
        check_inplace(target, True)
        need: i64 = 0 if f is None else f.need(args)
        if f is None or need == 0:
            return run_below(op, args, keys)
        if not differentiable(target._dtype):
            return run_below(op, args, keys)
        saved_args = args
        if f.self_slot >= 0 and f.slots[f.self_slot].mask & need:
            # The formulas want the value from before the write.
            saved_args = (run_plain_clone(target),) + args[1:]
        node = f.start(args, need)
        if f.slots:
            node.saved = f.keep(saved_args, need)
        result = run_below(op, args, keys)
        add_meta(node, target)
        rebase_history(target, node)
        f.keep_results(node, target, need)
        return result


def run_plain_clone(t: TensorBase) -> Any:
    """A copy without history."""
    from .._dispatch.state import exclude, modes, set_modes

    old = modes()
    exclude(AUTOGRAD)
    try:
        return HOT.clone.call((t, None))
    finally:
        set_modes(old)


HOT.refresh_grad_fn = refresh_grad_fn


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
        raise RuntimeError(
            f"{op.title()}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad.")


OUT_DERIVATIVE: Final = OutDerivative()
