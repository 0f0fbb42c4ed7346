"""Finding the occurrences of a pattern, itself a graph, in a graph.

Invariant: of an occurrence, only the nodes that the pattern returns are used outside of it, and taking its nodes
together makes no cycle.
"""

from __future__ import annotations

import copy
import logging
import os
from dataclasses import dataclass, field
from typing import Any

import mindtorch_v2 as torch

from ...._operators import OpOverload
from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import _get_attr
from ...node import Node
from .fuser_utils import validate_partition

__all__ = ["InternalMatch", "SubgraphMatcher"]


def _init_logger(name: str = __name__) -> logging.Logger:
    found = logging.getLogger(name)
    found.setLevel(os.environ.get("PYTORCH_MATCHER_LOGLEVEL", "WARNING").upper())
    return found


logger = _init_logger()


@compatibility(is_backward_compatible=False)
@dataclass
class InternalMatch:
    """An occurrence."""

    # The pattern's nodes by which it was found.
    anchors: list[Node]
    # The graph's nodes by the pattern's.
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    # What the graph has in the places of the pattern's inputs, and of what it returns.
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors, self.nodes_map.copy(), self.placeholder_nodes.copy(), self.returning_nodes.copy()
        )


@compatibility(is_backward_compatible=False)
class SubgraphMatcher:
    """Finds a pattern. `match_output`: its return statement must be the graph's; `match_placeholder`: its inputs must
    be inputs; `ignore_literals`: numbers may differ."""

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        self.pattern_anchors: list[Node] = (
            [output] if match_output else [n for n in output.all_input_nodes if len(n.users) == 1]
        )

    # -- nodes ------------------------------------------------------------------------------------------------------
    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        values = [_get_attr(n.graph.owning_module, n.target) for n in (pn, gn)]
        if type(values[0]) is not type(values[1]):
            return False
        if isinstance(values[0], torch.Tensor):
            return True
        raise RuntimeError(f"Unsupported type {values[0]} when matching attributes")

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return bool(pn.target == gn.target)

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(pn, Node):
            if pn.op != "placeholder":
                return False
            if pn in match.nodes_map:
                return bool(match.nodes_map[pn] == gn)
            match.nodes_map[pn] = gn
            return True
        return not isinstance(gn, Node) and type(gn) is type(pn) and bool(gn == pn)

    def _match_args(self, left: Any, right: Any, match: InternalMatch) -> bool:
        if len(left) != len(right):
            return False
        for a, b in zip(left, right):
            if isinstance(a, Node) and isinstance(b, Node):
                fits = self._match_nodes(a, b, match)
            elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
                fits = self._match_args(a, b, match)
            else:
                fits = self._match_literals(a, b, match) or self.ignore_literals
            if not fits:
                return False
        return True

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        if pn in match.nodes_map:
            return bool(match.nodes_map[pn] == gn)
        if gn in match.nodes_map.values() or not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        given = _paired(pn, gn)
        return given is not None and self._match_args(*given, match)

    # -- occurrences ------------------------------------------------------------------------------------------------
    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether nodes inside the occurrence are used inside only."""
        inside = {gn: pn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        return all(
            user in inside for gn, pn in inside.items() if pn not in self.pattern_returning_nodes for user in gn.users
        )

    def _remove_overlapping_matches(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        taken: set[Node] = set()
        kept: list[InternalMatch] = []
        for match in matches:
            nodes = _computed(match)
            if taken.isdisjoint(nodes):
                kept.append(match)
                taken.update(nodes)
        return kept

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The occurrences in `graph`."""
        candidates = [
            (anchor, [n for n in graph.nodes if self._nodes_are_equal(anchor, n, node_name_match)])
            for anchor in self.pattern_anchors
        ]
        candidates = [(anchor, nodes) for anchor, nodes in candidates if nodes]
        found: list[InternalMatch] = []

        def search(index: int, match: InternalMatch) -> None:
            if index == len(candidates):
                match.placeholder_nodes = [match.nodes_map[pn] for pn in self.pattern_placeholder_nodes]
                match.returning_nodes = [match.nodes_map[pn] for pn in self.pattern_returning_nodes]
                found.append(match)
                return
            anchor, nodes = candidates[index]
            for node in nodes:
                attempt = copy.copy(match)
                if self._match_nodes(anchor, node, attempt, node_name_match):
                    search(index + 1, attempt)

        if candidates:
            search(0, InternalMatch(anchors=self.pattern_anchors))
        contained = [m for m in found if self._is_contained(m.nodes_map)]
        valid = [m for m in contained if validate_partition(_computed(m))]
        logger.info("Matches returned: %s", valid)
        return self._remove_overlapping_matches(valid) if self.remove_overlapping_matches else contained


def _computed(match: InternalMatch) -> list[Node]:
    return [gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")]


def _paired(pn: Node, gn: Node) -> tuple[list[Any], list[Any]] | None:
    """The arguments of two calls of the same function, in the same order; None where they differ in form."""
    if len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs):
        return [*pn.args, *pn.kwargs.values()], [*gn.args, *gn.kwargs.values()]
    if pn.op != "call_function" or not isinstance(pn.target, OpOverload):
        return None
    arguments = pn.target._schema.arguments

    def ordered(n: Node) -> list[Any]:
        return [
            n.kwargs[a.name]
            if a.name in n.kwargs
            else n.args[i]
            if not a.kwarg_only and i < len(n.args)
            else a.default_value
            for i, a in enumerate(arguments)
        ]

    return ordered(pn), ordered(gn)
