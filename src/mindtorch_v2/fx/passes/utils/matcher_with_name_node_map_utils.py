"""Patterns that name some of their nodes."""

from __future__ import annotations

import copy
from typing import Any

from ....utils import _pytree as pytree
from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """A pattern that returns its results alone, and the nodes that it names in a dictionary behind them."""
    graph: Any = gm.graph
    names: dict[str, Node] = {}
    node = graph.output_node()
    given = node.args[0]
    if hasattr(graph._codegen, "pytree_info") and graph._codegen.pytree_info.out_spec is not None:
        given = pytree.tree_unflatten(list(given), graph._codegen.pytree_info.out_spec)
    *results, named = given
    if not isinstance(named, dict):
        raise AssertionError("Expecting the graph output to be a tuple of (*outputs, {name: node})")
    names = dict(named)
    flat, _ = pytree.tree_flatten(tuple(results))
    node.args = (flat,)
    gm.recompile()
    return gm, names


@compatibility(is_backward_compatible=False)
class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds a pattern that returns results and a dictionary of nodes, and names the nodes it found."""

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(copy.deepcopy(pattern_gm))
        self.pattern_gm = pattern_gm
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The occurrences, each with its nodes by name."""
        found = super().match(graph, node_name_match)
        for occurrence in found:
            for name, node in self.name_node_map.items():
                occurrence.name_node_map[name] = occurrence.nodes_map[node]
        return found
