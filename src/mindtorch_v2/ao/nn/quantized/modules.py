"""`torch.ao.nn.quantized.modules`: modules over quantized tensors: importable, and raise when they are made."""

from __future__ import annotations

from ...._unserved import offer as _offer
from ...quantization import WHY

_offer(
    __name__,
    "",
    "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d "
    "DeQuantize Dropout ELU Embedding EmbeddingBag FXFloatFunctional FloatFunctional GroupNorm Hardswish "
    "InstanceNorm1d InstanceNorm2d InstanceNorm3d LSTM LayerNorm LeakyReLU Linear MultiheadAttention "
    "PReLU QFunctional Quantize ReLU6 Sigmoid Softmax",
    WHY,
)
