"""Values kept for the backward pass, with the version each had when it was kept.

Invariant: a saved result never refers to the tensor that holds the node (that would be a reference cycle); it is
rebuilt with its history when it is unpacked.
"""

from __future__ import annotations

from _weakref import ref as _weak
from typing import Any, Final, final

from .. import _native
from .._core_operators import HOOKS
from .._device import device
from .._dispatch.keys import AUTOGRAD, FORWARD, INFERENCE, MEMORY, PYTHON, TORCH_DISPATCH
from .._dispatch.state import modes, set_modes
from .._dtype import dtype
from .._dtype_names import tensor_type
from .._mypyc import i64
from .._tensor_base import DETACHED, TensorBase, alias, counter, set_history
from .node import FREED, WATCH, Node, short_name
from .version_counter import VersionCounter

_alloc: Final[Any] = _native.alloc_instance
_PYTHON_OFF: Final[i64] = PYTHON << 32

INFERENCE_SAVED: Final = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)

DETACHED_SAVED: Final = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, please "
    "use out-of-place `.detach()` instead"
)


class Saved:
    """Something to be unpacked when the node runs."""

    def unpack(self, node: Node) -> Any:
        raise NotImplementedError


@final
class SavedTensor(Saved):
    """A kept input: the tensor itself, whose history lies behind the node and so makes no cycle."""

    tensor: TensorBase | None
    version: i64
    computed: bool
    """Whether it had a history."""

    def __init__(self, tensor: TensorBase) -> None:
        if tensor._keys & INFERENCE:
            raise RuntimeError(INFERENCE_SAVED)
        self.tensor = tensor
        vc = tensor._vc
        self.version = vc.value if vc is not None else 0
        self.computed = tensor._grad_fn is not None

    @property
    def saved_version(self) -> int:
        return self.version

    def unpack(self, node: Node) -> Any:
        """The tensor, if nobody wrote to it since."""
        t = self.tensor
        if t is None:
            raise RuntimeError(FREED)
        if self.computed and t._cmeta == DETACHED and t._grad_fn is None:
            raise RuntimeError(DETACHED_SAVED)
        vc = t._vc
        if vc is not None and vc.value != self.version:
            fn = t.grad_fn
            raise modified(t._shape, t._dtype, t._device, fn, t._output_nr, self.version, vc.value)
        return t

    def release(self) -> None:
        self.tensor = None


@final
class SavedOutput(Saved):
    """A kept result of the node itself: its memory, not the tensor. `made_by` overrides the node it gets as history:
    a result written through a view belongs to the view's own node, which is known weakly because it leads back here."""

    def __init__(self, t: TensorBase, output_nr: i64, made_by: Any) -> None:
        if t._keys & INFERENCE:
            raise RuntimeError(INFERENCE_SAVED)
        vc = counter(t)
        self.storage: Any = t._storage
        self.offset: i64 = t._offset
        self.shape: tuple[int, ...] = t._shape
        self.stride: tuple[int, ...] = t._stride
        self.dtype: dtype = t._dtype
        self.device: device = t._device
        self.keys: i64 = t._keys & MEMORY
        self.counter: VersionCounter = vc
        self.version: i64 = vc.value
        self.output_nr: i64 = output_nr
        self.made_by: Any = made_by
        self.wrapped: Any = None
        # Those of the result, shared with it: a tangent comes after the history. Leaving its level takes it out.
        self.tangents: dict[int, TensorBase | None] | None = None
        if (t._keys | modes()) & TORCH_DISPATCH:
            # What wraps other tensors has no memory of its own; its handler makes the copy without history.
            wrapper: Any = t
            self.wrapped = wrapper.detach()

    @property
    def saved_version(self) -> int:
        return self.version

    def lies_as(self, t: TensorBase) -> bool:
        """Whether `t` is the kept result, and not another view of its memory."""
        return (
            self.storage is t._storage
            and self.offset == t._offset
            and self.shape == t._shape
            and self.stride == t._stride
            and self.dtype is t._dtype
            and self.keys == t._keys & MEMORY
        )

    def unpack(self, node: Node) -> Any:
        fn = node
        if self.made_by is not None:
            found = self.made_by()
            if found is not None:
                fn = found
        now = self.counter.value
        if now != self.version:
            raise modified(self.shape, self.dtype, self.device, fn, self.output_nr, self.version, now)
        if self.wrapped is not None:
            wrapper: TensorBase = self.wrapped.detach()
            set_history(wrapper, fn, self.output_nr)
            return wrapper
        t: TensorBase = _alloc(TensorBase, HOOKS.tensor)
        t._storage = self.storage
        t._offset = self.offset
        t._shape = self.shape
        t._stride = self.stride
        t._dtype = self.dtype
        t._device = self.device
        t._keys = self.keys
        t._vc = self.counter
        if self.tangents:
            t._tangents = self.tangents
            t._keys |= FORWARD
        set_history(t, fn, self.output_nr)
        return t


