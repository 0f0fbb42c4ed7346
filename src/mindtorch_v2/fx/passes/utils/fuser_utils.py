"""Taking nodes of a graph together into modules of their own.

Invariant: the graph computes the same afterwards; nodes between which a way leads outside cannot be taken together.
"""

from __future__ import annotations

import heapq
import operator
from typing import Any

from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node

__all__ = [
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "topo_sort",
    "validate_partition",
]


@compatibility(is_backward_compatible=False)
def topo_sort(nodes: list[Node]) -> list[Node]:
    """Nodes in an order in which they can run; of those that can, the one given first comes first."""
    places = {node: i for i, node in enumerate(nodes)}
    missing = {node: sum(n in places for n in node.all_input_nodes) for node in nodes}
    waiting = [i for node, i in places.items() if missing[node] == 0]
    heapq.heapify(waiting)
    ordered: list[Node] = []
    while waiting:
        node = nodes[heapq.heappop(waiting)]
        ordered.append(node)
        for user in node.users:
            if user in missing:
                missing[user] -= 1
                if missing[user] == 0:
                    heapq.heappush(waiting, places[user])
    if len(ordered) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return ordered


@compatibility(is_backward_compatible=False)
def validate_partition(partition: list[Node]) -> bool:
    """Whether nodes can be taken together: no way leads out of them and back in."""
    inside = set(partition)
    todo = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while todo:
        current = todo.pop()
        if current in inside:
            return False
        if current not in seen:
            seen.add(current)
            todo.extend(current.users)
    return True


@compatibility(is_backward_compatible=False)
def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: list[Node],
    module_name: str,
    partition_lookup_table: dict[Node, int | None] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Nodes in a module of their own, what it takes, and what of them others use."""
    from .common import lift_subgraph_as_module

    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = dict.fromkeys(nodes) if partition_lookup_table is None else partition_lookup_table
    subgraph = Graph()
    inputs: dict[Node, Node] = {}
    copies: dict[Node, Node] = {}

    def source(x: Node) -> Node:
        if x in inside:
            return copies[x]
        if x not in inputs:
            inputs[x] = subgraph.placeholder(x.name, type_expr=x.type)
            inputs[x].meta = x.meta.copy()
        return inputs[x]

    for node in nodes:
        copies[node] = subgraph.node_copy(node, source)
    used = [node for node in nodes if any(user not in inside for user in node.users)]
    results = tuple(copies[node] for node in used)
    subgraph.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    subgraph.lint()
    made, _ = lift_subgraph_as_module(gm, subgraph, comp_name="", class_name=module_name)
    return made, tuple(inputs), tuple(used)


@compatibility(is_backward_compatible=False)
def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Call a module in a graph, and let what it gives stand for other nodes."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        # Behind the last of what it takes; the order of what follows is mended afterwards.
        insertion_point = max(orig_inputs, default=None) if orig_inputs else None
        while insertion_point is not None and insertion_point.next.op == "placeholder":
            insertion_point = insertion_point.next
    place: Any = (
        gm.graph.inserting_before(gm.graph.output_node())
        if insertion_point is None
        else gm.graph.inserting_after(insertion_point)
    )
    with place:
        call = gm.graph.call_module(name, args=orig_inputs, kwargs=None)
    given: Any = sub_gm.graph.output_node().args[0]
    if len(orig_outputs) == 1 and not isinstance(given, tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    after = call
    for i, node in enumerate(orig_outputs):
        with gm.graph.inserting_after(after):
            after = gm.graph.call_function(operator.getitem, (call, i))
        node.replace_all_uses_with(after, propagate_meta=True)
    call.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


@compatibility(is_backward_compatible=False)
def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Take nodes out of a graph, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


@compatibility(is_backward_compatible=False)
def fuse_by_partitions(
    gm: GraphModule, partitions: list[dict[Node, int | None]], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Put each of several groups of nodes into a module of its own."""
    from ..tools_common import legalize_graph

    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        made, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, made, inputs, outputs)
        erase_nodes(gm, nodes)
    legalize_graph(gm)
    gm.recompile()
    return gm
