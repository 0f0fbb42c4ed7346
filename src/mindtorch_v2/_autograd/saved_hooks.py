"""Saved values in the user's keeping: pack hooks are called when a value is saved, unpack hooks when it is needed.

Invariant: hooks belong to the thread that entered their block, and only the innermost pair applies. A packed value
knows the history it must get back, never the tensor it was made from. Not compiled: none of this runs unless asked for.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from .._dispatch.state import LOCAL, swap_grad
from .._tensor_base import TensorBase, alias, grad_fn_of, requires_grad, version
from .node import FREED, WATCH, Node, hooks_of
from .record import RESULT, accumulator
from .saved import INFERENCE_SAVED, Packed, Saved, SavedList, SavedOutput, SavedTensor

_LOCK = threading.Lock()
# Stands for the node where there is none.
_NOBODY = Node()

_WRITES = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
    "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to "
    "perform in-place operations on the input to a pack hook."
)
_TWICE = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is "
    "allowed at a time."
)
_GONE = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
    "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved variables after calling backward."
)


# -- which hooks apply ----------------------------------------------------------------------------------------------
def _stack() -> list[tuple[Any, Any]]:
    stack: list[tuple[Any, Any]] | None = getattr(LOCAL, "saved_hooks", None)
    if stack is None:
        stack = LOCAL.saved_hooks = []
    return stack


def push_hooks(pack: Any, unpack: Any) -> None:
    message = getattr(LOCAL, "saved_hooks_disabled", None)
    if message is not None:
        raise RuntimeError(message)
    _stack().append((pack, unpack))
    with _LOCK:
        WATCH.hooks += 1
        WATCH.on = True


def pop_hooks() -> None:
    _stack().pop()
    with _LOCK:
        WATCH.hooks -= 1
        WATCH.on = WATCH.hooks > 0 or WATCH.anomaly


def top_hooks() -> tuple[Any, Any] | None:
    stack = _stack()
    return stack[-1] if stack else None


def disabled_message() -> str | None:
    """Why this thread may not use hooks, if so."""
    message: str | None = getattr(LOCAL, "saved_hooks_disabled", None)
    return message


def disable_hooks(message: str | None) -> None:
    """Refuse hooks in this thread with `message`; None allows them again."""
    if message is not None and _stack():
        raise RuntimeError(message)
    LOCAL.saved_hooks_disabled = message


# -- packing --------------------------------------------------------------------------------------------------------
def pack(t: TensorBase, hooks: tuple[Any, Any], made_by: Any, shown: TensorBase | None = None) -> Packed:
    """Hand a value to the user. `made_by` as in Packed; `shown` is what the hook sees if that is not the value
    itself."""
    if t.is_inference():
        raise RuntimeError(INFERENCE_SAVED)
    before = version(t)
    was = swap_grad(False)
    try:
        kept = hooks[0](t if shown is None else shown)
    finally:
        swap_grad(was)
    if version(t) != before:
        raise RuntimeError(_WRITES)
    leaf = grad_fn_of(t) is None
    return Packed(kept, hooks[1], leaf, t._output_nr, made_by, accumulator(t) if leaf and requires_grad(t) else None)


def pack_kept(value: Any, hooks: tuple[Any, Any]) -> Any:
    """The packed form of a kept input; numbers stay as they are."""
    if isinstance(value, SavedTensor):
        value = value.tensor
    if isinstance(value, TensorBase):
        return pack(value, hooks, grad_fn_of(value))
    if isinstance(value, SavedList):
        return SavedList([pack_kept(v, hooks) for v in value.items])
    return value


def pack_inputs(node: Node) -> None:
    hooks = top_hooks()
    saved = node._saved
    if hooks is None or saved is None:
        return
    for i, slot in enumerate(node._formulas.slots):
        if slot.kind != RESULT:
            saved[i] = pack_kept(saved[i], hooks)
    # The engine then lets the user's code know which pass it is in, and the collector sees what the hooks may refer to.
    hooks_of(node)


def pack_results(node: Node, result: Any) -> None:
    hooks = top_hooks()
    saved = node._saved
    if hooks is None or saved is None:
        return
    for i, slot in enumerate(node._formulas.slots):
        if slot.kind == RESULT and isinstance(saved[i], SavedOutput):
            t = result if isinstance(result, TensorBase) else result[slot.index]
            fn = grad_fn_of(t)
            saved[i] = pack(t, hooks, weakref.ref(fn) if fn is not None and fn is not node else None)


def pack_function(node: Node, tensors: Any) -> None:
    """The same for what a user's Function saved."""
    hooks = top_hooks()
    saved = node._saved
    if hooks is None or saved is None:
        return
    for i, t in enumerate(tensors):
        if t is not None:
            fn = grad_fn_of(t)
            saved[i] = pack(t, hooks, None if fn is node else fn)
    hooks_of(node)


