"""Parts of graphs as modules, and graphs compared."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(torch.nn.Module):
    """A module that only holds others."""

    def __init__(self, d: dict[str, Any]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """A module of a graph that uses attributes of another module, and where these are in both."""
    places = {
        str(node.target): f"{comp_name}.{node.target}" if comp_name else str(node.target)
        for node in subgraph.nodes
        if node.op in ("call_module", "get_attr")
    }
    return GraphModule(gm, subgraph, class_name), places


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs have the same shape and operators."""
    return len(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right)) > 0
