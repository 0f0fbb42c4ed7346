"""Computing once what in a graph depends on no input.

Invariant: what is folded is computed with the attributes that the module has when it first runs.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A module with a second graph, whose results it keeps as attributes before it runs for the first time."""

    def __init__(
        self,
        root: torch.nn.Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Compute what is folded, and keep it."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        folded = self.const_subgraph_module()
        kept: Any = (
            torch.nn.ParameterList([self._parameter(value) for value in folded])
            if isinstance(folded, tuple)
            else self._parameter(folded)
        )
        setattr(self, self.fx_const_folded_attrs_name, kept)

    def _parameter(self, value: Any) -> torch.nn.Parameter:
        if isinstance(value, int):
            return torch.nn.Parameter(torch.tensor([value], device=self.device_for_folded_attrs), requires_grad=False)
        return torch.nn.Parameter(value.detach().clone(), requires_grad=value.requires_grad)


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """A name that no attribute of a module has: the one given, or with a number behind it."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    if name[0].isdigit():
        name = f"_{name}"
    while hasattr(mod_traced, name):
        found = re.match(r"(.*)_(\d+)$", name)
        name = f"{name}_1" if found is None else f"{found.group(1)}_{int(found.group(2)) + 1}"
    return name


def _constant_nodes(graph: Graph, skip: Callable[[Node], bool] | None) -> list[Node]:
    """The nodes that depend on no input and on nothing that differs from call to call."""
    found: dict[Node, None] = {}
    for node in graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op != "get_attr" and any(n not in found for n in node.all_input_nodes):
            continue
        if not (skip is not None and skip(node)) and not node.is_impure():
            found[node] = None
    return list(found)


def split_const_subgraphs(
    module: Any, skip_folding_node_fn: Callable[[Node], bool] | None = None, device_for_folded_attrs: str = "cpu"
) -> FoldedGraphModule:
    """A module in which what depends on no input is computed once."""
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(traced.graph, skip_folding_node_fn)
    inside = set(constant)
    folded = [node for node in constant if node.op != "get_attr" and any(user not in inside for user in node.users)]
    if not folded:
        return FoldedGraphModule(traced, traced.graph, device_for_folded_attrs=device_for_folded_attrs)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    setattr(traced, name, torch.nn.Parameter(torch.randn(1)) if len(folded) == 1 else torch.nn.ParameterList())
    once = Graph()
    copies: dict[Node, Node] = {}
    needed = _needed(folded)
    for node in constant:
        if node in needed:
            copies[node] = once.node_copy(node, lambda n: copies[n])
    results = tuple(copies[node] for node in folded)
    once.output(results[0] if len(results) == 1 else results)
    made = FoldedGraphModule(traced, _rest(traced.graph, inside, folded, name), once, name, device_for_folded_attrs)
    delattr(traced, name)
    return made


def _rest(graph: Graph, inside: set[Node], folded: list[Node], name: str) -> Graph:
    """The graph without what is folded, which is read from an attribute."""
    made = Graph()
    made._codegen = graph._codegen
    env: dict[Node, Node] = {}
    kept: Node | None = None
    for node in graph.nodes:
        if node not in inside or node.op == "get_attr":
            env[node] = made.node_copy(node, lambda n: env[n])
            continue
        if node not in folded:
            continue
        if kept is None:
            kept = made.get_attr(name)
        if len(folded) == 1:
            env[node] = kept
        else:
            env[node] = made.call_function(operator.getitem, (kept, folded.index(node)))
        env[node].meta = node.meta.copy()
    for node in reversed(made.nodes):
        if node.op == "get_attr" and not node.users:
            made.erase_node(node)
    return made


def _needed(nodes: list[Node]) -> set[Node]:
    """Nodes and all that they depend on."""
    found, todo = set(nodes), list(nodes)
    while todo:
        for node in todo.pop().all_input_nodes:
            if node not in found:
                found.add(node)
                todo.append(node)
    return found
