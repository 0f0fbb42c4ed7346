"""Taking nodes of a graph together."""

from __future__ import annotations

from ...node import Node


def topo_sort(nodes: list[Node]) -> list[Node]:
    """Nodes in the order of their graph, which is one in which they can run."""
    return sorted(nodes)


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
