"""Pictures of graphs, which PyTorch draws with the library `pydot`. Refused by name: `print(graph)` shows the nodes."""

from __future__ import annotations

from typing import Any

__all__ = ["FxGraphDrawer"]


class FxGraphDrawer:
    """Draws a module's graph; refused."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "FXGraphDrawer requires the pydot package to be installed, and is not supported with it either: print the "
            "graph, or its nodes with Graph.print_tabular()"
        )
