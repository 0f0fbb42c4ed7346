"""Parts of the nodes of `torch.utils._pytree` that know nothing of trees: children by keys, and what JSON holds."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def children_by_keys(tree: Any, keys: list[Any]) -> list[Any]:
    """A dictionary's values in the order of another's keys."""
    wanted, given = set(keys), set(tree)
    if wanted != given:
        text = f"; missing key(s): {wanted - given}" if wanted - given else ""
        text += f"; extra key(s): {given - wanted}" if given - wanted else ""
        raise ValueError(f"Node keys mismatch{text}.")
    return [tree[k] for k in keys]


def defaultdict_serialize(context: Any) -> dict[str, Any]:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def defaultdict_deserialize(written: Any) -> list[Any]:
    if not isinstance(written, dict):
        raise AssertionError("dumpable_context must be a dict")
    factory = getattr(import_module(written["default_factory_module"]), written["default_factory_name"])
    return [factory, written["dict_context"]]