def detached(t: TensorBase) -> TensorBase:
    return alias(t, t._shape, t._stride, t._offset)


class KeptTensor:
    """A tensor kept as an operator would keep it, by something that is no node: checked for writes, or packed."""

    def __init__(self, t: TensorBase) -> None:
        hooks = top_hooks()
        self._saved: Saved = SavedTensor(t) if hooks is None else pack(t, hooks, grad_fn_of(t))

    def unpack(self) -> Any:
        return self._saved.unpack(_NOBODY)


class SavedTensorHandle:
    """`grad_fn._raw_saved_self`: a saved value before it is unpacked."""

    def __init__(self, node: Node | None = None, index: int = 0) -> None:
        if node is None:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")
        self._node = node
        self._index = index

    def _value(self) -> Any:
        return None if self._node._saved is None else self._node._saved[self._index]

    @property
    def data(self) -> Any:
        """What is kept: the tensor, or what the pack hook returned."""
        value = self._value()
        if isinstance(value, Packed):
            return value.kept
        return self.unpack()

    @property
    def unpack_hook(self) -> Any:
        value = self._value()
        return value.unpack_hook if isinstance(value, Packed) else None

    def unpack(self) -> Any:
        value = self._value()
        if self._node._freed:
            raise RuntimeError(FREED)
        return value.unpack(self._node) if isinstance(value, Saved) else value

    def register_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """Pack this one value."""
        for fn in (pack_hook, unpack_hook):
            if not callable(fn):
                raise TypeError(f"register_hooks(): expected two callables, but got {type(fn).__name__}")
        node, value = self._node, self._value()
        if isinstance(value, Packed):
            raise RuntimeError(_TWICE)
        if node._freed:
            raise RuntimeError(_GONE)
        hooks = (pack_hook, unpack_hook)
        if isinstance(value, SavedTensor):
            value = value.tensor
        if isinstance(value, TensorBase):
            packed = pack(value, hooks, grad_fn_of(value), detached(value))
        elif isinstance(value, SavedOutput):
            t = value.unpack(node)
            packed = pack(t, hooks, value.made_by, detached(t))
        else:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        assert node._saved is not None
        node._saved[self._index] = packed
        hooks_of(node)


SavedTensorHandle.__name__ = SavedTensorHandle.__qualname__ = "SavedTensor"
SavedTensorHandle.__module__ = "torch._C._autograd"


# -- writing to saved values ----------------------------------------------------------------------------------------
class SavedCopies:
    """Values saved in a block that allows writing to them: copied when somebody is about to write."""

    def __init__(self) -> None:
        self.cloned: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.original: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        # By the storage whose memory the value is in; a storage that died may have left its place to another.
        self._sharing: dict[int, weakref.WeakSet[Any]] = {}

    def clear(self) -> None:
        self.cloned.clear()
        self.original.clear()
        self._sharing.clear()

    def keep(self, key: Any, t: TensorBase) -> None:
        self.original[key] = t
        self._sharing.setdefault(id(t._storage), weakref.WeakSet()).add(key)

    def about_to_write(self, t: TensorBase) -> None:
        """Keep a copy of every saved value that shares memory with `t`."""
        for key in list(self._sharing.pop(id(t._storage), ())):
            kept = self.original.get(key)
            if kept is not None and kept._storage is t._storage:
                was = swap_grad(False)
                try:
                    self.cloned[key] = kept.clone()
                finally:
                    swap_grad(was)
                del self.original[key]


def current_copies() -> SavedCopies | None:
    """What keeps copies in this thread."""
    copies: SavedCopies | None = getattr(LOCAL, "saved_copies", None)
    return copies


def set_copies(copies: SavedCopies | None) -> None:
    LOCAL.saved_copies = copies


def about_to_write(args: tuple[Any, ...], schema: Any) -> None:
    """Called before an operator that writes runs, in a thread that keeps copies."""
    copies = current_copies()
    if copies is None:
        return
    for a, value in zip(schema.args, args):
        if a.mutates:
            for t in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(t, TensorBase):
                    copies.about_to_write(t)
