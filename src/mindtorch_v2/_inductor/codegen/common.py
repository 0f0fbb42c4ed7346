"""`torch._inductor.codegen.common`: importable; no code is generated."""

from __future__ import annotations

from ..._unserved import offer as _offer
from .. import WHY

_offer(
    __name__,
    "get_custom_backend_config_for_device get_custom_backend_pass_for_device get_scheduling_for_device "
    "get_wrapper_codegen_for_device init_backend_registration register_backend_for_device",
    "",
    WHY,
)
