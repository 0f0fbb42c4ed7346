"""NPU lines of attention."""
from __future__ import annotations

from ..attention import BACKWARD, FORWARD, attention, back, fits
from ..lines import fused, npu

npu("scaled_dot_product_attention", fused((FORWARD, BACKWARD), fits, attention, back))
