"""`torch.ao.nn.quantized.dynamic`: importable, and raises."""

from __future__ import annotations

from ...._unserved import offer as _offer
from ....ao.quantization import WHY

_offer(__name__, "", "GRU GRUCell LSTM LSTMCell Linear RNNCell", WHY)
