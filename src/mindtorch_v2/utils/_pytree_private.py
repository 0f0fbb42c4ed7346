"""Private names of `torch.utils._pytree` that libraries register their own containers with."""

from __future__ import annotations

from typing import Any

from ._pytree import MappingKey, SequenceKey, TreeSpec, tree_flatten, tree_is_leaf
from ._pytree import _node_type as _get_node_type  # noqa: F401 (PyTorch's name)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """Values and keys, in the dictionary's order."""
    return list(d.values()), list(d)


def _dict_unflatten(values: Any, context: Any) -> dict[Any, Any]:
    """A dictionary of the keys and values."""
    return dict(zip(context, values))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    """Values with the keys that lead to them, and the keys."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _list_flatten(d: list[Any]) -> tuple[list[Any], None]:
    return list(d), None


def _list_unflatten(values: Any, context: Any) -> list[Any]:
    return list(values)


def _list_flatten_with_keys(d: list[Any]) -> tuple[list[tuple[SequenceKey, Any]], None]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: Any = None) -> list[Any] | None:
    """The leaves of `tree` for every leaf of a structure that it is the beginning of; None where it is not."""
    if tree_is_leaf(tree, is_leaf=is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf():
        return None
    leaves, own = tree_flatten(tree, is_leaf=lambda x: x is not tree)
    if own.type is not treespec.type or own.context != treespec.context or own.num_children != treespec.num_children:
        return None
    found: list[Any] = []
    for part, child in zip(leaves, treespec.children()):
        inner = _broadcast_to_and_flatten(part, child, is_leaf)
        if inner is None:
            return None
        found += inner
    return found


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], None]:
    return list(d), None


def _tuple_unflatten(values: Any, context: Any) -> tuple[Any, ...]:
    return tuple(values)
