"""Nodes grouped by the part of the program that they were traced from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..._compatibility import compatibility
from ...graph import Graph
from ...node import Node
from .matcher_utils import _init_logger

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


logger = _init_logger(__name__)


@compatibility(is_backward_compatible=False)
@dataclass
class SourcePartition:
    """Nodes of one source, with what comes in, goes out, and is a parameter."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


@compatibility(is_backward_compatible=False)
def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """The nodes of each wanted class or function, one group for each place that it was used in."""
    groups: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        stack = node.meta.get("source_fn_stack", ()) or node.meta.get("torch_fn", ())
        if not stack:
            continue
        place, source = (stack[0], stack[1]) if isinstance(stack[0], str) else stack[-1]
        name = source.partition(".")[2] if isinstance(source, str) else source
        for wanted in (source, name):
            if wanted in wanted_sources:
                groups.setdefault(wanted, {}).setdefault(place, []).append(node)
                break
    found = {source: [_partition(nodes, source) for nodes in places.values()] for source, places in groups.items()}
    if filter_fn is None:
        return found
    kept = {source: [p for p in parts if all(map(filter_fn, p.output_nodes))] for source, parts in found.items()}
    return {source: parts for source, parts in kept.items() if parts}


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    inputs: dict[Node, None] = {}
    outputs: dict[Node, None] = {}
    params: dict[Node, None] = {}
    for node in nodes:
        for arg in node.args:
            if isinstance(arg, Node) and arg not in inside and arg.op != "get_attr":
                inputs[arg] = None
        if node.op == "get_attr":
            params[node] = None
        elif any(user not in inside for user in node.users):
            outputs[node] = None
    return SourcePartition(nodes, source, list(inputs), list(outputs), list(params))


@compatibility(is_backward_compatible=False)
def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether what goes out of one group comes into another."""
    outside = set(subgraph1.output_nodes)
    return any(node in outside for node in subgraph2.input_nodes)
