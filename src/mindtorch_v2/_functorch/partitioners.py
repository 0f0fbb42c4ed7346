"""`torch._functorch.partitioners`: forward and backward graphs from one; not here."""

from __future__ import annotations

from .._unserved import offer as _offer
from .aot_autograd import WHY

_offer(
    __name__,
    "default_partition draw_graph min_cut_rematerialization_partition cleanup_recompute_tags get_default_op_list "
    "classify_nodes choose_saved_values_set",
    "MinCutOptions NodeInfo OpTypes",
    WHY,
)
