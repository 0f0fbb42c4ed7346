"""`torch._functorch.fx_minifier`: smaller graphs that still fail; not here."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(
    __name__,
    "minifier dump_state create_minified_hlo_graph",
    "ReproState ConcreteProp",
    "{name}: graphs are not made smaller here; torch.fx.Graph.erase_node takes nodes out",
)
