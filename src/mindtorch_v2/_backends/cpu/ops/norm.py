"""CPU lines of layer norm."""
from __future__ import annotations

from ..kernels.norm import LayerNorm, LayerNormBackward, LayerNormOutput
from ..lines import cpu

cpu("native_layer_norm", LayerNorm())
cpu("_layer_norm_output", LayerNormOutput())
cpu("native_layer_norm_backward", LayerNormBackward())
