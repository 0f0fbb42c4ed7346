"""`torch.ao.quantization.quantization_mappings`: importable, and raises."""

from __future__ import annotations

from ..._unserved import offer as _offer
from ...ao.quantization import WHY

_offer(
    __name__,
    "get_default_dynamic_quant_module_mappings get_default_qat_module_mappings get_default_qconfig_propagation_list",
    "",
    WHY,
)
