"""`torch.ao.nn.quantizable.modules`: modules that PyTorch can quantize: importable, and raise when they are made."""

from __future__ import annotations

from ...._unserved import offer as _offer
from ...quantization import WHY

_offer(__name__, "", "LSTM LSTMCell MultiheadAttention", WHY)
