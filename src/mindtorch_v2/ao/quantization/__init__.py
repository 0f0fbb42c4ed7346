"""`torch.ao.quantization`: importable; quantizing raises, but for the stubs, which are the identity until then."""

from __future__ import annotations

from typing import Any

from ..._unserved import offer as _offer
from ...nn import Module

__all__ = ["DeQuantStub", "QuantStub"]

WHY = (
    "{name}: there are no quantized tensors here; load weights in bfloat16 or float16, or quantize with operators of "
    "torch.library"
)
_offer(
    __name__,
    "add_quant_dequant convert fuse_modules fuse_modules_qat get_default_qat_qconfig get_default_qconfig "
    "get_default_qconfig_mapping get_default_qat_qconfig_mapping prepare prepare_qat propagate_qconfig_ quantize "
    "quantize_dynamic quantize_qat swap_module disable_observer enable_observer disable_fake_quant enable_fake_quant",
    "FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver MovingAverageMinMaxObserver "
    "MovingAveragePerChannelMinMaxObserver NoopObserver ObserverBase PerChannelMinMaxObserver PlaceholderObserver "
    "QConfig QConfigMapping",
    WHY,
)


class QuantStub(Module):
    """Where a quantized model would quantize: the identity."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        return x


class DeQuantStub(QuantStub):
    """Where a quantized model would dequantize: the identity."""
