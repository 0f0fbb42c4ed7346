"""Which nodes of a graph something can run."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mindtorch_v2 as torch

from .._compatibility import compatibility
from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

TargetTypeName = str
# Dtypes of arguments by position and by name; None for any.
SupportedArgumentDTypes = tuple[Sequence[Sequence[torch.dtype]], dict[str, Sequence[torch.dtype]]] | None
SupportDict = Mapping[TargetTypeName, SupportedArgumentDTypes]
IsNodeSupported = Callable[[Mapping[str, torch.nn.Module], Node], bool]


@compatibility(is_backward_compatible=False)
class OperatorSupportBase(abc.ABC):
    """Says of nodes whether they are supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        """Whether a node is."""


@compatibility(is_backward_compatible=False)
class OperatorSupport(OperatorSupportBase):
    """By a table of targets, with the dtypes that their arguments may have."""

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        by_position, by_name = wanted
        for i, dtypes in enumerate(by_position):
            if len(node.args) <= i:
                break
            arg: Any = node.args[i]
            if isinstance(arg, Node) and _get_arg_dtype(arg) not in dtypes:
                return False
        for name, dtypes in by_name.items():
            given: Any = node.kwargs.get(name)
            if isinstance(given, Node) and _get_arg_dtype(given) not in dtypes:
                return False
        return True


@compatibility(is_backward_compatible=False)
def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """A support that asks a function."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


@compatibility(is_backward_compatible=False)
def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What all of several support."""
    return create_op_support(lambda modules, node: all(x.is_node_supported(modules, node) for x in op_support))


@compatibility(is_backward_compatible=False)
def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What any of several supports."""
    return create_op_support(lambda modules, node: any(x.is_node_supported(modules, node) for x in op_support))


@compatibility(is_backward_compatible=False)
class OpSupports:
    """Supports that decline nodes for one reason."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: torch.dtype) -> OperatorSupportBase:
        """Declines nodes with an input of a dtype."""
        return create_op_support(
            lambda modules, node: all(_get_arg_dtype(arg) != dtype for arg in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Declines nodes by their names."""
        return create_op_support(lambda modules, node: node.name not in disallow_set)


def _get_arg_dtype(arg: Node) -> Any:
    found = arg.meta["tensor_meta"]
    return found.dtype if isinstance(found, TensorMetadata) else arg.meta["type"]
