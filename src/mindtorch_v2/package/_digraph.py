"""Directed graphs of names, in which an exporter notes what needs what."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any


class DiGraph:
    """Nodes with attributes, and edges between them."""

    def __init__(self) -> None:
        self._node: dict[Any, dict[str, Any]] = {}
        self._succ: dict[Any, dict[Any, None]] = {}
        self._pred: dict[Any, dict[Any, None]] = {}

    def add_node(self, n: Any, **kwargs: Any) -> None:
        """Add a node, or attributes to one."""
        self._node.setdefault(n, {}).update(kwargs)
        self._succ.setdefault(n, {})
        self._pred.setdefault(n, {})

    def add_edge(self, u: Any, v: Any) -> None:
        """Add an edge, and its nodes where they are new."""
        self.add_node(u)
        self.add_node(v)
        self._succ[u][v] = None
        self._pred[v][u] = None

    def successors(self, n: Any) -> Iterator[Any]:
        """The nodes that edges from a node lead to."""
        return self._beside(self._succ, n)

    def predecessors(self, n: Any) -> Iterator[Any]:
        """The nodes that edges to a node come from."""
        return self._beside(self._pred, n)

    @staticmethod
    def _beside(table: dict[Any, dict[Any, None]], n: Any) -> Iterator[Any]:
        if n not in table:
            raise ValueError(f"The node {n} is not in the digraph.")
        return iter(table[n])

    @property
    def edges(self) -> Iterator[tuple[Any, Any]]:
        """All edges."""
        return ((u, v) for u, others in self._succ.items() for v in others)

    @property
    def nodes(self) -> dict[Any, dict[str, Any]]:
        """All nodes with their attributes."""
        return self._node

    def __iter__(self) -> Iterator[Any]:
        return iter(self._node)

    def __contains__(self, n: Any) -> bool:
        try:
            return n in self._node
        except TypeError:
            return False

    def _reached(self, src: Any, table: dict[Any, dict[Any, None]]) -> set[Any]:
        found, waiting = {src}, deque([src])
        while waiting:
            for other in table[waiting.popleft()]:
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return found

    def forward_transitive_closure(self, src: str) -> set[str]:
        """All that can be reached from a node, and itself."""
        return self._reached(src, self._succ)

    def backward_transitive_closure(self, src: str) -> set[str]:
        """All from which a node can be reached, and itself."""
        return self._reached(src, self._pred)

    def all_paths(self, src: str, dst: str) -> str:
        """The part of the graph on paths between two nodes, in the language of Graphviz."""
        between = self.forward_transitive_closure(src) & self.backward_transitive_closure(dst)
        part = DiGraph()
        for u, v in self.edges:
            if u in between and v in between:
                part.add_edge(u, v)
        return part.to_dot()

    def first_path(self, dst: str) -> list[str]:
        """Some path to a node from one that nothing leads to."""
        path = [dst]
        while True:
            before = next((n for n in self._pred[path[-1]] if n not in path), None)
            if before is None:
                return path[::-1]
            path.append(before)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz."""
        edges = "\n".join(f'"{u}" -> "{v}";' for u, v in self.edges)
        return f"digraph G {{\nrankdir = LR;\nnode [shape=box];\n{edges}\n}}\n"
