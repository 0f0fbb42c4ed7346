"""Replacing every occurrence of a pattern in a graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import mindtorch_v2 as torch

from ._compatibility import compatibility
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node

if TYPE_CHECKING:
    from .passes.utils.matcher_utils import InternalMatch

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


@compatibility(is_backward_compatible=True)
class Match(NamedTuple):
    """An occurrence: the node by which it was found, and the graph's nodes by those of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


@compatibility(is_backward_compatible=False)
@dataclass
class ReplacedPatterns:
    """An occurrence, and the nodes that took its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


@compatibility(is_backward_compatible=True)
def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace `pattern`, a function or traced module, by `replacement` wherever `gm` has it."""
    return [Match(m.anchor, m.nodes_map) for m in _replace_pattern(gm, pattern, replacement)]


@compatibility(is_backward_compatible=False)
def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """The same, where every filter agrees; numbers may differ with `ignore_literals`, and a callback may choose what
    takes the place of each occurrence."""
    return _replace_pattern(
        gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match
    )


def _graph_of(given: Any) -> Graph:
    if isinstance(given, GraphModule):
        return given.graph
    return given if isinstance(given, Graph) else symbolic_trace(given).graph


def _replace_pattern(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    from .passes.utils.matcher_utils import SubgraphMatcher

    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, remove_overlapping_matches=True, ignore_literals=ignore_literals)
    found = [
        m
        for m in matcher.match(graph, node_name_match=node_name_match)
        if all(accepts(m, graph, pattern_graph) for accepts in match_filters or ())
    ]
    common: Graph | None = None
    if isinstance(replacement, (GraphModule, Graph)) or callable(replacement):
        common = _graph_of(replacement)
    elif replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    # Nodes that an earlier replacement took out, by what stands for them now.
    changed: dict[Node, Node] = {}
    done: list[ReplacedPatterns] = []
    for match in found:
        new = common if replacement_callback is None else replacement_callback(match, graph, pattern_graph)
        assert new is not None
        done.append(_replace_one(gm, match, pattern_graph, new, changed))
    gm.recompile()
    if isinstance(replacement, torch.nn.Module):
        _replace_attributes(gm, replacement)
    return done


def _replace_one(
    gm: GraphModule, match: InternalMatch, pattern: Graph, new: Graph, changed: dict[Node, Node]
) -> ReplacedPatterns:
    graph = gm.graph
    inputs = [n for n in new.nodes if n.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}")
    values: dict[Node, Any] = {}
    for rn, gn in zip(inputs, list(match.placeholder_nodes)):
        values[rn] = changed.get(gn, gn) if isinstance(gn, Node) else gn
        if values[rn] is not gn:
            match.placeholder_nodes[match.placeholder_nodes.index(gn)] = values[rn]
            key = next(k for k, v in match.nodes_map.items() if v is gn)
            match.nodes_map[key] = values[rn]
    with graph.inserting_before(_insert_point(graph, match)):
        copied: Any = graph.graph_copy(new, values)
    if isinstance(copied, Node):
        copied = (copied,)
    added = [v for v in values.values() if v not in match.placeholder_nodes]
    if len(match.returning_nodes) != len(copied):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(copied)}")
    for gn, node in zip(match.returning_nodes, copied):
        gn.replace_all_uses_with(node)
        changed[gn] = node
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _insert_point(graph: Graph, match: InternalMatch) -> Node:
    """In front of the first node that uses a result of the occurrence; where nobody does, behind its last node."""
    users = {user for n in match.returning_nodes for user in n.users}
    found = next((n for n in graph.nodes if n in users), None)
    if found is None:
        following: Node | None = None
        for n in reversed(graph.nodes):
            if n in match.returning_nodes:
                found = following
                break
            following = n
    if found is None:
        raise AssertionError("The insert point can't be None")
    return found


def _replace_attributes(gm: GraphModule, replacement: torch.nn.Module) -> None:
    """Give the module what the replacement's nodes speak of, and drop what nobody uses any more."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()

    def find(module: torch.nn.Module, target: str) -> Any:
        path, _, name = target.rpartition(".")
        try:
            return getattr(module.get_submodule(path), name, None)
        except AttributeError:
            return None

    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or find(gm, node.target) is not None:
            continue
        value = find(replacement, node.target)
        if value is None:
            raise RuntimeError(
                'Attempted to create a "',
                node.op,
                f'" node during subgraph rewriting with target {node.target}, but the referenced attribute does not '
                "exist in the replacement GraphModule",
            )
        value = copy.deepcopy(value)
        if isinstance(value, torch.nn.Module):
            gm.add_submodule(node.target, value)
        else:
            setattr(gm, node.target, value)
    gm.graph.lint()
