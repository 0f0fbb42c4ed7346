"""The graph as users see it: nodes and edges.

Invariant: everything here reads nodes that `_autograd.record` made; nothing makes new ones.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from .._autograd.engine import gradient_at
from .._autograd.node import Node
from .._tensor_base import TensorBase, bump, requires_grad

__all__ = ["GradientEdge", "Node", "get_gradient_edge", "increment_version"]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor arrives; stands for the tensor in `autograd.grad` and `backward`."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Any) -> GradientEdge:
    if not isinstance(tensor, TensorBase) or not requires_grad(tensor):
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, nr = gradient_at(tensor)
    return GradientEdge(node, nr)


def increment_version(tensor: Any) -> None:
    """Tell autograd that the memory of a tensor, or of several, was written behind its back."""
    for t in [tensor] if isinstance(tensor, TensorBase) else tensor:
        bump(t)
