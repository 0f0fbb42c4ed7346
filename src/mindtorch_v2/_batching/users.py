"""Rules that users give: the `vmap` of an `autograd.Function` and of an operator of their own.

Invariant: a rule sees tensors outside of the level, with the mapped dimension in front, and says where it is in what
it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._dispatch.op import Op
from .._tensor_base import TensorBase, requires_grad
from ..utils._pytree import TreeSpec, tree_flatten, tree_unflatten
from .dims import add_batch_dim, remove_batch_dim
from .kernel import lifted, tensors_of
from .level import Level, handed, highest, is_at, is_many, levels_of, transforms
from .whole import WHOLE, whole

_MORE = " For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a rule is told of the level."""

    batch_size: int
    randomness: str


def _mapped(value: Any, level: Level) -> bool:
    """Whether there is one for each: a value, or a gradient."""
    return is_many(value, level) or (is_at(value, level) and requires_grad(value))


def _outside(value: Any, level: Level) -> Any:
    if not isinstance(value, TensorBase):
        return value
    if _mapped(value, level):
        return remove_batch_dim(value, 0, level)
    return handed(value, level)


def spread_over(tree: Any, spec: TreeSpec) -> list[Any] | None:
    """The leaves of `tree` for every leaf of a structure that it is the beginning of; None where it is not."""
    if spec.is_leaf():
        return [tree] if tree_flatten(tree)[1].is_leaf() else None
    leaves, own = tree_flatten(tree)
    if own.is_leaf():
        return leaves * spec.num_leaves
    if own.type is not spec.type or own.context != spec.context or own.num_children != spec.num_children:
        return None
    parts = tree.values() if isinstance(tree, dict) else tree
    found: list[Any] = []
    for part, child in zip(parts, spec.children()):
        inner = spread_over(part, child)
        if inner is None:
            return None
        found += inner
    return found


def called(rule: Callable[..., Any], args: tuple[Any, ...], level: Level) -> Any:
    """A user's rule on what is outside of the level, and its results inside again."""
    flat, spec = tree_flatten(args)
    dims = tree_unflatten([0 if _mapped(t, level) else None for t in flat], spec)
    given = tree_unflatten([_outside(t, level) for t in flat], spec)
    found = rule(VmapInfo(level.size, level.randomness), dims, *given)
    if not isinstance(found, tuple) or len(found) != 2:
        got = f"{len(found)} returns" if isinstance(found, tuple) else f"a {type(found)}"
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output. Got {got} instead"
        )
    outputs, structure = tree_flatten(found[0])
    places = spread_over(found[1], structure)
    if places is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={found[1]} to be compatible with the structure of `output`. out_dims has structure "
            f"{tree_flatten(found[1])[1]} but output has structure {structure}.{_MORE}"
        )
    for out, d in zip(outputs, places):
        if d is not None and not (isinstance(d, int) and -len(out._shape) <= d < len(out._shape)):
            raise IndexError(f"vmap: out_dims says {d!r} of a result with {len(out._shape)} dimensions")
    made = [out if d is None else add_batch_dim(out, d, level) for out, d in zip(outputs, places)]
    return tree_unflatten(made, structure)


NATURAL = object()


def function_applied(cls: Any, base: Any, args: tuple[Any, ...]) -> Any:
    """`Function.apply` while a transform runs; NATURAL where the function is called as ever, on batched tensors too."""
    if cls.setup_context is base.setup_context:
        if not transforms() or getattr(cls, "_is_operator", False):
            return NATURAL
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            f"override the setup_context staticmethod.{_MORE}"
        )
    level = highest([t for t in tree_flatten(args)[0] if isinstance(t, TensorBase)])
    if level is None or not any(is_many(t, level) for t in tree_flatten(args)[0]):
        return NATURAL
    own = cls.vmap is not base.vmap
    if cls.generate_vmap_rule:
        if own:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden "
                "vmap staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to "
                f"avoid ambiguity.{_MORE}"
            )
        return NATURAL
    if not own:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            f"the vmap staticmethod or set generate_vmap_rule=True.{_MORE}"
        )
    return called(cls.vmap, args, level)


def function_lifted(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments of a function that is called with batched tensors: those from outside, with gradients, come in."""
    levels = {level.number: level for t in tensors_of(args) for level in levels_of(t)}
    wanted = [levels[n] for n in sorted(levels)]
    return tuple([lifted(a, wanted) if isinstance(a, TensorBase) else a for a in args]) if wanted else args


def register(op: Op, rule: Callable[..., Any]) -> Callable[[], None]:
    """Serve an operator with a user's rule; what is returned takes it back."""

    def served(op: Op, args: tuple[Any, ...], level: Level) -> Any:
        return called(rule, args, level)

    before = WHOLE.get(op.name)
    _put(op, whole(served))

    def undo() -> None:
        if before is None:
            WHOLE.pop(op.name, None)
            op.forget()
        else:
            _put(op, before)

    return undo


def _put(op: Op, kernel: Any) -> None:
    WHOLE[op.name] = kernel
    op.forget()
