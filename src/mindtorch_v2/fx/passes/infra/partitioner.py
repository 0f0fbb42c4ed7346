"""Groups of supported nodes, as large as they can be without a cycle between groups.

Invariant: the graph with each group in place of its nodes has no cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import getitem
from typing import Any

from ..._compatibility import compatibility
from ...graph_module import GraphModule
from ...node import Node, _get_qualified_name
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


@compatibility(is_backward_compatible=False)
class Partition:
    """A group of nodes, with their places in the graph."""

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None, node_orders: Iterable[int] | None = None
    ) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = {}
        if nodes is not None:
            self.nodes = dict.fromkeys(nodes) if node_orders is None else dict(zip(nodes, node_orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Take a node in."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Leave a node out."""
        del self.nodes[node]

    def size(self) -> int:
        """How many nodes."""
        return len(self.nodes)


@compatibility(is_backward_compatible=False)
class CapabilityBasedPartitioner:
    """Groups the nodes that something supports."""

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops if non_compute_ops is not None else []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _is_node_supported(self, node: Node) -> bool:
        return self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self) -> list[Partition]:
        """The groups, those of later nodes first."""
        nodes = list(self.graph_module.graph.nodes)
        order = {node: i for i, node in enumerate(nodes)}
        groups: dict[int, set[Node]] = {}
        group_of: dict[Node, int] = {}
        modules = dict(self.graph_module.named_modules())
        for node in reversed(nodes):
            if not self.operator_support.is_node_supported(modules, node):
                continue
            number = next(
                (n for n in self._candidates(node, groups, group_of) if _joins(node, n, groups, group_of)), None
            )
            if number is None:
                number = order[node]
                groups[number] = set()
            groups[number].add(node)
            group_of[node] = number
        _follow_producers(nodes, groups, group_of)
        found = [
            Partition(number, ordered, [order[n] for n in ordered])
            for number, members in groups.items()
            if (ordered := sorted(members, key=lambda n: order[n])) and self._is_kept(ordered)
        ]
        for i, partition in enumerate(found):
            partition.id = i
        return found

    def _candidates(self, node: Node, groups: dict[int, set[Node]], group_of: dict[Node, int]) -> list[int]:
        """The groups that a node may join: those of its users first, then, beside it, any."""
        users = dict.fromkeys(group_of[user] for user in node.users if user in group_of)
        return list(users) if self.skip_horizontal_fusion else list({**users, **dict.fromkeys(groups)})

    def _is_kept(self, nodes: list[Node]) -> bool:
        """Whether a group has enough nodes that compute something."""
        if self.allows_single_node_partition:
            return True
        idle = {"torch.ops.aten.view", "_operator.getitem", *self.non_compute_ops}
        count = 0
        for node in nodes:
            if node.op != "call_function":
                continue
            name = _get_qualified_name(_callable(node))
            count += name not in idle
            if name in self.allowed_single_node_partition_ops:
                return True
        return count > 1

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """The module with each group in a module of its own."""
        return fuse_by_partitions(self.graph_module, [partition.nodes for partition in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Leave out nodes at the edges of groups that compute nothing."""
        idle = set(self.non_compute_ops)

        def is_idle(node: Node) -> bool:
            return node.op == "call_function" and _get_qualified_name(_callable(node)) in idle

        for partition in partitions:
            inside = set(partition.nodes)
            while True:
                edge = [
                    node
                    for node in inside
                    if is_idle(node)
                    and (all(n not in inside for n in node.all_input_nodes) or all(n not in inside for n in node.users))
                ]
                if not edge:
                    break
                inside -= set(edge)
            for node in [n for n in partition.nodes if n not in inside]:
                partition.remove_node(node)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """The module with each proposed group in a module of its own."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)


def _callable(node: Node) -> Any:
    return node.target


def _joins(node: Node, number: int, groups: dict[int, set[Node]], group_of: dict[Node, int]) -> bool:
    """Whether no way leads from a node around a group back into it; other groups are passed as a whole.

    Nodes come last first, so that no way can lead from the group to the node.
    """
    todo = [user for user in node.users if group_of.get(user) != number]
    seen = set(todo)
    passed: set[int] = set()
    while todo:
        current = todo.pop()
        other = group_of.get(current)
        if other == number:
            return False
        reached = current.users
        if other is not None:
            if other in passed:
                continue
            passed.add(other)
            reached = dict.fromkeys(user for member in groups[other] for user in member.users)
        for user in reached:
            if user not in seen and (other is None or group_of.get(user) != other):
                seen.add(user)
                todo.append(user)
    return True


def _follow_producers(nodes: list[Node], groups: dict[int, set[Node]], group_of: dict[Node, int]) -> None:
    """Parts of what a node gives are taken where that is computed."""
    for node in nodes:
        if node.op != "call_function" or node.target is not getitem:
            continue
        source: Any = node.args[0]
        wanted = group_of.get(source)
        had = group_of.pop(node, None)
        if had is not None:
            groups[had].discard(node)
        if wanted is not None:
            group_of[node] = wanted
            groups[wanted].add(node)
