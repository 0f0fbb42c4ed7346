"""What passes share: order of nodes, names of targets, groups of nodes that must stay together."""

from __future__ import annotations

import collections
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mindtorch_v2 as torch

from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, _get_qualified_name

__all__ = ["FxNetAccFusionsFinder", "get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph"]

Tensors = tuple[torch.Tensor] | list[torch.Tensor]
TensorOrTensors = torch.Tensor | Tensors
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


@compatibility(is_backward_compatible=False)
def get_acc_ops_name(k: Any) -> str:
    """The short name of an operator of an accelerator."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    module = k.__module__.replace("torch._ops", "torch.ops")
    return f"{module if module else ''}.{k.__name__}"


@compatibility(is_backward_compatible=False)
def get_node_target(submodules: Mapping[str, torch.nn.Module], node: Node) -> str:
    """The name of what a node calls: of a function, a method, or the class of a module."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found {node.op}")
    target: Any = node.target
    if node.op == "call_module":
        module = submodules[target]
        return _get_qualified_name(type(getattr(module, "_base_class_origin", module)))
    if node.op == "call_function":
        return f"acc_ops.{target.__name__}" if "acc_ops" in (target.__module__ or "") else _get_qualified_name(target)
    return str(target)


@compatibility(is_backward_compatible=False)
def is_node_output_tensor(node: Node) -> bool:
    """Whether a node is known to give one tensor."""
    kind = node.meta.get("type")
    return isinstance(kind, type) and issubclass(kind, torch.Tensor)


@compatibility(is_backward_compatible=False)
class FxNetAccFusionsFinder:
    """Finds nodes that exchange something other than tensors, and so must stay together."""

    def __init__(self, module: GraphModule, acc_nodes: NodeSet) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.acc_nodes = acc_nodes

    @dataclass
    class FusionGroup:
        """Nodes, the first of them, what comes in, and what is still to be looked at."""

        top_node_idx: int
        nodes: NodeSet
        inputs: NodeSet
        nodes_need_process: NodeSet

        def add_node(self, node: Node) -> None:
            """Take a node in."""
            if node in self.nodes:
                return
            self.nodes_need_process.add(node)
            self.nodes.add(node)
            self.inputs.discard(node)
            self.inputs.update(n for n in node.all_input_nodes if n.op in CALLABLE_NODE_OPS and n not in self.nodes)

    def recursive_add_node(
        self, fusion_group: FxNetAccFusionsFinder.FusionGroup, inputs: Any, visited: NodeSet | None = None
    ) -> bool:
        """Take in what lies between the group and nodes of it further up."""
        found = False
        for arg in inputs:
            if visited is not None:
                if arg in visited:
                    continue
                visited.add(arg)
            if arg.op not in CALLABLE_NODE_OPS:
                continue
            if self.nodes.index(arg) < fusion_group.top_node_idx:
                continue
            if arg in fusion_group.nodes:
                found = True
            elif self.recursive_add_node(fusion_group, arg.all_input_nodes, visited):
                fusion_group.add_node(arg)
                found = True
        return found

    def __call__(self) -> dict[Node, NodeSet]:
        result: dict[Node, NodeSet] = {}
        nodes = list(self.acc_nodes)
        for node in nodes:
            if node in result or node.op not in CALLABLE_NODE_OPS:
                continue
            if "tensor_meta" in node.meta or node not in self.acc_nodes:
                continue
            group = FxNetAccFusionsFinder.FusionGroup(self.nodes.index(node), {node}, set(node.all_input_nodes), {node})
            while group.nodes_need_process:
                current = group.nodes_need_process.pop()
                self.recursive_add_node(group, group.inputs, visited=set())
                if "tensor_meta" not in current.meta:
                    for user in current.users:
                        if user.op in CALLABLE_NODE_OPS and user not in group.nodes:
                            group.add_node(user)
                            self.recursive_add_node(group, group.inputs, visited=set())
                for arg in current.all_input_nodes:
                    if arg.op in CALLABLE_NODE_OPS and "tensor_meta" not in arg.meta and arg not in group.nodes:
                        group.add_node(arg)
                        group.top_node_idx = min(group.top_node_idx, self.nodes.index(arg))
                        self.recursive_add_node(group, group.inputs, visited=set())
            if not group.nodes <= self.acc_nodes:
                self.acc_nodes -= group.nodes
            else:
                for member in group.nodes:
                    result[member] = result.get(member, set()) | group.nodes
        return result


@compatibility(is_backward_compatible=False)
def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes of a graph into an order in which they can run."""
    missing = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    waiting = collections.deque(node for node, count in missing.items() if count == 0)
    made = Graph()
    env: dict[Node, Node] = {}
    while waiting:
        node = waiting.popleft()
        env[node] = made.node_copy(node, lambda n: env[n])
        for user in node.users:
            missing[user] -= 1
            if missing[user] == 0:
                waiting.append(user)
    if len(made.nodes) < len(gm.graph.nodes):
        left = [node for node, count in missing.items() if count]
        raise RuntimeError(f"Input graph has cycles, unable to add {left}")
    made._codegen = gm.graph._codegen
    gm.graph = made
    return gm


@compatibility(is_backward_compatible=False)
def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put nodes that stand before what they need behind it, and leave the others where they are."""
    pending = list(reversed(gm.graph.nodes))
    ready: set[Node] = set()
    waiting: dict[Node, list[Node]] = collections.defaultdict(list)
    outputs: list[Node] = []
    cursor: Node | None = None
    while pending:
        node = pending.pop()
        if node.target == "output":
            outputs.append(node)
            continue
        behind = [n for n in node.all_input_nodes if n not in ready]
        if behind:
            waiting[behind[-1]].append(node)
            continue
        ready.add(node)
        if cursor is not None and cursor.next is not node:
            cursor.append(node)
        cursor = node
        pending.extend(reversed(waiting.pop(node, ())))
    ready.update(outputs)
    if waiting or len(ready) != len(gm.graph.nodes):
        raise AssertionError("graph has cycles")
    return gm
