"""Gradients on their way: fitted to what they are gradients of, and added up in leaves.

Invariant: a gradient that somebody else can see is never written; one that nobody else holds is taken as it is.
"""

from __future__ import annotations

import _thread
import sys
from typing import Any, Final, final

from .._core_operators import CORE, HOOKS
from .._device import CPU
from .._dispatch.keys import AUTOGRAD, SPARSE
from .._dispatch.state import modes
from .._dtype import float32
from .._mypyc import i64, is_compiled
from .._strides import strides_dense
from .._tensor_base import TensorBase, alias, is_contiguous, make_view, numel
from .._warn import warn_once
from .node import FUNCTION, WATCH, Node, meta
from .record import zeros_at

_AUTOGRAD_OFF: Final[i64] = AUTOGRAD << 32
_getrefcount: Final[Any] = sys.getrefcount
# One pass at a time changes what passes share.
_LOCK: Final[Any] = _thread.RLock()
acquire: Final[Any] = _LOCK.acquire
leave: Final[Any] = _LOCK.release
# Above this many elements a kernel may let other threads run, so adding into a shared `.grad` needs the lock.
_BIG: Final[i64] = 16384


def fit(node: Node, i: int, nxt: Node, nr: int, g: Any) -> Any:
    """Fit a gradient to its input: sum what was broadcast, cast to its dtype."""
    if not isinstance(g, TensorBase):
        raise TypeError(f"{node.name()} returned a {type(g).__name__} as gradient {i}; expected a Tensor")
    if nr == 0:
        same: Any = nxt._shape
        if (g._shape is same or g._shape == same) and g._dtype is nxt._dtype and g._device is nxt._device:
            return g
    shape, dt, dev = meta(nxt, nr)
    if dt is None:  # a leaf whose `grad_dtype` is None
        dt = g._dtype
    if g._shape == shape and g._dtype is dt and g._device is dev:
        return g
    return refit(node, i, shape, dt, dev, g)


def refit(node: Node, i: int, shape: tuple[int, ...], dt: Any, dev: Any, g: TensorBase) -> Any:
    if g._shape != shape:
        if not expandable(shape, g._shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {i} - got {list(g._shape)} but expected "
                f"shape compatible with {list(shape)}"
            )
        g = sum_to(g, shape)
    if g._dtype is not dt:
        if g._dtype.is_complex and not dt.is_complex:
            if node._kind == FUNCTION:
                # A formula's imaginary part is dropped; a user's is a mistake.
                raise RuntimeError(
                    "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, "
                    "but got false.  (Could this error message be improved?  If so, please report an enhancement "
                    "request to PyTorch.)"
                )
            g = CORE.real.call((g,))
        if g._dtype is not dt:
            g = CORE.to_copy.call((g, dt, None, None, False))
    if g._device is not dev and g._device != dev:
        if len(g._shape) > 0:
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {i} - expected device {dev} but got "
                f"{g._device}"
            )
        g = CORE.to_copy.call((g, None, dev, None, False))
    return g


def fit_root(node: Node, nr: int, i: int, g: Any) -> Any:
    """A tensor resized since it was made takes gradients of the shape that its node knows."""
    if g is None:
        return None
    shape = meta(node, nr)[0]
    if g._shape == shape:
        return g
    if not expandable(shape, g._shape):
        raise RuntimeError(
            f"invalid gradient at index {i} - got {list(g._shape)} but expected shape compatible with {list(shape)}"
        )
    return sum_to(g, shape)


