"""`torch._functorch.compile_utils`: what passes over traced graphs share."""

from __future__ import annotations

from typing import Any

from .. import fx
from .._operators import OpOverload
from .._tags import Tag
from ..utils._pytree import tree_flatten, tree_leaves

__all__ = ["fx_graph_cse", "get_aten_target", "get_outputs", "get_placeholders", "strip_overloads"]


def get_aten_target(node: fx.Node) -> Any:
    """What a node calls, whichever overload."""
    return node.target.overloadpacket if isinstance(node.target, OpOverload) else node.target


def _writes(node: fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and bool(node.target._schema.is_mutable)


def _once(node: fx.Node) -> bool:
    """Whether a node gives the same whenever it is asked."""
    if node.op != "call_function":
        return False
    return not (isinstance(node.target, OpOverload) and Tag.nondeterministic_seeded in node.target.tags)


def _key(node: fx.Node) -> Any:
    """What a node computes, where that can be compared; the types tell 1 from 1.0 and True."""
    leaves, spec = tree_flatten((node.args, node.kwargs))
    key = (node.target, tuple((type(v), v) for v in leaves), spec)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def fx_graph_cse(fx_g: fx.Graph) -> fx.Graph:
    """A graph in which what is computed twice is computed once. Where memory is written nothing is left out: equal
    calls then need not give equal values."""
    made = fx.Graph()
    new: dict[fx.Node, fx.Node] = {}
    seen: dict[Any, fx.Node] = {}
    pure = not any(map(_writes, fx_g.nodes))
    for node in fx_g.nodes:
        copied = made.node_copy(node, lambda n: new[n])
        key = _key(copied) if pure and _once(node) else None
        if key is not None and key in seen:
            made.erase_node(copied)
            copied = seen[key]
        elif key is not None:
            seen[key] = copied
        new[node] = copied
    return made


def strip_overloads(gm: fx.GraphModule) -> None:
    """Let the nodes of a module call operators and not their overloads."""
    for node in gm.graph.nodes:
        node.target = get_aten_target(node)
    gm.recompile()


def get_placeholders(graph: fx.Graph) -> list[Any]:
    """The nodes that stand for arguments."""
    return list(graph.find_nodes(op="placeholder"))


def get_outputs(graph: fx.Graph) -> list[Any]:
    """What a graph gives, in one list."""
    for node in graph.find_nodes(op="output"):
        return tree_leaves(node.args[0])
    raise AssertionError("No output node found")
