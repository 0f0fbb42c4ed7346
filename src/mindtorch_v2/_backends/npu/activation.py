"""NPU lines of the activation functions and of their backward operators."""
from __future__ import annotations

from .lines import npu

npu("relu", "aclnnRelu(self, out)")
