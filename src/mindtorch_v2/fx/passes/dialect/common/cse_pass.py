"""Common subexpressions computed once."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as torch

from .....utils import _pytree as pytree
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

aten: Any = torch.ops.aten
# Each call gives something else.
rand_ops = {
    getattr(aten, name)
    for name in (
        *("_fused_dropout", "_standard_gamma", "bernoulli", "binomial", "dropout", "multinomial", "native_dropout"),
        *("normal", "poisson", "rand", "rand_like", "randint", "randn", "randperm", "rrelu"),
    )
    if hasattr(aten, name)
}
# Each call writes.
inplace_ops = {
    getattr(aten, name)
    for name in ("add_", "div_", "lerp_", "mul_", "pow_", "relu_", "sigmoid_", "sub_", "tanh_")
    if hasattr(aten, name)
}


def get_CSE_banned_ops() -> set[Any]:
    """Operators whose calls are never taken together."""
    return rand_ops | inplace_ops


def _packet(node: Node) -> Any:
    return getattr(node.target, "overloadpacket", node.target)


class CSEPass(PassBase):
    """Takes calls of the same function with the same arguments together."""

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        super().__init__()
        self.banned_ops = set() if banned_ops is None else banned_ops

    def call(self, graph_module: GraphModule) -> PassResult:
        """A module with a new graph, and whether something was taken together."""
        modified = False
        new_graph = Graph()
        env: dict[Node, Node] = {}
        known: dict[Any, Node] = {}

        def arguments(values: Any) -> Any:
            # One and True are equal, and not the same argument.
            leaves, spec = pytree.tree_flatten(values)
            found = [env[v] if isinstance(v, Node) else v for v in leaves]
            return tuple((type(v), _hashable(v)) for v in found), str(spec)

        for node in graph_module.graph.nodes:
            if node.op != "call_function" or _packet(node) in self.banned_ops:
                env[node] = new_graph.node_copy(node, lambda n: env[n])
                continue
            token = (node.target, arguments(node.args), arguments(node.kwargs))
            if token in known:
                modified = True
                env[node] = known[token]
                continue
            env[node] = known[token] = new_graph.node_copy(node, lambda n: env[n])
        return PassResult(GraphModule(graph_module, new_graph), modified)


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value
