"""`torch._lazy`: PyTorch's lazy tensors are not here. Their names are; a tensor on `lazy` is refused."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(
    __name__,
    "add_step_closure get_tensor_id mark_step run_step_closures save sync_multi to_cpu wait_device_ops",
    "",
    "{name}: there are no lazy tensors here; programs run eagerly",
)
