"""`torch.distributed.tensor._utils`: refused by name."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    ("compute_global_tensor_shape compute_local_shape_and_global_offset compute_local_tensor_info "),
    "",
    "{name} is not served: no tensor lies on several processes here",
)
