"""Hooks on tensors: `register_hook`, `retain_grad`, `register_post_accumulate_grad_hook`.

Invariant: a hook belongs to a value. Hooks of a leaf live on the tensor, hooks of a computed tensor on the node that
made it, so that after an in-place write the old hooks still see the gradient of the old value.
"""

from __future__ import annotations

from _weakref import ref as _weak
from collections.abc import Callable, Sequence
from typing import Any

from .._dispatch.keys import NESTED, SPARSE
from .._dtype_names import tensor_type
from .._tensor_base import TensorBase, grad_fn_of, requires_grad
from .hooks import HookDict, RemovableHandle, add_hook
from .node import hooks_of


class TensorHooks:
    """The hooks of one value. `post` are those that run once a leaf's `.grad` is up to date."""

    __slots__ = ("fns", "post")

    def __init__(self) -> None:
        self.fns: Any = HookDict()
        self.post: HookDict | None = None

    def run(self, grads: list[Any], nr: int) -> None:
        """Let every hook see, and perhaps replace, grads[nr]."""
        for fn in list(self.fns.values()):
            got = fn(grads[nr])
            if got is not None:
                _check(fn, grads[nr], got)
                grads[nr] = got

    def run_post_accumulate(self, leaf: TensorBase) -> None:
        if self.post is not None:
            for fn in list(self.post.values()):
                got = fn(leaf)
                if got is not None:
                    _check(fn, leaf, got)
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def _check(fn: Callable[..., Any], old: Any, new: Any) -> None:
    """PyTorch's conditions for a gradient that a hook returns."""
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(new, TensorBase):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    name = getattr(fn, "__name__", "<unknown>")
    if new._device.type != old._device.type or new._dtype is not old._dtype or _parts(new) != _parts(old):
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {type_text(old)} got {type_text(new)})")
    if new._shape != old._shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")


def check_replaced(old: Sequence[Any], new: Sequence[Any]) -> None:
    """The same of the gradients that hooks of a module return; PyTorch says of all of them that they are `hook`."""
    for was, now in zip(old, new):
        if isinstance(was, TensorBase) and isinstance(now, TensorBase) and was._shape != now._shape:
            raise RuntimeError("hook 'hook' has changed the size of value")


def _parts(t: TensorBase) -> int:
    """Whether a tensor is made of others, and how."""
    return int(t._keys & (SPARSE | NESTED))


def type_text(t: TensorBase) -> str:
    text = tensor_type(t._dtype, t._device)
    if not _parts(t):
        return text
    return text.replace("torch.", "torch.sparse.") if text.startswith("torch.") else f"Sparse{text}"


def register_hook(t: TensorBase, fn: Callable[[Any], Any]) -> RemovableHandle:
    """`Tensor.register_hook`."""
    if not requires_grad(t):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = grad_fn_of(t)
    if node is None:
        return add_hook(_leaf_hooks(t).fns, fn)
    hooks = hooks_of(node)
    if hooks.tensor is None:
        hooks.tensor = {}
    return add_hook(hooks.tensor.setdefault(int(t._output_nr), TensorHooks()).fns, fn)


def backward_hooks(t: TensorBase) -> Any:
    """`Tensor._backward_hooks`: the hooks of the value a tensor has now, if there are any."""
    node = grad_fn_of(t)
    found: TensorHooks | None = t._hooks
    if node is not None:
        of_results = None if node._hooks is None else node._hooks.tensor
        found = None if of_results is None else of_results.get(int(t._output_nr))
    return found.fns if found is not None and (found.fns or type(found.fns) is not HookDict) else None


def set_backward_hooks(t: TensorBase, hooks: Any) -> None:
    """`leaf._backward_hooks = hooks`, as rebuilding a pickled tensor does; None takes them away."""
    if hooks is not None and not isinstance(hooks, dict):
        raise TypeError(f"_backward_hooks must be a dictionary or None, not {type(hooks).__name__}")
    if grad_fn_of(t) is not None:
        raise RuntimeError("_backward_hooks can be assigned on leaf tensors only; use register_hook")
    if hooks is not None:
        _leaf_hooks(t).fns = hooks
    elif t._hooks is not None:
        t._hooks.fns = HookDict()


def refuse(name: str) -> Callable[[Any], None]:
    """What deleting the attribute does."""

    def deleter(t: Any) -> None:
        raise RuntimeError(f"Deletion of {name} not allowed!")

    return deleter


def post_accumulate_grad_hooks(t: TensorBase) -> HookDict | None:
    """`Tensor._post_accumulate_grad_hooks`."""
    found: TensorHooks | None = t._hooks
    return None if found is None else found.post


def _leaf_hooks(t: TensorBase) -> TensorHooks:
    if t._hooks is None:
        t._hooks = TensorHooks()
    found: TensorHooks = t._hooks
    return found


def register_post_accumulate_grad_hook(t: TensorBase, fn: Callable[[Any], None]) -> RemovableHandle:
    """`Tensor.register_post_accumulate_grad_hook`."""
    if not requires_grad(t):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if grad_fn_of(t) is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    hooks = _leaf_hooks(t)
    if hooks.post is None:
        hooks.post = HookDict()
    return add_hook(hooks.post, fn)


def retain_grad(t: TensorBase) -> None:
    """`Tensor.retain_grad`: keep `.grad` of a computed tensor; nothing to do for a leaf."""
    if not requires_grad(t):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if t._grad_fn is None or retains_grad(t):
        # A leaf, a view made without recording, and what was asked before, whatever was written to its base since.
        return
    node = grad_fn_of(t)
    if node is None:
        return
    hooks = hooks_of(node)
    if hooks.retain is None:
        hooks.retain = {}
    hooks.retain.setdefault(int(t._output_nr), _weak(t))


def retains_grad(t: TensorBase) -> bool:
    """`Tensor.retains_grad`: whether `retain_grad` was asked for."""
    # As it was: that a view's base was written since is not this question's business.
    node = t._grad_fn
    if node is None or node._hooks is None or node._hooks.retain is None:
        return False
    ref = node._hooks.retain.get(int(t._output_nr))
    return ref is not None and ref() is t
