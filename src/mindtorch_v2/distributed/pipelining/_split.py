"""A backward in two halves: gradients of a stage's inputs, which another rank waits for, and those of its parameters.

Invariant: each parameter's gradient is computed once. The first half runs the operators between outputs and inputs and
keeps what comes to those of them that parameters hang on; the second half goes on from there. Parameters that hang on
several of them are finished in the first half, as their parts could not be told apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import autograd
from ...autograd.graph import GradientEdge

__all__ = ["Halves"]


class _Graph:
    """The operators behind some outputs. Nodes are made when asked for: the walk keeps them."""

    def __init__(self, outputs: list[Any]) -> None:
        self.roots = [autograd.graph.get_gradient_edge(each).node for each in outputs]
        self.nodes: dict[int, Any] = {}
        self.children: dict[int, list[int]] = {}
        # Each node after those it leads to.
        self.order: list[int] = []
        todo: list[tuple[Any, bool]] = [(each, False) for each in self.roots]
        while todo:
            node, left = todo.pop()
            if left:
                self.order.append(id(node))
            elif id(node) not in self.nodes:
                self.nodes[id(node)] = node
                found = [each for each, _ in node.next_functions if each is not None]
                self.children[id(node)] = [id(each) for each in found]
                todo.append((node, True))
                todo.extend((each, False) for each in found)

    def variable(self, node: int) -> Any:
        return getattr(self.nodes[node], "variable", None)

    def leading_to(self, variables: set[int]) -> set[int]:
        """The nodes that lead to one of these tensors."""
        found: set[int] = set()
        for node in self.order:
            if id(self.variable(node)) in variables or any(each in found for each in self.children[node]):
                found.add(node)
        return found

    def beside(self, start: list[int], within: set[int]) -> dict[int, Any]:
        """The parameters that some nodes lead to without passing `within`."""
        seen: set[int] = set()
        leaves: dict[int, Any] = {}
        todo = [each for each in start if each not in within]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            variable = self.variable(node)
            if variable is not None:
                leaves[id(variable)] = variable
            todo.extend(each for each in self.children[node] if each not in within)
        return leaves


class Halves:
    """The backward of some outputs."""

    def __init__(self, outputs: list[Any], grads: list[Any] | None, inputs: list[Any]) -> None:
        self._outputs, self._grads, self._inputs = outputs, grads, inputs
        self._rest: list[Callable[[], None]] = []

    def of_inputs(self) -> None:
        """Give the inputs their gradients."""
        if not self._inputs:  # nobody waits: all of it may be done later
            self._rest.append(lambda: autograd.backward(self._outputs, self._grads))
            return
        graph = _Graph(self._outputs)
        within = graph.leading_to({id(each) for each in self._inputs})
        # Parameters by the operator that they hang on; None stands for the outputs themselves.
        hang: dict[int | None, dict[int, Any]] = {None: graph.beside([id(each) for each in graph.roots], within)}
        hang.update({node: graph.beside(graph.children[node], within) for node in graph.order if node in within})
        often: dict[int, int] = {}
        for leaves in hang.values():
            for each in leaves:
                often[each] = often.get(each, 0) + 1
        now = {each: leaves[each] for leaves in hang.values() for each in leaves if often[each] > 1}
        handles = []
        for node, leaves in hang.items():
            alone = [leaf for each, leaf in leaves.items() if often[each] == 1]
            if alone and node is None:
                self._rest.append(self._later(self._outputs, self._grads, alone))
            elif alone and node is not None:
                handles.append(graph.nodes[node].register_prehook(self._keeper(graph.nodes[node], alone)))
        try:
            autograd.backward(self._outputs, self._grads, retain_graph=True, inputs=[*self._inputs, *now.values()])
        finally:
            for handle in handles:
                handle.remove()

    def _later(self, roots: list[Any], grads: Any, leaves: list[Any]) -> Callable[[], None]:
        return lambda: autograd.backward(roots, grads, inputs=leaves)

    def _keeper(self, node: Any, leaves: list[Any]) -> Callable[[Any], None]:
        def keep(grads: Any) -> None:
            known = [(GradientEdge(node, at), each) for at, each in enumerate(grads) if each is not None]
            self._rest.append(self._later([edge for edge, _ in known], [each for _, each in known], leaves))

        return keep

    def of_parameters(self) -> None:
        """Give the parameters theirs, and let go of the graph."""
        while self._rest:
            self._rest.pop()()
        self._outputs, self._inputs, self._grads = [], [], None
