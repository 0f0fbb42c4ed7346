"""CPU lines of softmax and layer norm."""
from __future__ import annotations

from ..kernels.norm import LayerNorm, LayerNormBackward, LayerNormOutput
from ..kernels.softmax import Softmax, SoftmaxBackward
from ..lines import cpu

cpu("_softmax", Softmax(False))
cpu("_log_softmax", Softmax(True))
cpu("_softmax_backward_data", SoftmaxBackward(False))
cpu("_log_softmax_backward_data", SoftmaxBackward(True))
cpu("native_layer_norm", LayerNorm())
cpu("_layer_norm_output", LayerNormOutput())
cpu("native_layer_norm_backward", LayerNormBackward())
