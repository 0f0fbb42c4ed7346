"""Splitting a module into submodules, each with a part of the graph."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

from .._compatibility import compatibility
from .._lazy_graph_module import _make_graph_module
from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg

__all__ = ["Partition", "split_module"]


@compatibility(is_backward_compatible=True)
class Partition:
    """A part: its nodes, what it takes and gives, and the parts that it needs and that need it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


class _Splitter:
    def __init__(self, m: GraphModule, part_of: dict[Node, str], options: dict[str, Any]) -> None:
        self.m = m
        self.part_of = part_of
        self.options = options
        self.nodes = {n.name: n for n in m.graph.nodes}
        self.parts: dict[str, Partition] = {}
        for node, name in part_of.items():
            self.parts.setdefault(name, Partition(name)).node_names.append(node.name)
        self.base = Graph()
        self.values: dict[str, Node] = {}
        self.held: dict[str, Any] = {}

    # -- who needs whom ---------------------------------------------------------------------------------------------
    def connect(self) -> None:
        for node in self.m.graph.nodes:
            if node.op == "output":
                map_arg(node.args[0], lambda n: self._used(n, None))
            elif node in self.part_of:
                map_arg((node.args, node.kwargs), functools.partial(self._used, user=self.part_of[node]))

    def _used(self, node: Node, user: str | None) -> Any:
        maker = self.part_of.get(node)
        if maker == user:
            return node
        if maker is not None:
            self.parts[maker].outputs.setdefault(node.name)
            if user is not None:
                self.parts[maker].dependents.setdefault(user)
        if user is not None:
            self.parts[user].inputs.setdefault(node.name)
            if maker is not None:
                self.parts[user].dependencies.setdefault(maker)
        return node

    def order(self) -> list[str]:
        """Parts in an order in which they can run."""
        ready = [name for name, part in self.parts.items() if not part.dependencies]
        found: list[str] = []
        while ready:
            name = ready.pop()
            found.append(name)
            for other in self.parts[name].dependents:
                self.parts[other].dependencies.pop(name)
                if not self.parts[other].dependencies:
                    ready.append(other)
        if len(found) != len(self.parts):
            raise RuntimeError("cycle exists between partitions!")
        return found

    # -- the parts --------------------------------------------------------------------------------------------------
    def give_inputs(self, part: Partition) -> None:
        inputs = [self.nodes[name] for name in part.inputs]
        modules = [n for n in inputs if n.op == "get_attr" and isinstance(_get_attr(self.m, n.target), torch.nn.Module)]
        taken: dict[str, None] = {}
        for node in [n for n in inputs if n not in modules]:
            name = node.name if self.options["keep_original_input_name"] else f"arg_{len(taken)}"
            made = part.graph.placeholder(name, type_expr=node.type)
            taken[node.name] = None
            made.meta = node.meta.copy()
            part.environment[node] = made
        for node in modules:
            made = part.graph.get_attr(node.target)
            part.targets[node.target] = _get_attr(self.m, node.target)
            made.meta = node.meta.copy()
            part.environment[node] = made
        part.inputs = taken

    def copy_nodes(self, qualname_map: dict[str, str] | None) -> None:
        for node, name in self.part_of.items():
            part = self.parts[name]
            env = part.environment
            target = node.target
            if node.op in ("call_module", "get_attr"):
                target = node.target.replace(".", "_")
                part.targets[target] = _get_attr(self.m, node.target)
                if qualname_map is not None:
                    qualname_map[f"{part.submod_name}.{target}"] = node.target
            made = part.graph.create_node(
                node.op,
                target,
                map_arg(node.args, env.__getitem__),
                map_arg(node.kwargs, env.__getitem__),
                node.name if self.options["keep_original_node_name"] else None,
                node.type,
            )
            made.meta = node.meta.copy()
            env[node] = made

    # -- the whole --------------------------------------------------------------------------------------------------
    def place(self, node: Node) -> None:
        """An input or attribute of the whole."""
        if node.name in self.values or node.op not in ("placeholder", "get_attr"):
            return
        if node.op == "placeholder":
            name = node.name if self.options["keep_original_node_name"] else node.target
            default = node.args[0] if node.args else inspect.Signature.empty
            made = self.base.placeholder(name, type_expr=node.type, default_value=default)
        else:
            made = self.base.get_attr(node.target)
            self.held[node.target] = _get_attr(self.m, node.target)
        made.meta = node.meta.copy()
        self.values[node.name] = made

    def call(self, part: Partition, tuple_return: bool) -> None:
        results = tuple(part.environment[self.nodes[name]] for name in part.outputs)
        part.graph.output(results[0] if len(results) == 1 and not tuple_return else results)
        self.held[part.submod_name] = _make_graph_module(part.targets, part.graph)
        made = self.base.call_module(part.submod_name, tuple(self.values[name] for name in part.inputs))
        if len(results) > 1 or (results and tuple_return):
            for i, name in enumerate(part.outputs):
                self.values[name] = self.base.call_function(operator.getitem, (made, i))
        elif results:
            self.values[next(iter(part.outputs))] = made


@compatibility(is_backward_compatible=True)
def split_module(
    m: GraphModule,
    root_m: torch.nn.Module,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool = False,
    keep_original_node_name: bool = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module whose submodules `submod_<n>` have the nodes for which `split_callback` gives n."""
    part_of: dict[Node, str] = {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            name = str(split_callback(node))
            part_of[node] = name if partition_affix is None else f"{partition_affix}_{name}"
    options = {"keep_original_node_name": keep_original_node_name, "keep_original_input_name": keep_original_input_name}
    splitter = _Splitter(m, part_of, options)
    splitter.connect()
    order = splitter.order()
    for name in order:
        splitter.give_inputs(splitter.parts[name])
    splitter.copy_nodes(qualname_map)
    for node in m.graph.nodes:
        if not keep_original_order or node.op == "placeholder":
            splitter.place(node)
    for name in list(splitter.parts) if keep_original_order else order:
        part = splitter.parts[name]
        for used in part.inputs:
            splitter.place(splitter.nodes[used])
        splitter.call(part, tuple_return)
    for node in m.graph.nodes:
        if node.op == "output":
            for used_node in node.all_input_nodes:
                splitter.place(used_node)
            splitter.base.output(map_arg(node.args[0], lambda n: splitter.values[n.name]))
    made = _make_graph_module(splitter.held, splitter.base)
    made.meta["partition_names"] = {part.submod_name for part in splitter.parts.values()}
    return made
