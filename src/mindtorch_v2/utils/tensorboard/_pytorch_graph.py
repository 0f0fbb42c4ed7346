"""`torch.utils.tensorboard._pytorch_graph`: graphs of traced models; not here."""

from __future__ import annotations

from ..._unserved import offer as _offer
from .writer import NO_GRAPH as _NO_GRAPH

_offer(__name__, "graph parse", "GraphPy NodeBase NodePy NodePyIO NodePyOP", "{name}: " + _NO_GRAPH)
