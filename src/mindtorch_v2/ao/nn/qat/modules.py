"""`torch.ao.nn.qat.modules`: modules that PyTorch trains for quantization: importable, and raise when they are made."""

from __future__ import annotations

from ...._unserved import offer as _offer
from ...quantization import WHY

_offer(__name__, "", "Conv1d Conv2d Conv3d Embedding EmbeddingBag Linear", WHY)
