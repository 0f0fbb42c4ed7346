"""Nested state dicts as flat ones, with keys joined by dots, and back.

Invariant: what a key stands for is kept beside it, so that dots in keys do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _is_leaf(value: Any) -> bool:
    """Lists are taken apart only where there are tensors or dicts in them."""
    from ... import Tensor

    if isinstance(value, Mapping):
        return False
    if isinstance(value, list):
        return not any(isinstance(each, Tensor) or not _is_leaf(each) for each in value)
    return True


def flatten_state_dict(state_dict: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """The values by joined keys, and the way to each."""
    flat: dict[str, Any] = {}
    ways: dict[str, tuple[Any, ...]] = {}

    def visit(way: tuple[Any, ...], value: Any) -> None:
        if way and _is_leaf(value):
            name = ".".join(str(each) for each in way)
            if name in flat:
                raise ValueError(f"duplicated flatten key {name}")
            flat[name], ways[name] = value, way
        elif isinstance(value, Mapping):
            for key, each in value.items():
                visit((*way, str(key)), each)
        else:
            for at, each in enumerate(value):
                visit((*way, at), each)

    visit((), state_dict)
    return flat, ways


def set_element(root: Any, way: tuple[Any, ...], value: Any) -> None:
    """Put a value into a nested state dict, making what is missing on the way."""
    current = root
    for at, key in enumerate(way[:-1]):
        made: Any = [] if isinstance(way[at + 1], int) else {}
        if isinstance(key, int):
            _extended(current, key)
            if current[key] is None:
                current[key] = made
            current = current[key]
        else:
            current = current.setdefault(_key(current, key), made)
    last = way[-1]
    if isinstance(last, int):
        _extended(current, last)
        current[last] = value
    else:
        current[_key(current, last)] = value


def _key(current: dict[Any, Any], key: str) -> Any:
    """The key itself: numbers are text in a way."""
    if key in current or not key.isdigit():
        return key
    return int(key) if int(key) in current else key


def _extended(values: list[Any], at: int) -> None:
    while len(values) <= at:
        values.append(None)


def unflatten_state_dict(flat: Mapping[str, Any], ways: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """The nested state dict again."""
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        set_element(nested, ways[name], value)
    return nested
