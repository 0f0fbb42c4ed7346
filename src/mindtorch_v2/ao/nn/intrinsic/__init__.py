"""`torch.ao.nn.intrinsic`: modules that PyTorch fuses for quantization: importable, and raise."""

from __future__ import annotations

from ...._unserved import offer as _offer
from ....ao.quantization import WHY

_offer(
    __name__,
    "",
    "BNReLU2d ConvBn1d ConvBn2d ConvBnReLU2d ConvReLU1d ConvReLU2d ConvReLU3d LinearBn1d LinearReLU _FusedModule",
    WHY,
)
