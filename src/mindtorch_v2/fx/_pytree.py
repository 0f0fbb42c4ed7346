"""Flattening by a structure that is known: what generated code with structured inputs calls."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from ..utils._pytree import TreeSpec, tree_flatten

FlattenFnSpec = Callable[[Any, TreeSpec], list[Any]]
FlattenFnExactMatchSpec = Callable[[Any, TreeSpec], bool]
FlattenFuncSpec = FlattenFnSpec
FlattenFuncExactMatchSpec = FlattenFnExactMatchSpec
SUPPORTED_NODES: dict[Any, FlattenFnSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[Any, FlattenFnExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: Any, flatten_fn_spec: FlattenFnSpec, flatten_fn_exact_match_spec: FlattenFnExactMatchSpec | None = None
) -> None:
    """Say how values of a type are taken apart by a structure."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: Any) -> None:
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves of `pytree`, taken where `spec` has them."""
    if spec.is_leaf():
        return [pytree]
    flatten = SUPPORTED_NODES.get(spec.type)
    if flatten is not None:
        found: list[Any] = []
        for child, child_spec in zip(flatten(pytree, spec), spec.children()):
            found += tree_flatten_spec(child, child_spec)
        return found
    leaves, real = tree_flatten(pytree)
    if spec != real:
        raise RuntimeError(
            f"Real spec {real} of object {pytree} is different from expected spec {spec}. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml"
        )
    return leaves


def _by_key(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[k] for k in spec.context]


def _by_index(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[i] for i in range(spec.num_children)]


def _same_length(d: Any, spec: TreeSpec) -> bool:
    return len(d) == spec.num_children


for _kind in (list, tuple, namedtuple):
    register_pytree_flatten_spec(_kind, _by_index, _same_length)
register_pytree_flatten_spec(dict, _by_key, _same_length)
