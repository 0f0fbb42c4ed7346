"""Private names of `torch.utils._pytree` that libraries register their own containers with."""

from __future__ import annotations

from typing import Any

from ._pytree import MappingKey, SequenceKey
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


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], None]:
    return list(d), None


def _tuple_unflatten(values: Any, context: Any) -> tuple[Any, ...]:
    return tuple(values)