@final
class SavedList(Saved):
    """A kept list of tensors."""

    def __init__(self, items: list[Any]) -> None:
        self.items: Final = items

    def unpack(self, node: Node) -> Any:
        return tuple([unpacked(v, node) for v in self.items])


@final
class Packed(Saved):
    """A value in the user's keeping: what the pack hook returned, and the history that unpacking gives back. `made_by`
    is None for a leaf and for a result of the node that saves it, a weak reference where the node leads back here.
    `accumulator` is the node of a leaf that requires grad."""

    def __init__(self, kept: Any, unpack_hook: Any, leaf: bool, output_nr: i64, made_by: Any, accumulator: Any) -> None:
        self.kept: Any = kept
        self.unpack_hook: Any = unpack_hook
        self.leaf: bool = leaf
        self.output_nr: i64 = output_nr
        self.made_by: Any = made_by
        self.accumulator: Any = accumulator

    def unpack(self, node: Node) -> Any:
        old = modes()
        # Formulas run with handlers off; the hook is user code.
        set_modes(old & ~_PYTHON_OFF)
        try:
            got = self.unpack_hook(self.kept)
        finally:
            set_modes(old)
        if not isinstance(got, TensorBase):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(got).__name__}"
            )
        t = alias(got, got._shape, got._stride, got._offset)
        if not self.leaf:
            set_history(t, self.history(node), self.output_nr)
        elif self.accumulator is not None:
            t._keys |= AUTOGRAD
            t._accumulator = _weak(self.accumulator)
        return t

    def history(self, node: Node) -> Node:
        fn = self.made_by
        if isinstance(fn, Node):
            return fn
        found = fn() if fn is not None else None
        return found if isinstance(found, Node) else node


@final
class Opened(Saved):
    """A value that was unpacked already."""

    def __init__(self, value: Any) -> None:
        self.value: Final[Any] = value

    def unpack(self, node: Node) -> Any:
        return self.value


def opened(saved: list[Any], node: Node) -> list[Any]:
    """Saved values with those in the user's keeping unpacked, each once however many formulas name it."""
    out: list[Any] = []
    for v in saved:
        out.append(Opened(v.unpack(node)) if isinstance(v, Packed) or isinstance(v, SavedList) else v)
    return out


def modified(
    shape: tuple[int, ...], dt: dtype, dev: device, made_by: Node | None, nr: i64, saved: i64, now: i64
) -> RuntimeError:
    """PyTorch's report of a saved value that was written in place."""
    text = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{tensor_type(dt, dev)} [{', '.join([str(s) for s in shape])}]]"
    )
    if made_by is not None and dt.is_inexact:  # integers have no node in PyTorch
        text += f", which is output {nr} of {short_name(made_by)},"
    text += f" is at version {now}; expected version {saved} instead. Hint: "
    if WATCH.anomaly:
        text += (
            "the backtrace further above shows the operation that failed to compute its gradient. The variable in "
            "question was changed in there or anywhere later. Good luck!"
        )
    else:
        text += (
            "enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
    return RuntimeError(text)


def unpacked(v: Any, node: Node) -> Any:
    """A kept value. A tensor kept as it is had version 0, which nearly all have: that saves an object for each."""
    if isinstance(v, TensorBase):
        if v._cmeta == DETACHED and v._grad_fn is None:
            raise RuntimeError(DETACHED_SAVED)
        vc = v._vc
        if vc is not None and vc.value != 0:
            raise modified(v._shape, v._dtype, v._device, v.grad_fn, v._output_nr, 0, vc.value)
        return v
    return v.unpack(node) if isinstance(v, Saved) else v


def save_lean(t: TensorBase) -> Any:
    """Keep an input, without a record of its version where that is 0."""
    vc = t._vc
    if t._keys & INFERENCE or (vc is not None and vc.value != 0) or t._cmeta == DETACHED:
        return SavedTensor(t)
    return t


def save_input(t: Any) -> Any:
    """Keep a value that exists outside the node."""
    return SavedTensor(t) if isinstance(t, TensorBase) else t


def save_written(t: TensorBase, node: Node) -> SavedOutput:
    """Keep the result of an in-place write."""
    fn = t._grad_fn
    return SavedOutput(t, 0, _weak(fn) if fn is not None and fn is not node else None)


def save_list(value: Any) -> Any:
    """Lists of tensors are kept tensor by tensor; lists of numbers as they are."""
    found = False
    items: list[Any] = []
    for v in value:
        if isinstance(v, TensorBase):
            found = True
            items.append(save_lean(v))
        else:
            items.append(v)
    return SavedList(items) if found else value


def release(node: Node) -> None:
    """Drop saved tensors after a backward pass that does not keep the graph; a node that has none may run again."""
    if node._holds:
        node._saved = None
        node._freed = True
