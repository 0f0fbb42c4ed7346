"""Which class traced modules get; PyTorch has one that generates its code when first called."""

from __future__ import annotations

from typing import Any

from .graph_module import GraphModule


def _get_graph_module_cls() -> type[GraphModule]:
    return GraphModule


def _make_graph_module(*args: Any, graph_module_cls: type[GraphModule] | None = None, **kwargs: Any) -> GraphModule:
    made: GraphModule = (graph_module_cls or _get_graph_module_cls())(*args, **kwargs)
    return made
