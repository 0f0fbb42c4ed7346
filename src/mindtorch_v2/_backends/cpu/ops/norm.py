"""CPU lines of softmax and layer norm."""
from __future__ import annotations

from ..kernels.nn import LayerNorm, LayerNormBackward, Softmax, SoftmaxBackward
from ..lines import cpu

cpu("_softmax", Softmax(False))
cpu("_log_softmax", Softmax(True))
cpu("_softmax_backward_data", SoftmaxBackward(False))
cpu("_log_softmax_backward_data", SoftmaxBackward(True))
cpu("native_layer_norm", LayerNorm())
cpu("_layer_norm_output", LayerNorm())
cpu("native_layer_norm_backward", LayerNormBackward())
