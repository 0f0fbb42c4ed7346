"""`torch.ao.quantization`: importable; quantizing raises, but for the stubs, which are the identity until then."""

from __future__ import annotations

from enum import IntEnum
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
    "quantize_dynamic quantize_dynamic_jit quantize_jit quantize_qat swap_module "
    "disable_observer enable_observer disable_fake_quant enable_fake_quant",
    "FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver MovingAverageMinMaxObserver "
    "MovingAveragePerChannelMinMaxObserver NoopObserver ObserverBase PerChannelMinMaxObserver PlaceholderObserver "
    "QConfig QConfigMapping QuantWrapper",
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


class QuantType(IntEnum):
    """How PyTorch's tools quantize a model."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


# The settings that PyTorch's tools begin with: each raises by its name when it is used.
_offer(
    __name__,
    "default_dynamic_qat_qconfig default_dynamic_qconfig default_dynamic_quant_observer default_embedding_qat_qconfig "
    "default_observer default_per_channel_qconfig default_qconfig default_symmetric_qnnpack_qat_qconfig "
    "default_weight_observer float_qparams_weight_only_qconfig",
    "",
    WHY,
)
