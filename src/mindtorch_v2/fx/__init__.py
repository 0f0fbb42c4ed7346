"""`torch.fx`: programs as graphs: traced, changed, and turned into Python code again.

Invariant: text (graphs, generated code, node names) is PyTorch's, letter by letter; what it names is found here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import immutable_collections as immutable_collections
from ._symbolic_trace import PH as PH
from ._symbolic_trace import ProxyableClassMeta as ProxyableClassMeta
from ._symbolic_trace import Tracer, symbolic_trace, wrap
from .graph import CodeGen as CodeGen
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
_LATE = frozenset(("annotate", "config", "experimental", "operator_schemas", "passes", "tensor_type", "traceback"))


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return import_module(f".{name}", __package__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
