"""Passes as objects: a call takes a module and says whether it changed."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ..._compatibility import compatibility
from ...graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


@compatibility(is_backward_compatible=False)
class PassResult(NamedTuple):
    """The module after a pass, and whether the pass changed it."""

    graph_module: GraphModule
    modified: bool


@compatibility(is_backward_compatible=False)
class PassBase(abc.ABC):
    """A pass: `call` does the work, `requires` and `ensures` check before and after."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Do the work."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check what the pass needs."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check what the pass promises."""