def expandable(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to `to`."""
    d = len(to) - len(shape)
    if d < 0:
        return False
    for i, s in enumerate(shape):
        if s != to[d + i] and s != 1:
            return False
    return True


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Undo broadcasting."""
    if len(shape) == 0:
        return CORE.sum.call((g, None, False, None))
    lead = len(g._shape) - len(shape)
    dims: list[int] = list(range(lead))
    for i, s in enumerate(shape):
        if s == 1 and g._shape[lead + i] != 1:
            dims.append(lead + i)
    if lead and len(dims) == lead:
        return CORE.sum.call((g, tuple(dims), False, None))
    if dims:
        g = CORE.sum.call((g, tuple(dims), True, None))
    return CORE.view.call((g, shape)) if lead else g


_COMPILED: Final = is_compiled(sum_to)


def accumulate_into(leaf: TensorBase, grads: list[Any]) -> None:
    """Add grads[0] into `.grad`; a first gradient that nobody else holds becomes `.grad` itself if its layout fits."""
    if _COMPILED and leaf._grad_field is None and (modes() & _AUTOGRAD_OFF) != 0 and taken(leaf, grads):
        return
    if leaf._grad_field is None or numel(leaf) > _BIG:
        acquire()
        try:
            add_grad(leaf, grads)
        finally:
            leave()
    else:
        add_grad(leaf, grads)


def taken(leaf: TensorBase, grads: list[Any]) -> bool:
    """Whether a first gradient has become `.grad` as it is. Compiled, nothing between the last look at `.grad` and
    the assignment lets another thread run."""
    if (first_keys(grads) | leaf._keys) & SPARSE or not same_layout(grads[0], leaf):
        return False
    if not (unshared(grads) or unshared_view(grads)):
        return False
    gradient = untracked(grads[0])  # may make an object, and so let others run
    if leaf._grad_field is not None:
        return False
    leaf._grad_field = gradient
    return True


def first_keys(grads: list[Any]) -> i64:
    """The keys of grads[0], which nobody holds longer than this."""
    g = grads[0]
    return g._keys if isinstance(g, TensorBase) else 0


def add_grad(leaf: TensorBase, grads: list[Any]) -> None:
    old = leaf._grad_field
    recording = (modes() & _AUTOGRAD_OFF) == 0
    if (first_keys(grads) | leaf._keys | (0 if old is None else old._keys)) & SPARSE:
        leaf._grad_field = HOOKS.sparse_grad(old, grads, recording)
    elif old is None:
        if (
            not recording
            and (same_layout(grads[0], leaf) or (WATCH.loose and any_layout(grads[0])))
            and (unshared(grads) or unshared_view(grads))
        ):
            leaf._grad_field = untracked(grads[0])
        else:
            leaf._grad_field = HOOKS.grad_copy(grads[0], leaf)
    elif recording:
        leaf._grad_field = CORE.add.call((old, grads[0], 1))
    else:
        CORE.add_.call((old, grads[0], 1))


def any_layout(g: Any) -> bool:
    """Whether this thread takes gradients as they are laid out."""
    from .leaf_policy import layout_enforced

    return type(g) is HOOKS.tensor and not layout_enforced()


def same_layout(g: Any, leaf: TensorBase) -> bool:
    """Whether a gradient is laid out as `.grad` has to be: like a dense leaf, else row-major."""
    if not isinstance(g, TensorBase) or type(g) is not HOOKS.tensor:
        return False
    if is_contiguous(leaf):
        return g._stride == leaf._stride or is_contiguous(g)
    if not strides_dense(leaf._shape, leaf._stride):
        return is_contiguous(g)
    for i, n in enumerate(leaf._shape):
        if n != 1 and g._stride[i] != leaf._stride[i]:
            return False
    return True


@final
class Refs:
    """How many references a fresh tensor and its storage have while only a list holds the tensor."""

    known: bool
    tensor: i64
    storage: i64
    base: i64  # of a fresh tensor that only a view holds

    def __init__(self) -> None:
        self.known = False
        self.tensor = 0
        self.storage = 0
        self.base = 0


REFS: Final = Refs()


def tensor_refs(grads: list[Any]) -> i64:
    n: i64 = _getrefcount(grads[0])
    return n


def storage_refs(grads: list[Any]) -> i64:
    n: i64 = _getrefcount(grads[0]._storage)
    return n


def base_refs(grads: list[Any]) -> i64:
    n: i64 = _getrefcount(grads[0]._base_field)
    return n


def measure() -> None:
    """How often a value is held while it is looked at differs between interpreters and mypyc."""
    fresh: list[Any] = [zeros_at((), float32, CPU)]
    REFS.tensor = tensor_refs(fresh)
    REFS.storage = storage_refs(fresh)
    fresh[0] = make_view(zeros_at((), float32, CPU), (), (), 0, None, ())
    REFS.base = base_refs(fresh)
    REFS.known = True


def unshared(grads: list[Any]) -> bool:
    """Whether the list alone holds grads[0], and it alone its memory."""
    if not REFS.known:
        measure()
    return tensor_refs(grads) <= REFS.tensor and storage_refs(grads) <= REFS.storage


def named(view: TensorBase) -> i64:
    """How often a view's own arguments, which it keeps, are its base."""
    n: i64 = 0
    args = view._view_args
    if args is not None:
        for each in args:
            if each is view._base_field:
                n += 1
    return n


def unshared_view(grads: list[Any]) -> bool:
    """Whether the list alone holds grads[0], a view, and it alone its base, as the transposed gradient of a weight."""
    if grads[0]._base_field is None or tensor_refs(grads) > REFS.tensor or storage_refs(grads) > REFS.storage + 1:
        return False
    held = REFS.base + named(grads[0])
    return base_refs(grads) <= held


def untracked(g: TensorBase) -> TensorBase:
    """A gradient that is taken as it is, without the base that it was a view of."""
    return g if g._base_field is None else alias(g, g._shape, g._stride, g._offset)


def warn_of_cycle() -> None:
    """What a graph that leads to `.grad` comes to: parameter and gradient hold each other."""
    warn_once(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
        "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
        "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
        "the cycle and avoid the leak."
    )
