"""Descriptions of nested containers as JSON text: `treespec_dumps` and `treespec_loads`.

Invariant: a text names node types by the names they were registered with, and is read back to an equal description
where the same names are registered.
"""

from __future__ import annotations

import functools
import importlib
import json
from enum import Enum
from typing import Any

from ._pytree import (
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_SERIALIZED_TYPES,
    LeafSpec,
    TreeSpec,
)

PROTOCOL = 1


class EnumEncoder(json.JSONEncoder):
    """JSON with members of enumerations."""

    def default(self, obj: object) -> Any:
        if isinstance(obj, Enum):
            kind = type(obj)
            return {"__enum__": True, "fqn": f"{kind.__module__}:{kind.__qualname__}", "name": obj.name}
        return super().default(obj)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """A member of an enumeration from what `EnumEncoder` made of it."""
    if "__enum__" not in obj:
        return obj
    module, _, path = obj["fqn"].partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found[obj["name"]]


def _described(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    if spec.type not in SUPPORTED_SERIALIZED_TYPES:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    known = SUPPORTED_SERIALIZED_TYPES[spec.type]
    if known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call "
            "with a `serialized_type_name` kwarg."
        )
    if known.to_dumpable_context is not None:
        context = known.to_dumpable_context(spec.context)
    else:
        try:
            context = json.dumps(spec.context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom serializer "
                "using _register_pytree_node."
            ) from error
    children = [_described(child) for child in spec.children_specs]
    return {"type": known.serialized_type_name, "context": context, "children_spec": children}


def _read(described: dict[str, Any]) -> TreeSpec:
    kind, context, children = described["type"], described["context"], described["children_spec"]
    if kind is None and context is None and not children:
        return LeafSpec()
    if kind not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {kind} in pytree is not registered.")
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE[kind]
    from_dumpable = SUPPORTED_SERIALIZED_TYPES[cls].from_dumpable_context
    if from_dumpable is not None:
        context = from_dumpable(context)
    else:
        try:
            context = json.loads(context, object_hook=enum_object_hook)
        except TypeError as error:
            raise TypeError(
                "Unable to deserialize context. Please make the context json load-able, or register a custom "
                "serializer using _register_pytree_node."
            ) from error
    return TreeSpec(cls, context, [_read(child) for child in children])


def _check_protocol(protocol: Any) -> None:
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[PROTOCOL]}")


def dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A description of a nesting as text."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    if protocol is not None:
        _check_protocol(protocol)
    return json.dumps((PROTOCOL, _described(treespec)), cls=EnumEncoder)


@functools.lru_cache
def loads(serialized: str) -> TreeSpec:
    """The nesting that `treespec_dumps` described."""
    protocol, described = json.loads(serialized)
    _check_protocol(protocol)
    return _read(described)
